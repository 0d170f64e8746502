// The command palette (Ctrl-K): sessions as the server finds them; pages and actions are the links of this page.
(() => {
  const ASK_AFTER_MS = 90;
  const dialog = document.getElementById("palette");
  if (!dialog) return;
  const field = dialog.querySelector("input");
  const list = dialog.querySelector("[role=listbox]");
  const state = dialog.querySelector("[data-palette-state]");
  let here = []; // pages and actions, read when the palette opens
  let sessions = [];
  let answered = ""; // the text that these sessions were found for
  let shown = [];
  let active = 0;
  let timer = 0;
  let asking = null;

  const flat = (text) => text.trim().replace(/\s+/g, " ");
  const follow = (link) => () => link.click();

  function readPage() {
    const actions = [...document.querySelectorAll("[data-key]")].map((link) => ({
      group: "Actions", words: link.dataset.keyWords ?? flat(link.textContent), note: link.dataset.key, run: follow(link),
    }));
    actions.push(...[...document.querySelectorAll(".exports a:not([data-key])")].map((link) => ({
      group: "Actions", words: link.getAttribute("aria-label"), note: "", run: follow(link),
    })));
    actions.push({
      group: "Actions", words: "Switch between light and dark", note: "t",
      run: () => document.dispatchEvent(new CustomEvent("plimsoll:flip-theme")),
    });
    const pages = [...document.querySelectorAll(".top-nav a, .top-end .menu-panel a, .foot a")].map((link) => ({
      group: "Pages", words: flat(link.textContent), note: link.dataset.shortcut ?? "", run: () => location.assign(link.href),
    }));
    return [...actions, ...pages];
  }

  function matches(item, words) {
    const text = `${item.words} ${item.group === "Sessions" ? item.note : ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  }

  function draw() {
    const words = flat(field.value).toLowerCase().split(" ").filter(Boolean);
    // Until the server has answered for this text, only what still fits stays: Enter must not open another session.
    const found = answered === field.value ? sessions : sessions.filter((item) => matches(item, words));
    shown = [...found, ...here.filter((item) => matches(item, words))];
    active = Math.min(active, Math.max(shown.length - 1, 0));
    const groups = new Map();
    shown.forEach((item, number) => {
      if (!groups.has(item.group)) groups.set(item.group, startGroup(item.group));
      groups.get(item.group).append(makeOption(item, number));
    });
    list.replaceChildren(...groups.values());
    state.textContent = shown.length ? "" : "Nothing found.";
    mark();
  }

  function startGroup(name) {
    const group = document.createElement("div");
    const title = document.createElement("span");
    group.setAttribute("role", "group");
    group.setAttribute("aria-labelledby", title.id = `palette-${name.toLowerCase()}`);
    title.className = "palette-group";
    title.textContent = name;
    group.append(title);
    return group;
  }

  function makeOption(item, number) {
    const option = document.createElement("div");
    option.id = `palette-option-${number}`;
    option.setAttribute("role", "option");
    const words = document.createElement("span");
    words.textContent = item.words;
    option.append(words);
    if (item.note) {
      const note = document.createElement("span");
      note.className = "note";
      note.textContent = item.note;
      option.append(" ", note);
    }
    option.addEventListener("mousemove", () => { if (active !== number) { active = number; mark(); } });
    option.addEventListener("click", () => choose(number));
    return option;
  }

  function mark() {
    for (const option of list.querySelectorAll("[role=option]")) {
      option.setAttribute("aria-selected", String(option.id === `palette-option-${active}`));
    }
    const current = document.getElementById(`palette-option-${active}`);
    if (current) field.setAttribute("aria-activedescendant", current.id);
    else field.removeAttribute("aria-activedescendant");
    current?.scrollIntoView({ block: "nearest" });
  }

  function choose(number) {
    const item = shown[number];
    if (!item) return;
    dialog.close();
    item.run();
  }

  async function ask() {
    asking?.abort();
    const own = asking = new AbortController();
    const text = field.value;
    try {
      const url = `${dialog.dataset.palette}?${new URLSearchParams({ text })}`;
      const answer = await fetch(url, { signal: own.signal, headers: { Accept: "application/json" } });
      if (!answer.ok || answer.redirected) throw new Error(`status ${answer.status}`);
      const found = await answer.json();
      if (own !== asking) return;
      sessions = found.sessions.map((each) => ({
        group: "Sessions", words: each.name, note: each.note, run: () => location.assign(each.url),
      }));
      answered = text;
      const kept = active ? shown[active] : null; // somebody has moved there
      draw();
      active = Math.max(shown.indexOf(kept), 0);
      mark();
    } catch (error) {
      if (error.name === "AbortError") return;
      sessions = [];
      draw();
      state.textContent = "Sessions cannot be looked up right now.";
    }
  }

  function open() {
    if (document.querySelector("dialog[open]")) return;
    here = readPage();
    sessions = [];
    active = 0;
    field.value = "";
    dialog.showModal();
    draw();
    ask();
  }

  field.addEventListener("input", () => {
    active = 0;
    draw();
    clearTimeout(timer);
    timer = setTimeout(ask, ASK_AFTER_MS);
  });
  field.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps && shown.length) {
      active = (active + steps[event.key] + shown.length) % shown.length;
      mark();
    } else if (event.key === "Enter" && !event.isComposing) {
      choose(active);
    } else {
      return;
    }
    event.preventDefault();
  });
  dialog.addEventListener("close", () => {
    clearTimeout(timer);
    asking?.abort();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault(); // some browsers go to their own search
    if (dialog.open) dialog.close();
    else open();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-palette-open]")) open();
  });
})();
