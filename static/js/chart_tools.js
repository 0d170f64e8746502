// The buttons below a chart: zoom, pan, a link to what is shown, files. The timeline follows new calls until it is zoomed
// or panned, and fetches a finer figure for a zoomed range. static/js/charts.js draws.
(() => {
  const REFINE_AFTER_MS = 250;
  const STEP = 0.5; // of the visible range
  const PNG_SCALE = 2;
  const EXPORT_HEAD_PIXELS = 40;
  const EXPORT_FOOT_PIXELS = 60;
  const MOST_FILE_NAME = 60;

  const areaOf = (element) => element.closest("figure.chart").querySelector("[data-chart]");
  const toolsOf = (area) => area.closest("figure.chart").querySelector(".chart-tools");

  // --- the visible range ---

  // Times are text for plotly, in the zone of the reader; counted here as if that were UTC, as plotly itself does.
  const isTimed = (area) => area.layout.xaxis.type === "date";
  const count = (area, end) => isTimed(area) ? Date.parse(`${String(end).replace(" ", "T")}Z`) : Number(end);
  const write = (area, number) =>
    isTimed(area) ? new Date(number).toISOString().replace("T", " ").replace("Z", "") : Math.round(number * 1000) / 1000;
  const counted = (area, range) => range.map((end) => count(area, end));
  const full = (area) => counted(area, area.layout.meta.full);

  function isWhole(area, range) {
    const [low, high] = full(area);
    const slack = (high - low) / 1000;
    return range[0] <= low + slack && range[1] >= high - slack;
  }

  // Keeps its width where it would leave the calls.
  function show(area, low, high) {
    const [first, last] = full(area);
    const width = Math.min(high - low, last - first);
    const start = Math.min(Math.max(low, first), last - width);
    const range = [start, start + width].map((end) => write(area, end));
    return Plotly.relayout(area, { "xaxis.range": range });
  }

  function step(area, action) {
    const [low, high] = counted(area, area.layout.xaxis.range);
    const part = (high - low) * STEP;
    if (action === "in") return show(area, low + part / 2, high - part / 2);
    if (action === "out") return show(area, low - part, high + part);
    if (action === "earlier") return show(area, low - part, high - part);
    return show(area, low + part, high + part);
  }

  const reset = (area) => Plotly.relayout(area, { "xaxis.range": [...area.layout.meta.full] });

  // A call that is picked elsewhere, outside of the zoomed range: the range moves to it, once.
  function showPicked(area) {
    const mark = area.layout.shapes.find((shape) => shape.name === "picked");
    if (!area.seeksPicked || !mark || !area.layout.meta?.full) return;
    area.seeksPicked = false;
    const [low, high] = counted(area, area.layout.xaxis.range);
    const at = count(area, mark.x0);
    if (at < low || at > high) show(area, at - (high - low) / 2, at + (high - low) / 2);
  }

  // --- the address ---

  function addressOf(area) {
    const url = new URL(location.href);
    const [from, to] = area.zoom ?? [];
    const named = { from, to, zone: area.zoom && area.layout.meta.zone };
    for (const [name, value] of Object.entries(named)) {
      if (value === undefined || value === null) url.searchParams.delete(name);
      else url.searchParams.set(name, value);
    }
    return url;
  }

  function tellAddress(area) {
    const link = toolsOf(area)?.querySelector("[data-chart-link]");
    if (!link) return;
    link.value = addressOf(area).href;
  }

  // --- what the figure shows ---

  function settle(area) {
    const tools = toolsOf(area);
    for (const button of tools?.querySelectorAll("button") ?? []) button.disabled = false;
    if (!area.layout.meta?.full) return;
    const isZoomed = Boolean(area.zoom);
    for (const button of tools?.querySelectorAll("[data-needs-zoom]") ?? []) button.disabled = !isZoomed;
    tellAddress(area);
  }

  function noteRange(area) {
    const range = counted(area, area.layout.xaxis.range);
    area.zoom = isWhole(area, range) ? null : range.map((end) => write(area, end));
    settle(area);
    if (!area.dataset.figureUrl) return;
    history.replaceState(history.state, "", addressOf(area));
    if (!area.overview && !area.isRefined && !area.isBehind) return;
    if (area.isRefined && isWider(range, area.shownRange) && area.overview) put(area, area.overview);
    area.shownRange = range;
    clearTimeout(area.refineTimer);
    area.refineTimer = setTimeout(() => fetchFigure(area), REFINE_AFTER_MS);
  }

  // A figure of a zoomed range is coarse outside of it.
  const isWider = ([low, high], [oldLow, oldHigh]) => high - low > (oldHigh - oldLow) * 1.2;

  function put(area, figure) {
    document.getElementById(area.dataset.chart).textContent = figure;
    area.dispatchEvent(new CustomEvent("plimsoll:figure", { bubbles: true }));
  }

  // A later answer wins; one for a range that is left meanwhile is of no use.
  async function fetchFigure(area) {
    const url = new URL(area.dataset.figureUrl, location.href);
    for (const name of ["from", "to", "zone"]) {
      const value = addressOf(area).searchParams.get(name);
      if (value !== null) url.searchParams.set(name, value);
    }
    if (area.pickedKey) url.searchParams.set("call", area.pickedKey);
    const asked = area.asked = {};
    const answer = await fetch(url, { redirect: "manual", headers: { "HX-Request": "true", "HX-Target": "timeline-figure" } })
      .catch(() => null); // unreachable: the figure stays as it is, and static/js/live.js says so
    if (!answer?.ok) return;
    const { figure, title, note } = await answer.json();
    if (asked !== area.asked || !area.isConnected) return;
    const frame = area.closest("figure.chart");
    frame.querySelector("[data-chart-title]").textContent = title;
    const notes = frame.querySelector("[data-chart-note]");
    if (notes) notes.textContent = note;
    area.setAttribute("aria-label", `${title}. The data is in the table below.`);
    area.isBehind = false;
    remember(area, JSON.stringify(figure), figure.layout.meta);
    put(area, JSON.stringify(figure));
  }

  // Of a long session the whole figure is kept, to be there at once when the zoom is reset.
  function remember(area, figure, meta) {
    area.isRefined = Boolean(meta.zoom);
    if (!meta.zoom) area.overview = meta.refines ? figure : null;
  }

  function begin(area) {
    if (area.hasTools) return settle(area);
    area.hasTools = true;
    const meta = area.layout.meta;
    if (meta?.full) {
      area.zoom = meta.zoom;
      area.shownRange = counted(area, area.layout.xaxis.range);
      remember(area, document.getElementById(area.dataset.chart).textContent, meta);
      area.on("plotly_relayout", (change) => {
        if (Object.keys(change).some((key) => key.startsWith("xaxis.range") || key === "xaxis.autorange")) noteRange(area);
      });
      area.on("plotly_doubleclick", () => reset(area));
    }
    settle(area);
  }

  // --- files ---

  // The page's title, legend and background are not part of the figure on the page; a file has to hold them.
  function exported(area) {
    const { width, height } = area.getBoundingClientRect();
    const style = getComputedStyle(document.body);
    const title = area.getAttribute("aria-label").split(". ")[0];
    const { t = 8, b = 8, ...margin } = area.layout.margin ?? {};
    const layout = {
      ...area.layout, width, height: height + EXPORT_HEAD_PIXELS + EXPORT_FOOT_PIXELS,
      paper_bgcolor: style.backgroundColor, title: { text: title, x: 0.01, font: { color: style.color, size: 14 } },
      showlegend: area.data.length > 1, margin: { ...margin, t: t + EXPORT_HEAD_PIXELS, b: b + EXPORT_FOOT_PIXELS },
      legend: { orientation: "h", traceorder: "normal", yref: "container", y: 0, yanchor: "bottom", font: { color: style.color } },
    };
    return { data: area.data, layout };
  }

  async function paint(url, width, height) {
    const picture = new Image();
    picture.src = url; // a data: address, which the content policy allows
    await picture.decode();
    const canvas = document.createElement("canvas");
    canvas.width = width * PNG_SCALE;
    canvas.height = height * PNG_SCALE;
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  }

  async function save(area, format) {
    const figure = exported(area);
    const { width, height } = figure.layout;
    const url = await Plotly.toImage(figure, { format: "svg", width, height });
    const file = format === "png"
      ? await paint(url, width, height)
      : new Blob([decodeURIComponent(url.slice(url.indexOf(",") + 1))], { type: "image/svg+xml" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    const name = `${document.title} ${area.dataset.chart}`.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, MOST_FILE_NAME);
    link.download = `${name}.${format}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href));
  }

  function act(area, action) {
    if (action === "png" || action === "svg") return save(area, action);
    return action === "reset" ? reset(area) : step(area, action);
  }

  document.addEventListener("plimsoll:drawn", (event) => {
    begin(event.target);
    showPicked(event.target);
  });
  document.addEventListener("plimsoll:marked", (event) => showPicked(event.target));
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-chart-do]");
    if (button) act(areaOf(button), button.dataset.chartDo);
  });
  document.addEventListener("plimsoll:unmarked", (event) => {
    if (event.target.dataset.figureUrl) fetchFigure(event.target);
  });
  // A call that is picked changes the address, and with it the link.
  document.addEventListener("htmx:afterSettle", () => {
    for (const area of document.querySelectorAll(".chart-area.drawn[data-figure-url]")) tellAddress(area);
  });
  // static/js/live.js: new calls. Who has zoomed or panned looks at something; that stays.
  document.addEventListener("plimsoll:more-calls", () => {
    for (const area of document.querySelectorAll(".chart-area.drawn[data-figure-url]")) {
      area.isBehind = Boolean(area.zoom);
      if (!area.zoom) fetchFigure(area);
    }
  });
})();
