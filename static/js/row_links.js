// A row of sessions opens like the link in it: a click anywhere in the row, the middle button or Ctrl for a new tab.
// Links, buttons and tooltips in the row keep their own clicks, and text can be selected.
(() => {
  const OWN = "a, button, input, label, select, summary, [tabindex]";

  function linkOf(event) {
    const row = event.target.closest?.(".session-table tr[data-session]");
    if (!row || event.target.closest(OWN)?.matches("tr *")) return null;
    return row.querySelector("a[href]");
  }

  const isSelecting = () => String(getSelection()).trim() !== "";

  document.addEventListener("click", (event) => {
    const link = linkOf(event);
    if (!link || event.defaultPrevented || isSelecting()) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey) window.open(link.href, "_blank", "noopener");
    else link.click();
  });
  document.addEventListener("auxclick", (event) => {
    const link = event.button === 1 ? linkOf(event) : null;
    if (!link) return;
    event.preventDefault();
    window.open(link.href, "_blank", "noopener");
  });
  // The middle button would begin to scroll instead.
  document.addEventListener("mousedown", (event) => {
    if (event.button === 1 && linkOf(event)) event.preventDefault();
  });
})();
