// A part of the page that is drawn anew keeps what somebody has opened, focused or scrolled in it.
(() => {
  const REDRAWN = "#tab-content, #ways, [data-rests-hidden]"; // besides what comes out of band
  const noted = new WeakMap();

  // New elements are others: they are found again in the nearest thing with a name, a link by where it leads.
  function locate(element) {
    const home = element.parentElement.closest("[id]");
    if (!home) return null;
    const number = [...home.querySelectorAll(element.localName)].indexOf(element);
    return { home: home.id, id: element.id, tag: element.localName, href: element.getAttribute("href"), number };
  }

  function find(root, place) {
    if (place?.id) return root.querySelector(`#${CSS.escape(place.id)}`);
    const home = place && root.querySelector(`#${CSS.escape(place.home)}`);
    if (!home) return null;
    const alike = [...home.querySelectorAll(place.tag)];
    return alike.find((each) => place.href && each.getAttribute("href") === place.href) ?? alike[place.number];
  }

  function note(part) {
    const places = [...part.querySelectorAll("[tabindex]")].filter((each) => each.scrollTop || each.scrollLeft);
    return {
      folds: [...part.querySelectorAll("details")].map((each) => [locate(each), each.open]),
      scrolled: places.map((each) => [locate(each), each.scrollLeft, each.scrollTop]),
      focused: part !== document.activeElement && part.contains(document.activeElement)
        ? locate(document.activeElement) : null,
    };
  }

  function unfold(root, { folds }) {
    for (const [place, isOpen] of folds) {
      const fold = find(root, place);
      if (fold) fold.open = isOpen;
    }
  }

  function settle({ scrolled, focused }) {
    for (const [place, left, top] of scrolled) find(document, place)?.scrollTo({ left, top, behavior: "instant" });
    if (focused && !document.querySelector("dialog[open]")) find(document, focused)?.focus({ preventScroll: true });
  }

  document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
    const kept = note(detail.target);
    unfold(detail.fragment, kept); // before it is there, so that nothing moves
    noted.set(detail, kept);
  });
  document.addEventListener("htmx:oobAfterSwap", ({ detail }) => {
    const kept = noted.get(detail);
    noted.delete(detail);
    if (kept) settle(kept);
  });

  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.shouldSwap && detail.target.matches(REDRAWN)) noted.set(detail.xhr, note(detail.target));
  });
  document.addEventListener("htmx:afterSwap", ({ detail }) => {
    const kept = noted.get(detail.xhr);
    if (!kept) return;
    noted.delete(detail.xhr);
    unfold(document, kept);
    settle(kept);
  });
})();
