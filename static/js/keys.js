// The keyboard map: exactly the keys that work on this page, and the overlay that lists them.
(() => {
  const CHORD_MS = 1200;
  let chordUntil = 0;

  const rows = () => [...document.querySelectorAll("[data-rows] > *")].filter((row) => row.offsetParent !== null);
  const search = () => document.querySelector("[data-search]");
  const keyed = () => [...document.querySelectorAll("[data-key]")];
  const places = () => [...document.querySelectorAll("[data-shortcut]")];

  function map() {
    const keys = places().map((link) => [link.dataset.shortcut, `Go to ${link.textContent.trim()}`]);
    keys.push(...keyed().map((link) => [link.dataset.key, link.dataset.keyWords ?? link.textContent.trim()]));
    if (search()) keys.push(["/", "Search"], ["Esc", "Leave search"]);
    if (rows().length) keys.push(["j", "Next row"], ["k", "Previous row"], ["Enter", "Open the row"]);
    if (document.getElementById("palette")) keys.push(["Ctrl K", "Find a session, a page or an action"]);
    keys.push(["t", "Switch between light and dark"], ["?", "Show or hide keyboard shortcuts"]);
    return keys;
  }

  function fill() {
    document.querySelector("[data-keymap]").replaceChildren(...map().flatMap(([keys, meaning]) => {
      const term = document.createElement("dt");
      for (const key of keys.split(" ")) {
        const cap = document.createElement("kbd");
        cap.textContent = key;
        term.append(cap, " ");
      }
      const words = document.createElement("dd");
      words.textContent = meaning;
      return [term, words];
    }));
  }

  function toggleOverlay() {
    const overlay = document.getElementById("keymap");
    if (!overlay) return;
    if (overlay.open) return overlay.close();
    const before = document.activeElement;
    overlay.addEventListener("close", () => before instanceof HTMLElement && before.focus(), { once: true });
    fill();
    overlay.showModal();
  }

  function step(by) {
    const all = rows();
    if (!all.length) return;
    const now = all.findIndex((row) => row.classList.contains("is-current"));
    const next = all[Math.min(Math.max(now + by, 0), all.length - 1)];
    all[now]?.classList.remove("is-current");
    next.classList.add("is-current");
    const target = next.querySelector("[data-opens]") ?? next.querySelector("a[href], button") ?? next;
    if (target === next) next.tabIndex = -1;
    target.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }

  function go(letter) {
    const link = places().find((place) => place.dataset.shortcut === `g ${letter}`);
    if (link) link.click();
    return Boolean(link);
  }

  const actions = {
    "?": toggleOverlay,
    t: () => document.dispatchEvent(new CustomEvent("plimsoll:flip-theme")),
    j: () => step(1),
    k: () => step(-1),
    "/": () => search()?.focus(),
  };

  function typing(target) {
    return target.isContentEditable || target.matches?.("input:not([type=checkbox], [type=radio]), textarea, select");
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target.matches?.("[data-search]")) {
      event.preventDefault(); // Chromium would empty the field
      event.target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || typing(event.target)) return;
    const dialog = document.querySelector("dialog[open]");
    if (dialog && !(dialog.id === "keymap" && event.key === "?")) return;
    if (Date.now() < chordUntil) {
      chordUntil = 0;
      if (go(event.key)) event.preventDefault();
      return;
    }
    if (event.key === "g" && places().length) {
      chordUntil = Date.now() + CHORD_MS;
      return;
    }
    if (event.key === "/" && !search()) return;
    const link = keyed().find((each) => each.dataset.key === event.key);
    if (link) {
      event.preventDefault();
      link.click();
      return;
    }
    if (!Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });

  // The button in the footer opens it through dialogs.js; before that the list is filled with what works now.
  document.addEventListener("click", (event) => {
    if (event.target.closest('[data-dialog-open="keymap"]')) fill();
  }, { capture: true });
})();
