// The picked call: a drawer over the page. It opens with the answer for a row or a mark in the chart, closes with Esc or
// its button, and gives the focus back. The address names the call while the drawer is open. What the call was picked by
// stays in sight: beside the drawer the chart is narrower, and above a sheet from below the page is scrolled.
(() => {
  const GAP_PIXELS = 8;
  const sheet = matchMedia("(max-width: 1000px)"); // as static/css/session.css
  let opener = null; // where the focus goes when the drawer closes

  const drawer = () => document.getElementById("call-drawer");
  const pickedKey = () => document.querySelector("#call-details [data-call]")?.dataset.call;
  const rows = () => [...document.querySelectorAll("#calls-table tbody a")];
  const keyOf = (link) => new URL(link.href).searchParams.get("call");

  function markRow(key) {
    for (const link of rows()) {
      if (keyOf(link) === key) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  function fitCharts() {
    for (const area of document.querySelectorAll(".drawn[data-pick-url]")) Plotly.Plots.resize(area);
  }

  // By the height of the sheet, which may still be moving.
  function keepInSight(element) {
    if (!sheet.matches) return;
    const room = innerHeight - drawer().offsetHeight - GAP_PIXELS;
    const { top, bottom, height } = element.getBoundingClientRect();
    if (top >= GAP_PIXELS && bottom <= room) return;
    const isAbove = top < GAP_PIXELS || height > room - GAP_PIXELS;
    scrollBy({ top: isAbove ? top - GAP_PIXELS : bottom - room, behavior: "instant" });
  }

  function open(chosen) {
    const wasHidden = drawer().hidden;
    drawer().hidden = false;
    if (wasHidden) fitCharts();
    // A link of the drawer itself is gone with the call it belonged to: the focus stays inside.
    if (!chosen?.isConnected) return keepInSight(findPicked(opener?.closest("tr")));
    opener = chosen;
    drawer().scrollTop = 0;
    drawer().focus({ preventScroll: true });
    keepInSight(findPicked(opener.closest("tr")));
  }

  // The row of the call, or the chart where it was picked there, or where the table shows other calls.
  function findPicked(row) {
    const link = row && rows().find((each) => keyOf(each) === pickedKey());
    return link?.closest("tr") ?? document.querySelector("[data-pick-url]");
  }

  // The table may show another page by now, and a page that was opened by its address has no opener.
  function findOpener(key) {
    if (opener?.isConnected) return opener;
    return rows().find((link) => keyOf(link) === key) ?? document.querySelector("[data-pick-url]");
  }

  function close() {
    const key = pickedKey();
    const target = findOpener(key);
    drawer().hidden = true;
    fitCharts();
    document.getElementById("call-details").replaceChildren();
    markRow(undefined);
    document.dispatchEvent(new CustomEvent("plimsoll:unpicked"));
    const url = new URL(location.href);
    url.searchParams.delete("call");
    url.searchParams.delete("break");
    if (url.hash === "#call-details") url.hash = "";
    history.replaceState(history.state, "", url);
    if (target && !target.matches("a, button")) target.tabIndex = -1;
    target?.focus({ preventScroll: true });
    opener = null;
  }

  // Esc first closes what lies above the drawer: a dialog, a menu, a tooltip. Asked before those have closed.
  function isBelowOthers() {
    return document.querySelector("dialog[open], details.menu[open]")
      || drawer().querySelector(".prov:is(:hover, :focus-within):not(.tip-closed)");
  }

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !drawer() || drawer().hidden || isBelowOthers()) return;
    if (event.target.matches("input, textarea, select")) return;
    close();
  }, { capture: true });
  document.addEventListener("click", (event) => {
    if (event.target.closest(".close-drawer")) close();
  });

  markRow(pickedKey());
  if (pickedKey()) addEventListener("load", () => keepInSight(findPicked()), { once: true });
  document.addEventListener("htmx:afterSettle", (event) => {
    if (!drawer()) return;
    markRow(pickedKey());
    if (event.detail.target?.id === "call-details" && pickedKey()) open(event.detail.requestConfig?.elt);
  });
})();
