// Charts: draws the JSON figure named by data-chart in the colours of the theme shown, and again when that changes.
(() => {
  const CONFIG = { displaylogo: false, displayModeBar: false, responsive: true };
  // A finger that moves over the figure scrolls the page: it zooms by buttons instead.
  const TOUCHED = { ...CONFIG, displayModeBar: true, modeBarButtons: [["zoomIn2d", "zoomOut2d", "pan2d", "resetScale2d"]] };
  const TOKEN = /var\((--[\w-]+)\)/g;
  const narrow = matchMedia("(max-width: 720px)");
  const MOST_SINGLE_TICKS = 12; // as in dashboard/charts
  // Paper is light, and as wide as this at the most; a figure does not shrink by itself when its page is laid out for it.
  const PAPER_PIXELS = 680;
  let isOnPaper = false;

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

  // The page marks the call of its address; one that was picked since then goes before it.
  function shapesOf(area, data) {
    if (area.pickedKey === undefined) return area.shapesDrawn;
    const rest = area.shapesDrawn.filter((shape) => shape.name !== "picked");
    for (const trace of data) {
      const index = trace.meta === "call" ? trace.customdata.indexOf(area.pickedKey) : -1;
      if (index >= 0) return [...rest, mark(area, trace.x[index])];
    }
    return rest;
  }

  function remark(area, key) {
    area.pickedKey = key;
    if (area.data) Plotly.relayout(area, { shapes: shapesOf(area, area.data) });
  }

  // A click on a call, or on a mark that belongs to one, asks for its details.
  function pick(area, points) {
    // The hover gathers what lies near, a break a few calls away too; the call under the pointer decides.
    const point = points.find(({ data }) => data.meta === "call") ?? points.find(({ data }) => data.meta);
    if (!point) return;
    const url = new URL(area.dataset.pickUrl, location.href);
    url.searchParams.set("call", point.customdata);
    remark(area, point.customdata);
    htmx.ajax("GET", url.pathname + url.search, { source: area, target: area.dataset.pickTarget, swap: "innerHTML" });
  }

  // Calls have whole numbers, however few of them are zoomed to.
  function tick(area) {
    const axis = area._fullLayout.xaxis;
    if (axis?.tickformat !== ",d") return;
    const isSingle = axis.range[1] - axis.range[0] <= MOST_SINGLE_TICKS;
    if (isSingle === (axis.tickmode === "linear")) return;
    Plotly.relayout(area, { "xaxis.tickmode": isSingle ? "linear" : "auto", "xaxis.dtick": isSingle ? 1 : null });
  }

  function listen(area) {
    if (area.isListening) return;
    area.isListening = true;
    area.on("plotly_relayout", () => tick(area));
    if (area.dataset.pickUrl) area.on("plotly_click", ({ points }) => pick(area, points));
  }

  // Names of lines stand in the margin, and those of compactions above the figure, where there is room for them.
  function fit(layout) {
    for (const shape of layout.shapes ?? []) if (shape.name === "compaction") delete shape.label;
    if (!layout.annotations) return;
    layout.annotations = layout.annotations.filter((label) => label.name !== "line");
    delete layout.margin.r;
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
    if (narrow.matches) fit(figure.layout);
    if (isOnPaper) figure.layout.width = Math.min(area.clientWidth, PAPER_PIXELS);
    area.shapesDrawn = figure.layout.shapes ?? [];
    figure.layout.shapes = shapesOf(area, figure.data);
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

  // Before a page is printed there is no time to wait: all figures at once, in the light colours, and back again.
  function turnToPaper(isPaper) {
    if (isPaper === isOnPaper) return;
    isOnPaper = isPaper;
    const root = document.documentElement;
    const shown = root.style.colorScheme;
    if (isPaper) root.style.colorScheme = "light";
    for (const area of document.querySelectorAll("[data-chart].drawn")) {
      draw(area);
      if (!isPaper && area.offsetParent) Plotly.Plots.resize(area);
    }
    root.style.colorScheme = shown;
  }

  // What is picked elsewhere, in a table or by a link, is marked in the figure too; links to this page keep it.
  function follow(place) {
    const key = place.querySelector("[data-call]")?.dataset.call;
    if (key === undefined) return;
    for (const area of document.querySelectorAll("[data-pick-target]")) {
      if (area.dataset.pickTarget === `#${place.id}`) remark(area, key);
    }
    for (const link of document.querySelectorAll("a[data-keeps-call]")) {
      const url = new URL(link.href);
      url.searchParams.set("call", key);
      link.href = url.href;
    }
  }

  drawWithin(document);
  document.addEventListener("plimsoll:theme", () => drawWithin(document));
  narrow.addEventListener("change", () => drawWithin(document));
  addEventListener("beforeprint", () => turnToPaper(true));
  addEventListener("afterprint", () => turnToPaper(false));
  matchMedia("print").addEventListener("change", (event) => turnToPaper(event.matches));
  document.addEventListener("htmx:load", (event) => {
    if (event.target !== document.body) drawWithin(event.target);
  });
  document.addEventListener("htmx:afterSwap", (event) => follow(event.target));
  document.addEventListener("htmx:beforeCleanupElement", (event) => {
    if (event.target.matches?.("[data-chart]")) Plotly.purge(event.target);
  });
})();
