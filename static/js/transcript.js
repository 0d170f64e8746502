// A link names a line: it is brought into view, and in it the words that were looked for. Without them an address with a
// fragment is the browser's own business. The links to the previous and the next prompt go from the prompt in view.
(() => {
  const wanted = [...document.querySelectorAll(".transcript .is-wanted")].at(-1);
  const found = wanted?.querySelector("mark");
  if (found) found.scrollIntoView({ block: "center" });
  else if (!location.hash) wanted?.scrollIntoView({ block: "start" });

  const prompts = [...document.querySelectorAll(".transcript > .is-prompt")];
  const top = (prompt) => prompt.getBoundingClientRect().top - parseFloat(getComputedStyle(prompt).scrollMarginTop);
  const isVisible = (prompt) => prompt.getBoundingClientRect().bottom > 0 && top(prompt) < innerHeight;

  // At the end of a page the last prompts cannot reach the top of the window: the one that has the focus decides.
  function findNeighbour(by) {
    const focused = prompts.findIndex((prompt) => prompt.contains(document.activeElement) && isVisible(prompt));
    if (focused >= 0) return prompts[focused + by];
    return by > 0 ? prompts.find((prompt) => top(prompt) > 1) : prompts.findLast((prompt) => top(prompt) < -1);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-prompt-step]");
    if (!link || !prompts.length) return;
    const by = Number(link.dataset.promptStep);
    const prompt = findNeighbour(by);
    const elsewhere = (by > 0 ? prompts.at(-1) : prompts[0]).querySelector(`a[rel="${by > 0 ? "next" : "prev"}"]`);
    event.preventDefault();
    if (!prompt) return elsewhere?.click();
    prompt.tabIndex = -1;
    prompt.focus({ preventScroll: true });
    prompt.scrollIntoView({ block: "start" });
  });
})();
