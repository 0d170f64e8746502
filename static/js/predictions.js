// Cards of a compaction whose losses could not be loaded say so, and offer to try again.
(() => {
  const cards = (event) => (event.target.id === "kind-cards" ? event.target : null);
  document.addEventListener("htmx:beforeRequest", (event) => cards(event)?.removeAttribute("data-failed"));
  for (const failure of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(failure, (event) => cards(event)?.setAttribute("data-failed", ""));
  }
})();
