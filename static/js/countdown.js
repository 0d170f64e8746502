// Countdowns: data-countdown holds the moment, data-over what is said once it has passed.
(() => {
  function say(seconds) {
    const minutes = Math.floor(seconds / 60);
    if (minutes >= 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
    return minutes ? `${minutes} min ${seconds % 60} s left` : `${seconds} s left`;
  }

  function tick() {
    for (const place of document.querySelectorAll("[data-countdown]")) {
      const seconds = Math.ceil((Date.parse(place.dataset.countdown) - Date.now()) / 1000);
      const words = seconds > 0 ? say(seconds) : place.dataset.over;
      if (place.textContent !== words) place.textContent = words;
    }
  }

  tick();
  setInterval(tick, 1000);
})();
