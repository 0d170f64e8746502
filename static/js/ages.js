// "3 min ago" grows older while a page is open: the server says how many seconds ago it was, here they pass.
// The steps are those of dashboard/templatetags/plimsoll.py.
(() => {
  const DAY = 86_400;
  const STEPS = [[60, 1, "s"], [3600, 60, "min"], [DAY, 3600, "h"], [100 * DAY, DAY, "day"], [365 * DAY, 30 * DAY, "month"]];
  const WORDS = new Set(["day", "month", "year"]); // the others are signs, without a plural
  const began = new WeakMap();

  function sayDistance(seconds) {
    const [, unitSeconds, unit] = STEPS.find(([limit]) => seconds < limit) ?? [0, 365 * DAY, "year"];
    const count = Math.floor(seconds / unitSeconds);
    return `${count} ${unit}${count !== 1 && WORDS.has(unit) ? "s" : ""}`;
  }

  function sayAge(seconds) {
    if (Math.abs(seconds) < 1) return "just now";
    return seconds > 0 ? `${sayDistance(seconds)} ago` : `in ${sayDistance(-seconds)}`;
  }

  function pass() {
    for (const place of document.querySelectorAll("time[data-age]")) {
      if (!began.has(place)) began.set(place, Date.now() - 1000 * Number(place.dataset.age));
      const words = sayAge(Math.round((Date.now() - began.get(place)) / 1000));
      if (place.textContent !== words) place.textContent = words;
    }
  }

  pass();
  document.addEventListener("plimsoll:ages", pass);
  setInterval(pass, 5000);
})();
