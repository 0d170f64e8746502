// Copy buttons: every .code block gets one; data-copy="id" on a button copies that element's text or value. A block with
// data-key-form lacks its key: that form makes it first.
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

  const keyFormOf = (block) => document.getElementById(block?.dataset.keyForm ?? "");

  // The form draws all blocks anew, with the key; the button of this one among them, or none where no key was made.
  async function fillKeyIn(block) {
    const form = keyFormOf(block);
    const [target, label] = [form.getAttribute("hx-target"), block.querySelector("pre").getAttribute("aria-label")];
    try {
      await htmx.ajax("POST", form.action, { source: form, target, select: target, swap: "outerHTML" });
    } catch {
      return null; // unreachable
    }
    enhanceWithin(document);
    const filled = document.querySelector(`.code:not([data-key-form]) > pre[aria-label="${CSS.escape(label)}"]`);
    return filled?.parentElement.querySelector("[data-copy]");
  }

  function say(button, words) {
    button.dataset.label ??= button.textContent;
    button.textContent = voice.textContent = words;
    button.focus();
    setTimeout(() => {
      button.textContent = button.dataset.label;
      voice.textContent = "";
    }, SAYS_MS);
  }

  function enhance(block) {
    if (block.querySelector("[data-copy]")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.dataset.copy = "";
    button.textContent = keyFormOf(block) ? "Create key and copy" : "Copy";
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
    const asked = event.target.closest("[data-copy]");
    if (!asked || !sourceOf(asked)) return;
    const block = asked.closest("[data-key-form]");
    asked.disabled = true; // one key for two clicks
    const button = keyFormOf(block) ? await fillKeyIn(block) : asked;
    asked.disabled = false;
    if (!button) return say(asked, "Key not created");
    const source = sourceOf(button);
    const done = await copy(source.value ?? source.textContent.trim());
    const copied = block && button === asked ? "Copied without a key" : "Copied";
    say(button, done ? copied : "Copy failed. Select the text");
  });
  enhanceWithin(document);
  document.addEventListener("htmx:load", (event) => enhanceWithin(event.target));
})();
