// Countdowns of warm caches: the server wrote the time left, here it ticks. Rows that htmx brings later join in.
// Words beside one that hold only while it is warm, or only once it is cold, say so with data-while.
(() => {
  const ends = new WeakMap();

  function tick() {
    for (const place of document.querySelectorAll("[data-seconds-left]")) {
      if (!ends.has(place)) ends.set(place, Date.now() + 1000 * Number(place.dataset.secondsLeft));
      const left = Math.max(0, Math.round((ends.get(place) - Date.now()) / 1000));
      place.textContent = left ? `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}` : "cold";
      for (const words of place.parentElement.querySelectorAll("[data-while]")) {
        words.hidden = (words.dataset.while === "warm") !== left > 0;
      }
    }
  }

  tick();
  setInterval(tick, 1000);
})();
