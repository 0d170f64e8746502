// The picked call: its details are brought into view where a row or a mark far from them was chosen, with a way back.
(() => {
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  function isInView(place) {
    const { top, bottom } = place.getBoundingClientRect();
    return top >= 0 && Math.min(bottom, top + 120) <= innerHeight;
  }

  function show(element, block) {
    element.scrollIntoView({ block, behavior: still.matches ? "auto" : "smooth" });
  }

  function offerBack(details, chosen) {
    const way = details.querySelector("[data-way-back]");
    const button = way?.querySelector("button");
    if (!button) return;
    const isRow = chosen.matches("a");
    button.textContent = isRow ? "Back to the table" : "Back to the chart";
    button.addEventListener("click", () => {
      show(isRow ? chosen.closest("tr") : chosen, "center");
      if (isRow) chosen.focus({ preventScroll: true });
    });
    way.hidden = false;
  }

  function markRow(key) {
    for (const link of document.querySelectorAll("#calls-table tbody a")) {
      const isPicked = new URL(link.href).searchParams.get("call") === key;
      if (isPicked) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  const pickedKey = () => document.querySelector("#call-details [data-call]")?.dataset.call;

  markRow(pickedKey());
  document.addEventListener("htmx:afterSettle", (event) => {
    const details = document.getElementById("call-details");
    if (!details) return;
    markRow(pickedKey());
    const chosen = event.detail.requestConfig?.elt;
    // A link of the details themselves is gone with what they showed before: whoever clicked it looks at them.
    if (event.detail.target !== details || !chosen?.isConnected) return;
    details.classList.remove("nothing-picked");
    if (isInView(details)) return;
    offerBack(details, chosen);
    show(details, "start");
    details.focus({ preventScroll: true });
  });
})();
