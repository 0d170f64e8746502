// Live pages: one stream says what changed, and the parts that show it are fetched. A hidden tab hears nothing and
// catches up when it is seen again. Where no stream is to be had, the page asks every few seconds.
(() => {
  const ASK_EVERY_MS = 5000;
  const FIRST_RETRY_MS = 1000;
  const LONGEST_RETRY_MS = 60000;
  const SILENCE_MS = 40000; // the server says something every 15 s
  const NOUNS = { timeline: "call", context: "call", compactions: "compaction", breaks: "cache break" };

  let place = null; // what the page remembers of the moment it was drawn
  let known = new Map(); // changes known so far, by team
  let source = null;
  let heardAt = 0;
  let answeredAt = 0; // when the server was last there
  let retryMs = FIRST_RETRY_MS;
  let retryTimer = 0;
  let askTimer = 0;
  let asking = {}; // another object as soon as there is a stream again: what was asked before asks no further

  const about = (ms) => ms * (0.8 + 0.4 * Math.random());
  const shownIds = () => [...document.querySelectorAll("[data-session]")].map((each) => each.dataset.session);

  function query() {
    const asked = new URLSearchParams({ since: [...known].map((pair) => pair.join(":")).join(",") });
    asked.set("sessions", shownIds().join(","));
    if ("wide" in place.dataset) asked.set("wide", "yes");
    return asked;
  }

  // --- hearing of changes ---

  function hush() {
    source?.close();
    source = null;
    clearTimeout(retryTimer);
    stopAsking();
  }

  function stopAsking() {
    clearTimeout(askTimer);
    asking = {};
  }

  function listen() {
    hush();
    if (!place || document.hidden) return;
    const openedAt = heardAt = Date.now();
    const opened = source = new EventSource(`/live/stream?${query()}`);
    opened.addEventListener("open", () => {
      heardAt = Date.now();
      stopAsking();
      noteAnswer();
      document.documentElement.dataset.heard = "stream";
    });
    opened.addEventListener("still", () => {
      if (Date.now() - openedAt > FIRST_RETRY_MS) retryMs = FIRST_RETRY_MS; // it lasts
      heardAt = answeredAt = Date.now();
    });
    opened.addEventListener("changed", (event) => {
      heardAt = answeredAt = Date.now();
      take(JSON.parse(event.data));
    });
    opened.addEventListener("end", fall);
    opened.addEventListener("error", fall);
  }

  // The stream was refused, or broke: ask meanwhile, and try it again later and later.
  function fall() {
    hush();
    document.documentElement.dataset.heard = "asking";
    askTimer = setTimeout(ask, about(FIRST_RETRY_MS));
    retryTimer = setTimeout(listen, about(retryMs));
    retryMs = Math.min(2 * retryMs, LONGEST_RETRY_MS);
  }

  async function ask() {
    if (!place || document.hidden) return;
    const own = asking;
    const answer = await get(`/live/changes?${query()}`);
    const news = answer?.ok ? await answer.json() : null;
    if (own !== asking) return; // the stream tells it
    if (!answer || answer.status >= 500) sayLost();
    else noteAnswer();
    if (news) take(news);
    if (answer?.type === "opaqueredirect") return hush(); // signed out
    askTimer = setTimeout(ask, about(ASK_EVERY_MS));
  }

  async function get(url) {
    try {
      return await fetch(url, { redirect: "manual", headers: { "HX-Request": "true" } });
    } catch {
      return null; // unreachable: whoever asked tries again
    }
  }

  // One quiet voice, there before it speaks: a live region made at that moment is often not heard.
  const lost = document.createElement("p");
  lost.className = "live-lost";
  lost.setAttribute("role", "status");

  function noteAnswer() {
    answeredAt = Date.now();
    lost.replaceChildren();
  }

  function sayLost() {
    if (lost.hasChildNodes()) return;
    const age = document.createElement("time");
    age.dataset.age = Math.round((Date.now() - answeredAt) / 1000);
    lost.append("Connection to Plimsoll lost ", age, ". Retrying…");
    document.dispatchEvent(new CustomEvent("plimsoll:ages")); // static/js/ages.js says it
  }

  // --- what to do about them ---

  function take({ teams, sessions, all }) {
    known = new Map(Object.entries(teams));
    const shown = shownIds();
    const changed = all ? shown : shown.filter((id) => id in sessions);
    for (const id of changed) staleRows.add(id);
    if (staleRows.size) parts.rows();
    if (changed.length && place.dataset.sessionUrl) parts.session();
    if (place.dataset.overviewUrl) parts.overview();
    if (place.dataset.offerUrl) parts.offer();
  }

  // At once, then not again before the pause is over; what comes meanwhile is done at its end.
  function paced(pauseMs, act) {
    let timer = 0;
    let isWaiting = false;
    async function run() {
      let isDone = false;
      isWaiting = false;
      try {
        isDone = await act();
      } finally {
        timer = setTimeout(() => {
          timer = 0;
          if (isWaiting || !isDone) run();
        }, pauseMs);
      }
    }
    return () => {
      isWaiting = true;
      if (!timer) {
        timer = -1;
        run();
      }
    };
  }

  // The server sends the list of sessions again when it is one of other days than the page shows.
  function overviewUrl() {
    const url = new URL(place.dataset.overviewUrl, location.href);
    const period = document.getElementById("risk-list")?.dataset.period;
    if (period) url.searchParams.set("period", period);
    return url;
  }

  const staleRows = new Set();

  async function drawRows() {
    const ids = [...staleRows].filter((id) => document.querySelector(`tr[data-session="${id}"]`));
    staleRows.clear();
    if (!ids.length) return true;
    const columns = document.querySelector("[data-rows][data-columns]")?.dataset.columns ?? "";
    const answer = await get(`/live/rows?sessions=${ids.join(",")}&columns=${columns}`);
    if (!answer?.ok) {
      for (const id of ids) staleRows.add(id);
      return false;
    }
    const drawn = document.createElement("template");
    drawn.innerHTML = await answer.text();
    for (const row of drawn.content.querySelectorAll("tr[data-session]")) {
      for (const old of document.querySelectorAll(`tr[data-session="${row.dataset.session}"]`)) putRow(old, row);
    }
    for (const list of document.querySelectorAll("[data-by-risk]")) orderByRisk(list);
    return true;
  }

  // A list that says it has the riskiest first keeps that order while its rows change. Rows that stay in their order
  // are not touched: one that moves takes its focus along.
  function orderByRisk(list) {
    const risk = (row) => row.dataset.risk.split(" ").map(Number);
    const byRisk = (one, other) => {
      const [a, b] = [risk(one), risk(other)];
      const at = a.findIndex((number, index) => number !== b[index]);
      return at < 0 ? 0 : a[at] - b[at];
    };
    const focused = list.contains(document.activeElement) ? document.activeElement : null;
    let next = null;
    for (const row of [...list.rows].sort(byRisk).reverse()) {
      if (row.nextElementSibling !== next) list.insertBefore(row, next);
      next = row;
    }
    if (focused && document.activeElement !== focused) focused.focus({ preventScroll: true });
  }

  function putRow(old, drawn) {
    const row = drawn.cloneNode(true);
    const hadFocus = old.contains(document.activeElement);
    row.classList.toggle("is-current", old.classList.contains("is-current"));
    old.replaceWith(row);
    if (hadFocus) row.querySelector("a[href]")?.focus({ preventScroll: true });
    mark(row);
  }

  function mark(element) {
    element.classList.add("just-changed");
    element.addEventListener("animationend", () => element.classList.remove("just-changed"), { once: true });
  }

  const figures = () => [...document.querySelectorAll("#session-figures dd, #tiles .figure")];
  // A countdown changes by itself.
  const says = (figure) => figure.querySelector("[data-seconds-left]") ? "" : figure.textContent;

  // Pieces of the answer find their places by their ids; a tooltip that is being read stays where it is.
  async function putPieces(url) {
    if (document.querySelector("main :is(.prov, .gauge-line):is(:hover, :focus-within)")) return false;
    const answer = await get(url);
    if (!answer?.ok) return false;
    const before = figures().map(says);
    htmx.swap("body", await answer.text(), { swapStyle: "none" });
    figures().forEach((figure, index) => {
      if (before[index] !== undefined && says(figure) !== before[index]) mark(figure);
    });
    return true;
  }

  async function drawSession() {
    const isDone = await putPieces(place.dataset.sessionUrl);
    if (isDone) offerCalls();
    return isDone;
  }

  function offerCalls() {
    const offer = document.querySelector("[data-live-offer]");
    const more = Number(document.getElementById("session-count").dataset.count)
      - Number(document.getElementById("tab-content").dataset.shown);
    const words = sayMore(more, NOUNS[offer.dataset.liveNoun]);
    if (more > 0) document.dispatchEvent(new CustomEvent("plimsoll:more-calls")); // static/js/chart_tools.js
    if (!words || more <= 0) return offer.replaceChildren();
    const link = offer.querySelector("a") ?? startOffer(offer);
    link.href = newestUrl();
    link.textContent = `Show ${words}`;
  }

  function startOffer(offer) {
    const link = document.createElement("a");
    link.addEventListener("click", showCalls);
    offer.replaceChildren(link);
    return link;
  }

  // A tab that is paged says where its newest page is. How many lines of a transcript are new is not counted.
  const newestPage = () => document.querySelector("#tab-content [data-newest-url]");
  const newestUrl = () => newestPage()?.dataset.newestUrl ?? location.pathname + location.search;

  function sayMore(more, noun) {
    if (noun) return `${more.toLocaleString("en")} new ${noun}${more === 1 ? "" : "s"}`;
    return newestPage() ? "new lines" : "";
  }

  async function showCalls(event) {
    event.preventDefault();
    const url = newestUrl();
    await htmx.ajax("GET", url, { target: "#tab-content", swap: "outerHTML" });
    if (newestPage()) {
      history.replaceState(history.state, "", url);
      document.getElementById("transcript-end")?.scrollIntoView({ block: "end" });
    }
    offerCalls();
  }

  async function drawOffer() {
    const [offer, order] = ["[data-live-offer]", "[data-live-order]"].map((each) => document.querySelector(each));
    const url = new URL(place.dataset.offerUrl, location.href);
    url.searchParams.set("newest", place.dataset.newest);
    url.searchParams.set("drawn_at", place.dataset.drawnAt);
    url.searchParams.set("sessions", shownIds().join(","));
    const answer = await get(url);
    if (!answer?.ok) return false;
    const drawn = document.createElement("template");
    drawn.innerHTML = await answer.text();
    takeAway(drawn.content.querySelector("[data-gone]"));
    const reordered = drawn.content.querySelector("[data-order]");
    reordered?.remove();
    putWords(order, reordered?.innerHTML ?? "");
    putWords(offer, drawn.innerHTML.trim());
    return true;
  }

  function putWords(element, words) {
    if (!element?.isConnected || element.innerHTML === words) return;
    const hadFocus = element.contains(document.activeElement);
    element.innerHTML = words;
    htmx.process(element);
    if (hadFocus) element.querySelector("a")?.focus({ preventScroll: true });
  }

  // Sessions that were deleted since the page was drawn.
  function takeAway(gone) {
    for (const id of gone?.dataset.gone.split(",") ?? []) {
      for (const row of document.querySelectorAll(`tr[data-session="${id}"]`)) row.remove();
    }
    gone?.remove();
  }

  const parts = {
    rows: paced(700, drawRows),
    session: paced(1000, drawSession),
    overview: paced(3000, () => putPieces(overviewUrl())),
    offer: paced(5000, drawOffer),
  };

  // --- when to listen ---

  function begin() {
    const found = document.querySelector("[data-live]");
    if (found === place) return;
    place = found;
    if (!place) return hush();
    answeredAt = Date.now(); // the page itself came
    if (!lost.isConnected) document.querySelector("main").append(lost);
    const counts = place.dataset.since.split(",").filter(Boolean).map((part) => part.split(":"));
    known = new Map(counts.map(([slug, number]) => [slug, Number(number)]));
    retryMs = FIRST_RETRY_MS;
    listen();
  }

  document.addEventListener("visibilitychange", () => document.hidden ? hush() : listen());
  addEventListener("pagehide", hush);
  addEventListener("pageshow", (event) => event.persisted && listen());
  document.addEventListener("htmx:afterSettle", () => document.readyState === "complete" && begin());
  setInterval(() => {
    if (source && Date.now() - heardAt > SILENCE_MS) fall();
  }, 10000);
  // What a page asks for again and again by itself rests while nobody looks.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && event.target.matches("[data-rests-hidden]")) event.preventDefault();
  });
  // The page itself goes first.
  if (document.readyState === "complete") begin();
  else addEventListener("load", begin, { once: true });
})();
