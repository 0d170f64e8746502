// Copy buttons: every .code block gets one; data-copy="id" on a button copies that element's text or value.
(() => {
  const SAYS_MS = 2000;

  function fallback(text) {
    // On plain http beyond loopback there is no clipboard API.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "visually-hidden";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }

  async function copy(text) {
    if (!navigator.clipboard) return fallback(text);
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch (refused) {
      if (refused.name !== "NotAllowedError") throw refused;
      return fallback(text);
    }
  }

  function sourceOf(button) {
    const id = button.dataset.copy;
    return id ? document.getElementById(id) : button.parentElement.querySelector("pre");
  }

  function enhance(block) {
    if (block.querySelector("[data-copy]")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.dataset.copy = "";
    button.textContent = "Copy";
    block.append(button);
  }

  function enhanceWithin(root) {
    for (const block of root.querySelectorAll(".code")) enhance(block);
  }

  // One quiet voice for all buttons; a live region made at the moment it speaks is often not heard.
  const voice = document.createElement("span");
  voice.className = "visually-hidden";
  voice.setAttribute("aria-live", "polite");
  document.querySelector("main")?.append(voice);

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    const source = button && sourceOf(button);
    if (!source) return;
    const done = await copy(source.value ?? source.textContent.trim());
    button.dataset.label ??= button.textContent;
    button.textContent = done ? "Copied" : "Select and copy";
    voice.textContent = button.textContent;
    button.focus();
    setTimeout(() => {
      button.textContent = button.dataset.label;
      voice.textContent = "";
    }, SAYS_MS);
  });
  enhanceWithin(document);
  document.addEventListener("htmx:load", (event) => enhanceWithin(event.target));
})();
