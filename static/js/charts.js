// Charts: draws the JSON figure named by data-chart in the colours of the theme shown, and again when that changes.
// plotly.js is 1.5 MB: it is fetched after the page is painted and loaded, once a figure is near the visible part.
(() => {
  const PLOTLY = document.currentScript.dataset.plotly;
  const CONFIG = { displaylogo: false, displayModeBar: false, responsive: true, doubleClick: false };
  const TOKEN = /var\((--[\w-]+)\)/g;
  const TEXTS = ["customdata", "text", "labels", "ids", "parents", "ticktext"]; // words of people hold no colours
  const narrow = matchMedia("(max-width: 720px)");
  const LONGEST_ROW_NAME = 12;
  const MOST_SINGLE_TICKS = 12; // as in dashboard/charts
  // Paper is light, and as wide as this at the most; a figure does not shrink by itself when its page is laid out for it.
  const PAPER_PIXELS = 680;
  let isOnPaper = false;

  // --- plotly.js ---

  const idle = window.requestIdleCallback ?? ((act) => setTimeout(act, 200));
  const pageLoaded = new Promise((resolve) => {
    const wait = () => idle(() => resolve(), { timeout: 1000 });
    if (document.readyState === "complete") wait();
    else addEventListener("load", wait, { once: true });
  });
  let fetching = null;

  function fetchPlotly() {
    fetching ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = PLOTLY;
      script.addEventListener("load", resolve);
      script.addEventListener("error", () => reject(new Error("plotly.js did not arrive")));
      document.head.append(script);
    });
    return fetching;
  }

  const near = new IntersectionObserver(async (entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    near.disconnect();
    await pageLoaded;
    try {
      await fetchPlotly();
    } catch {
      // The next figure that comes near tries again; until then the words and the table stand for them all.
      fetching = null;
      for (const area of document.querySelectorAll("[data-chart]")) area.classList.add("failed");
      return;
    }
    await drawWithin(document);
  }, { rootMargin: "300px" });

  // --- the figure ---

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
      return Object.fromEntries(
        Object.entries(value).map(([key, item]) => [
          key, TEXTS.includes(key) && Array.isArray(item) ? item : coloured(item, read),
        ])
      );
    }
    return value;
  }

  // A trace with the x of an earlier one names that one's number: dashboard/charts.
  function unshare(data) {
    for (const trace of data) if (typeof trace.x === "string") trace.x = data[Number(trace.x.slice(1))].x;
  }

  function mark(area, x) {
    const line = { color: getComputedStyle(area).color, width: 1 };
    return { type: "line", name: "picked", x0: x, x1: x, y0: 0, y1: 1, yref: "paper", line };
  }

  // A column of the timeline stands for one of several calls: it names the place of that one last.
  function placeOf(trace, index) {
    const told = trace.customdata[index];
    return Array.isArray(told) ? told.at(-1) : trace.x[index];
  }

  const keyOf = (customdata) => Array.isArray(customdata) ? customdata[0] : customdata;

  // The page marks the call of its address; one that was picked since then goes before it.
  function shapesOf(area, data) {
    if (area.pickedKey === undefined) return area.shapesDrawn;
    const rest = area.shapesDrawn.filter((shape) => shape.name !== "picked");
    if (area.pickedKey === null) return rest; // its details were closed
    for (const trace of data) {
      const index = trace.meta === "call" ? trace.customdata.findIndex((one) => keyOf(one) === area.pickedKey) : -1;
      if (index >= 0) return [...rest, mark(area, placeOf(trace, index))];
    }
    // Of thousands of calls most have no column of their own: only the server knows where they stand.
    if (area.pickedDrawn === area.pickedKey) return area.shapesDrawn;
    area.dispatchEvent(new CustomEvent("plimsoll:unmarked", { bubbles: true }));
    return rest;
  }

  function remark(area, key) {
    area.pickedKey = key;
    area.seeksPicked = key !== null;
    if (!area.data) return;
    Plotly.relayout(area, { shapes: shapesOf(area, area.data) });
    area.dispatchEvent(new CustomEvent("plimsoll:marked", { bubbles: true }));
  }

  // A click on a call, or on a mark that belongs to one, asks for its details.
  function pick(area, [point]) {
    if (!point?.data.meta) return;
    const key = keyOf(point.customdata);
    const url = new URL(area.dataset.pickUrl, location.href);
    url.searchParams.set("call", key);
    remark(area, key);
    htmx.ajax("GET", url.pathname + url.search, { source: area, target: area.dataset.pickTarget, swap: "innerHTML" });
  }

  // Calls have whole numbers, however few of them are zoomed to.
  function tick(area) {
    const axis = area.layout.xaxis;
    if (axis?.tickformat !== ",d") return;
    const isSingle = axis.range[1] - axis.range[0] <= MOST_SINGLE_TICKS;
    if (isSingle === (axis.dtick === 1)) return;
    Plotly.relayout(area, { "xaxis.tickmode": isSingle ? "linear" : "auto", "xaxis.dtick": isSingle ? 1 : null });
  }

  function listen(area) {
    if (area.isListening) return;
    area.isListening = true;
    area.on("plotly_relayout", () => tick(area));
    if (area.dataset.pickUrl) area.on("plotly_click", ({ points }) => pick(area, points));
  }

  // Names of thresholds stand in the margin, and those of compactions above the figure, where there is room for them;
  // those of rows are cut.
  function fit(layout) {
    if (layout.yaxis2) {
      const cut = (name) => name.length > LONGEST_ROW_NAME ? `${name.slice(0, LONGEST_ROW_NAME - 1)}…` : name;
      layout.yaxis2.ticktext = layout.yaxis2.ticktext.map((name) => cut(name.replace(/^sub-agent /, "")));
      layout.yaxis2.tickfont = { size: 11 };
    }
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
    const { data, layout } = figure;
    unshare(data);
    // A finger that moves over the figure scrolls the page: it zooms by the buttons below.
    if (matchMedia("(pointer: coarse)").matches) layout.dragmode = false;
    if (narrow.matches) fit(layout);
    if (isOnPaper) layout.width = Math.min(area.clientWidth, PAPER_PIXELS);
    if (area.zoom) layout.xaxis.range = [...area.zoom]; // static/js/chart_tools.js
    area.shapesDrawn = layout.shapes ?? [];
    area.pickedDrawn = layout.meta?.picked;
    layout.shapes = shapesOf(area, data);
    await Plotly.react(area, data, layout, CONFIG);
    listen(area);
    area.classList.remove("failed");
    area.classList.add("drawn");
    tick(area);
    area.dispatchEvent(new CustomEvent("plimsoll:drawn", { bubbles: true }));
  }

  // One at a time, with room between them for the page to answer.
  async function drawWithin(root) {
    for (const area of root.querySelectorAll("[data-chart]")) {
      if (!window.Plotly) {
        near.observe(area);
        continue;
      }
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

  // The details are closed: no call is picked any more.
  function unfollow() {
    for (const area of document.querySelectorAll("[data-pick-target]")) remark(area, null);
    for (const link of document.querySelectorAll("a[data-keeps-call]")) {
      const url = new URL(link.href);
      url.searchParams.delete("call");
      link.href = url.href;
    }
  }

  drawWithin(document);
  document.addEventListener("plimsoll:unpicked", unfollow);
  document.addEventListener("plimsoll:theme", () => drawWithin(document));
  document.addEventListener("plimsoll:figure", (event) => draw(event.target));
  narrow.addEventListener("change", () => drawWithin(document));
  addEventListener("beforeprint", () => turnToPaper(true));
  addEventListener("afterprint", () => turnToPaper(false));
  matchMedia("print").addEventListener("change", (event) => turnToPaper(event.matches));
  document.addEventListener("htmx:load", (event) => {
    if (event.target !== document.body) drawWithin(event.target);
  });
  document.addEventListener("htmx:afterSwap", (event) => follow(event.target));
  document.addEventListener("htmx:beforeCleanupElement", (event) => {
    if (event.target.matches?.("[data-chart]") && window.Plotly) Plotly.purge(event.target);
  });
})();
