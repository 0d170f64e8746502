// Menus and tooltips: one menu open at a time, Esc closes and gives the focus back.
(() => {
  const openMenus = () => document.querySelectorAll("details.menu[open]");

  document.addEventListener("click", (event) => {
    for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("focusin", (event) => {
    for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of openMenus()) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
    for (const shown of document.querySelectorAll(":is(.prov, .gauge-line):is(:hover, :focus-within)")) {
      shown.classList.add("tip-closed");
    }
  });
  // Fixed, so that a table that scrolls inside itself does not cut the tooltip off; kept inside the window.
  function place(owner) {
    const tip = owner.querySelector(".tip");
    const word = owner.getBoundingClientRect();
    tip.style.cssText = "position: fixed; left: 0; right: auto; bottom: auto; top: 0";
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(word.left, innerWidth - width - 8))}px`;
    tip.style.top = `${word.top > height + 12 ? word.top - height - 6 : word.bottom + 6}px`;
  }
  for (const kind of ["mouseover", "focusin"]) {
    document.addEventListener(kind, (event) => {
      const owner = event.target.closest?.(".prov");
      if (owner) place(owner);
    });
  }
  for (const kind of ["mouseout", "focusout"]) {
    document.addEventListener(kind, (event) => {
      event.target.closest?.(".prov, .gauge-line")?.classList.remove("tip-closed");
    });
  }
})();
