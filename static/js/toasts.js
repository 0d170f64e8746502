// Toasts: in the corner, dismissable; all but errors fade after eight seconds unless the pointer or focus is on them.
(() => {
  const STAYS_MS = 8000;

  function dismiss(toast) {
    toast.classList.add("leaving");
    setTimeout(() => toast.remove(), 400);
  }

  function prepare(toast) {
    const close = document.createElement("button");
    close.type = "button";
    close.className = "close";
    close.setAttribute("aria-label", "Dismiss");
    close.textContent = "×";
    close.addEventListener("click", () => dismiss(toast));
    toast.append(close);
    if (toast.classList.contains("error")) return;
    let timer = setTimeout(dismiss, STAYS_MS, toast);
    for (const kind of ["pointerenter", "focusin"]) toast.addEventListener(kind, () => clearTimeout(timer));
    for (const kind of ["pointerleave", "focusout"]) {
      toast.addEventListener(kind, () => {
        clearTimeout(timer);
        timer = setTimeout(dismiss, STAYS_MS, toast);
      });
    }
  }

  const list = document.querySelector("[data-toasts]");
  if (!list) return;
  list.classList.add("floating");
  for (const toast of list.querySelectorAll(".toast")) prepare(toast);
  new MutationObserver((changes) => {
    for (const change of changes) {
      for (const added of change.addedNodes) if (added.matches?.(".toast")) prepare(added);
    }
  }).observe(list, { childList: true });

  // A fragment that failed would otherwise leave the page as if nothing had been asked.
  function say(text) {
    // What asks again and again fails again and again: said once.
    if ([...list.querySelectorAll(".toast > p")].some((words) => words.textContent === text)) return;
    const toast = document.createElement("li");
    toast.className = "toast error";
    toast.setAttribute("role", "alert");
    const kind = document.createElement("span");
    kind.className = "kind";
    kind.textContent = "Error";
    const words = document.createElement("p");
    words.textContent = text;
    toast.append(kind, words);
    list.append(toast);
  }
  document.addEventListener("htmx:responseError", (event) => {
    say(`The server returned an error (${event.detail.xhr.status}). Nothing changed on this page. Try again.`);
  });
  document.addEventListener("htmx:sendError", () => {
    say("Connection to the server failed. Nothing changed on this page. Try again.");
  });
})();
