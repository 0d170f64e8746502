// The command palette (Ctrl-K): sessions and places as the server knows them, and what can be done on this page.
(() => {
  const ASK_AFTER_MS = 90;
  const dialog = document.getElementById("palette");
  if (!dialog) return;
  const field = dialog.querySelector("input");
  const list = dialog.querySelector("[role=listbox]");
  const state = dialog.querySelector("[data-palette-state]");
  let actions = []; // of this page, read when the palette opens
  let places = null; // pages, saved views and actions from anywhere; null until the server has told them
  let sessions = [];
  let answered = ""; // the text that these sessions were found for
  let refusal = ""; // why there are none
  let shown = [];
  let active = 0;
  let timer = 0;
  let asking = null;

  const flat = (text) => text.trim().replace(/\s+/g, " ");

  // --- what can be done here ---

  const FIELDS = "input:not([type=hidden], [type=submit]), select, textarea";
  // Buttons of this page, and menus that open in it. Rows have too many of the same name; a question answers itself.
  const BUTTONS = "main :is(.btn, .menu > summary):not(tbody *, .menu-panel *, .ask *, :disabled)";

  // Words made for it; else those on it, which need those above them: many things are saved.
  function nameOf(element) {
    const { action, keyWords } = element.dataset;
    const made = action ?? keyWords ?? element.closest("summary")?.parentElement.dataset.confirm;
    const title = element.closest("main .card")?.querySelector("h2, h3")?.textContent ?? "";
    return made ? { words: made } : { words: flat(element.textContent), note: flat(title) };
  }

  // A form is filled in before it is sent: it leads to its first field. Everything else is done.
  function act(element) {
    const form = element.matches("summary, a, [data-key]") ? null : element.form;
    const first = [...form?.querySelectorAll(FIELDS) ?? []].find((each) => each.checkVisibility());
    if (first) return lead(first);
    element.click();
    if (element.matches(".menu > summary")) lead(element.parentElement.querySelector(`.menu-panel :is(${FIELDS})`));
  }

  function lead(field) {
    field?.focus();
    field?.scrollIntoView({ block: "nearest" });
  }

  function makeAction(element) {
    const { key, actionKey, actionWords } = element.dataset;
    return { group: "Actions", ...nameOf(element), key: key ?? actionKey, more: actionWords, run: () => act(element) };
  }

  function readActions() {
    const buttons = [...document.querySelectorAll(BUTTONS)].filter((each) => each.checkVisibility());
    const everywhere = [...document.querySelectorAll(".top [data-action], main .menu-panel a[data-action], .foot [data-action]")].reverse();
    const exported = [...document.querySelectorAll(".exports a:not([data-key])")].map((link) => ({
      group: "Actions", words: link.getAttribute("aria-label"), run: () => link.click(),
    }));
    const themes = [...document.querySelectorAll(".top [data-theme-form] button")].map((button) => ({
      group: "Actions", words: `Theme: ${flat(button.textContent).toLowerCase()}`, more: "mode", run: () => button.click(),
    }));
    const search = document.querySelector("[data-search]");
    return [
      ...[...new Set([...document.querySelectorAll("[data-key]"), ...buttons])].map(makeAction),
      ...exported,
      ...(search ? [{ group: "Actions", words: "Search this list", key: "/", run: () => lead(search) }] : []),
      {
        group: "Actions", words: "Switch between light and dark", key: "t", more: "theme mode",
        run: () => document.dispatchEvent(new CustomEvent("plimsoll:flip-theme")),
      },
      ...themes,
      ...everywhere.map(makeAction),
    ];
  }

  // --- where to go ---

  async function askPlaces() {
    try {
      const answer = await fetch(dialog.dataset.places, { headers: { Accept: "application/json" } });
      if (!answer.ok || answer.redirected) throw new Error(`status ${answer.status}`);
      places = (await answer.json()).places.map(({ group, name, note, words, url, is_posted }) => ({
        group, words: name, note, more: words, key: keyOf(url), run: () => is_posted ? send(url) : location.assign(url),
      }));
    } catch {
      places ??= readLinks();
    }
    redraw();
  }

  const keyOf = (url) => document.querySelector(`[data-shortcut][href="${CSS.escape(url)}"]`)?.dataset.shortcut;

  // Without the server, the links of this page.
  function readLinks() {
    const links = [...document.querySelectorAll(".top-nav a, .top-end .menu-panel a, .foot a")];
    return [...new Map(links.map((link) => [link.href, link])).values()].map((link) => ({
      group: "Pages", words: flat(link.textContent), key: link.dataset.shortcut, run: () => location.assign(link.href),
    }));
  }

  function send(url) {
    const form = document.createElement("form");
    const token = document.createElement("input");
    Object.assign(form, { method: "post", action: url, hidden: true });
    Object.assign(token, { type: "hidden", name: "csrfmiddlewaretoken" });
    token.value = JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"];
    form.append(token);
    document.body.append(form);
    form.submit();
  }

  // --- what is shown ---

  const holds = (text, words) => words.every((word) => text.toLowerCase().includes(word));
  const fits = (item, words) => holds([item.words, item.note, item.more].join(" "), words);

  // What is named by the words typed stands before sessions that hold them, what is only told by them after.
  function choose(words) {
    // Until the server has answered for this text, only what still fits stays: Enter must not open another session.
    const found = answered === field.value ? sessions : sessions.filter((item) => fits(item, words));
    const names = new Set(actions.map((item) => item.words));
    const others = (places ?? []).filter((item) => item.group === "Saved views" || !names.has(item.words));
    const here = [...actions, ...others];
    if (!words.length) return [...found, ...here];
    const named = here.filter((item) => holds(item.words, words));
    const told = here.filter((item) => !named.includes(item) && fits(item, words));
    return [...named, ...found, ...told.map((item) => ({ ...item, group: "Related" }))];
  }

  function draw() {
    shown = choose(flat(field.value).toLowerCase().split(" ").filter(Boolean));
    active = Math.min(active, Math.max(shown.length - 1, 0));
    const groups = new Map();
    shown.forEach((item, number) => {
      if (!groups.has(item.group)) groups.set(item.group, startGroup(item.group));
      groups.get(item.group).append(makeOption(item, number));
    });
    list.replaceChildren(...groups.values());
    state.textContent = refusal || (shown.length || !places ? "" : "No results.");
    mark();
  }

  // What somebody has moved to stays chosen.
  function redraw() {
    const kept = active ? shown[active] : null;
    draw();
    const isKept = (item) => ["group", "words", "note"].every((name) => item[name] === kept?.[name]);
    active = Math.max(shown.findIndex(isKept), 0);
    mark();
  }

  function startGroup(name) {
    const group = document.createElement("div");
    const title = document.createElement("span");
    group.setAttribute("role", "group");
    group.setAttribute("aria-labelledby", title.id = `palette-${name.toLowerCase().replaceAll(" ", "-")}`);
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
    const note = document.createElement("span");
    note.className = "note";
    note.append(item.note ?? "", ...(item.key?.split(" ") ?? []).flatMap((key) => [" ", makeKey(key)]));
    if (note.textContent) option.append(" ", note);
    option.addEventListener("mousemove", () => { if (active !== number) { active = number; mark(); } });
    option.addEventListener("click", () => take(number));
    return option;
  }

  function makeKey(key) {
    const cap = document.createElement("kbd");
    cap.textContent = key;
    return cap;
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

  function take(number) {
    const item = shown[number];
    if (!item) return;
    dialog.close();
    setTimeout(item.run); // a click goes on to those who close menus when somebody clicks elsewhere
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
      refusal = "";
    } catch (error) {
      if (error.name === "AbortError") return;
      sessions = [];
      refusal = "Session search is unavailable.";
    }
    redraw();
  }

  function open() {
    if (document.querySelector("dialog[open]")) return;
    actions = readActions();
    sessions = [];
    refusal = "";
    active = 0;
    field.value = "";
    dialog.showModal();
    draw();
    ask();
    askPlaces();
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
      take(active);
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
