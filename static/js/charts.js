// Charts: draws the JSON figure named by data-chart in the colours of the theme shown, and again when that changes.
(() => {
  const CONFIG = { displaylogo: false, displayModeBar: false, responsive: true };
  // A finger that moves over the figure scrolls the page: it zooms by buttons instead.
  const TOUCHED = { ...CONFIG, displayModeBar: true, modeBarButtons: [["zoomIn2d", "zoomOut2d", "pan2d", "resetScale2d"]] };
  const TOKEN = /var\((--[\w-]+)\)/g;
  const narrow = matchMedia("(max-width: 720px)");

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
      return value.replace(TOKEN, (_, name) => read(name));
    }
    // A long column of numbers holds no colours.
    if (Array.isArray(value)) return typeof value[0] === "number" ? value : value.map((item) => coloured(item, read));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, read)]));
    }
    return value;
  }

  // A column written "=name" stands for one that several traces share.
  function unshare({ data, shared }) {
    for (const trace of shared ? data : []) {
      for (const [key, value] of Object.entries(trace)) {
        if (typeof value === "string" && value.startsWith("=")) trace[key] = shared[value.slice(1)];
      }
    }
  }

  function mark(area, x) {
    const line = { color: getComputedStyle(area).color, width: 1 };
    return { type: "line", name: "picked", x0: x, x1: x, y0: 0, y1: 1, yref: "paper", line };
  }

  // A click on a call asks for its details: ?call=KEY, and &break=KEY where a cache break lies at the same place.
  function pick(area, points) {
    const url = new URL(area.dataset.pickUrl, location.href);
    // The hover gathers what lies near, a break a few calls away too; the call under the pointer decides.
    const call = points.find((point) => point.data.meta === "call") ?? points.find((point) => point.data.meta);
    if (!call) return;
    const { x } = call;
    for (const point of points) {
      if (point.data.meta && point.x === x) url.searchParams.set(point.data.meta, point.customdata);
    }
    area.pickedAt = x;
    Plotly.relayout(area, { shapes: [...area.shapesAtRest, mark(area, x)] });
    htmx.ajax("GET", url.pathname + url.search, { source: area, target: area.dataset.pickTarget, swap: "innerHTML" });
  }

  function listen(area) {
    if (area.isListening || !area.dataset.pickUrl) return;
    area.isListening = true;
    area.on("plotly_click", ({ points }) => pick(area, points));
  }

  async function draw(area) {
    const source = document.getElementById(area.dataset.chart);
    if (!source) return;
    const theme = reader();
    const figure = coloured(JSON.parse(source.textContent), theme.colour);
    theme.done();
    unshare(figure);
    const isTouched = matchMedia("(pointer: coarse)").matches;
    const config = isTouched && figure.layout.dragmode === "zoom" ? TOUCHED : CONFIG;
    if (isTouched) figure.layout.dragmode = false;
    if (narrow.matches) {
      for (const shape of figure.layout.shapes ?? []) if (shape.name === "compaction") delete shape.label;
    }
    // The page marks the call of its address; one that was clicked since then goes before it.
    const shapes = figure.layout.shapes ?? [];
    area.shapesAtRest = shapes.filter((shape) => shape.name !== "picked");
    if (area.pickedAt !== undefined) figure.layout.shapes = [...area.shapesAtRest, mark(area, area.pickedAt)];
    await Plotly.react(area, figure.data, figure.layout, config);
    listen(area);
    area.classList.add("drawn");
  }

  // One at a time, with room between them for the page to answer.
  async function drawWithin(root) {
    for (const area of root.querySelectorAll("[data-chart]")) {
      await new Promise((resume) => setTimeout(resume));
      if (area.isConnected) await draw(area);
    }
  }

  drawWithin(document);
  document.addEventListener("plimsoll:theme", () => drawWithin(document));
  narrow.addEventListener("change", () => drawWithin(document));
  document.addEventListener("htmx:load", (event) => {
    if (event.target !== document.body) drawWithin(event.target);
  });
  document.addEventListener("htmx:beforeCleanupElement", (event) => {
    if (event.target.matches?.("[data-chart]")) Plotly.purge(event.target);
  });
})();
