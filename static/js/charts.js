// Charts: draws the JSON figure named by data-chart in the colours of the theme shown, and again when that changes.
(() => {
  const CONFIG = { displaylogo: false, displayModeBar: false, responsive: true };
  const TOKEN = /^var\((--[\w-]+)\)$/;

  // A custom property holds its light-dark() text; only a used colour is the resolved one.
  function reader() {
    const probe = document.createElement("span");
    probe.hidden = true;
    document.body.append(probe);
    const known = new Map();
    return {
      colour(name) {
        if (!known.has(name)) {
          probe.style.color = `var(${name})`;
          known.set(name, getComputedStyle(probe).color);
        }
        return known.get(name);
      },
      done: () => probe.remove(),
    };
  }

  function coloured(value, read) {
    if (typeof value === "string") {
      const token = TOKEN.exec(value);
      return token ? read(token[1]) : value;
    }
    if (Array.isArray(value)) return value.map((item) => coloured(item, read));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, read)]));
    }
    return value;
  }

  async function draw(area) {
    const source = document.getElementById(area.dataset.chart);
    if (!source) return;
    const theme = reader();
    const figure = coloured(JSON.parse(source.textContent), theme.colour);
    theme.done();
    await Plotly.react(area, figure.data, figure.layout, CONFIG);
    area.classList.add("drawn");
  }

  function drawWithin(root) {
    for (const area of root.querySelectorAll("[data-chart]")) draw(area);
  }

  drawWithin(document);
  document.addEventListener("plimsoll:theme", () => drawWithin(document));
  document.addEventListener("htmx:load", (event) => {
    if (event.target !== document.body) drawWithin(event.target);
  });
  document.addEventListener("htmx:beforeCleanupElement", (event) => {
    if (event.target.matches?.("[data-chart]")) Plotly.purge(event.target);
  });
})();
