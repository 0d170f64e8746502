// A link names a line: it is brought into view, and in it the words that were looked for. Without them an address with a
// fragment is the browser's own business.
(() => {
  const wanted = [...document.querySelectorAll(".transcript .is-wanted")].at(-1);
  const found = wanted?.querySelector("mark");
  if (found) found.scrollIntoView({ block: "center" });
  else if (!location.hash) wanted?.scrollIntoView({ block: "start" });
})();
