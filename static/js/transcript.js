// A link names a line: where its address has no fragment, the line is brought into view.
(() => {
  if (location.hash) return;
  const wanted = document.querySelectorAll(".transcript .is-wanted");
  wanted[wanted.length - 1]?.scrollIntoView({ block: "start" });
})();
