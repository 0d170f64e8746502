/* Sends chosen files in parts that end at line ends: any size, with progress, one result row per file. What the server
   or the network does not take now is sent again, ever more rarely, until it is taken or the person stops it. */
"use strict";

(() => {
  const form = document.querySelector("form[data-upload]");
  if (!form) return;
  const PART_BYTES = 4 * 1024 * 1024;
  const LONGEST_WAIT_SECONDS = 30;
  const MOST_SKIPPED_ROWS = 100;
  const RESULT = 1; // the column; figures follow it
  const STOPPED = "Stopped. Lines imported so far are kept";
  const BUSY = new Set([429, 502, 503, 504]);
  const results = document.querySelector("[data-upload-results]");
  const rows = document.querySelector("[data-upload-rows]");
  const summary = document.querySelector("[data-upload-summary]");
  const stop = form.querySelector("[data-upload-stop]");
  const inputs = [...form.querySelectorAll("input[type=file]")];
  const csrf = form.querySelector("[name=csrfmiddlewaretoken]").value;
  for (const hidden of form.querySelectorAll("[data-needs-script]")) hidden.hidden = false;

  const inUnits = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
  const isTranscript = (file) => /\.(jsonl|meta\.json)$/.test(file.name);

  const fullName = (file) => file.webkitRelativePath || file.name;
  const compressedEndings = form.dataset.compressedEndings.split(" ");

  function addRow(name, figure, words) {
    const row = rows.insertRow();
    const code = document.createElement("code");
    code.textContent = name;
    row.insertCell().append(code);
    row.insertCell().textContent = words;
    for (let column = 0; column < 4; column += 1) {
      const cell = row.insertCell();
      cell.className = "num";
      cell.textContent = figure;
    }
    return row;
  }

  /* One row for each file that is not sent, with the reason; a folder may hold thousands, so the rest share one row. */
  function addSkippedRows(skipped) {
    for (const file of skipped.slice(0, MOST_SKIPPED_ROWS)) {
      const isCompressed = compressedEndings.some((ending) => file.name.toLowerCase().endsWith(ending));
      const reason = isCompressed ? form.dataset.skippedCompressed : form.dataset.skippedOther;
      addRow(fullName(file), "\u2013", reason).cells[RESULT].className = "dim";
    }
    const more = skipped.length - MOST_SKIPPED_ROWS;
    if (more > 0) addRow(`${more.toLocaleString("en")} more`, "\u2013", "Skipped").cells[RESULT].className = "dim";
  }

  /* The part of a file from `start` that ends after its last line end, or the rest of the file. */
  async function cutPart(file, start) {
    for (let size = PART_BYTES; ; size *= 2) {
      const blob = file.slice(start, start + size);
      if (start + size >= file.size) return blob;
      const bytes = new Uint8Array(await blob.arrayBuffer());
      const end = bytes.lastIndexOf(10) + 1;
      if (end) return blob.slice(0, end);
    }
  }

  async function countLines(blob) {
    let count = 0;
    for (const byte of new Uint8Array(await blob.arrayBuffer())) count += byte === 10;
    return count;
  }

  /* Waits, unless the person stops it. */
  function rest(seconds, signal) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, seconds * 1000);
      signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
    });
  }

  /* The answer, or null where there is none: the network is away. */
  async function post(body, signal) {
    try {
      return await fetch(form.dataset.upload, { method: "POST", body, headers: { "X-CSRFToken": csrf }, signal });
    } catch {
      signal.throwIfAborted();
      return null;
    }
  }

  /* What the server told of it. `say` tells why it is not taken yet. */
  async function sendPart(body, signal, say) {
    for (let wait = 1; ; wait = Math.min(wait * 2, LONGEST_WAIT_SECONDS)) {
      const answer = await post(body, signal);
      if (answer && !BUSY.has(answer.status)) {
        const told = await answer.json().catch(() => ({}));
        if (!answer.ok) throw new Error(told.detail || `The server returned an error (${answer.status}).`);
        return told;
      }
      const asked = Number(answer?.headers.get("Retry-After")) || 0;
      const seconds = Math.max(wait, Math.min(asked, LONGEST_WAIT_SECONDS));
      say(`${answer ? "The server is busy" : "Connection to the server lost"}. Retrying in ${seconds} s`);
      await rest(seconds, signal);
      signal.throwIfAborted();
    }
  }

  function fillPart(name, line, blob) {
    const body = new FormData();
    body.set("team", form.elements.team.value);
    body.set("name", name);
    body.set("line", String(line));
    body.set("file", blob, "part");
    return body;
  }

  function tell(row, totals, words, isError) {
    ["lines", "new_lines", "calls", "breaks"].forEach((name, index) => {
      row.cells[RESULT + 1 + index].textContent = totals[name].toLocaleString("en");
    });
    row.cells[RESULT].textContent = words;
    row.cells[RESULT].className = isError ? "error" : "";
  }

  const countOf = (count) => (count === 1 ? "1 line" : `${count.toLocaleString("en")} lines`);
  const isRefused = (totals) => Object.keys(totals.refused).length > 0 && !totals.new_lines;

  function describe(totals) {
    const refused = Object.entries(totals.refused)
      .map(([reason, count]) => `${countOf(count)} not imported: ${reason}. `).join("");
    if (isRefused(totals)) return refused.trim();
    if (totals.problem_count) {
      const [line, reason] = totals.problems[0];
      return `${refused}Imported. ${countOf(totals.problem_count)} could not be parsed (line ${line}: ${reason})`;
    }
    return refused + (totals.new_lines ? "Imported" : "Nothing new");
  }

  async function sendFile(file, row, signal, progress) {
    const name = fullName(file);
    const totals = { lines: 0, new_lines: 0, calls: 0, breaks: 0, problem_count: 0, problems: [], refused: {} };
    try {
      let line = 1;
      for (let start = 0; start < file.size; ) {
        tell(row, totals, `${Math.floor((100 * start) / file.size)}%`, false);
        const part = await cutPart(file, start);
        const say = (words) => tell(row, totals, words, false);
        const told = await sendPart(fillPart(name, line, part), signal, say);
        for (const key of ["lines", "new_lines", "calls", "breaks", "problem_count"]) totals[key] += told[key];
        totals.problems.push(...told.problems);
        for (const [reason, count] of Object.entries(told.refused)) {
          totals.refused[reason] = (totals.refused[reason] || 0) + count;
        }
        line += await countLines(part);
        start += part.size;
        progress(part.size);
      }
      tell(row, totals, file.size ? describe(totals) : "The file is empty.", !file.size || isRefused(totals));
    } catch (error) {
      tell(row, totals, signal.aborted ? STOPPED : error.message, true);
      return false;
    }
    return !isRefused(totals);
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const chosen = inputs.flatMap((input) => [...input.files]);
    const files = chosen.filter(isTranscript);
    const skipped = chosen.filter((file) => !isTranscript(file));
    results.hidden = false;
    rows.replaceChildren();
    if (!chosen.length) {
      summary.textContent = "Choose at least one file.";
      return;
    }
    const button = form.querySelector("button:not([type=button])");
    const stopping = new AbortController();
    const end = () => stopping.abort();
    stop.addEventListener("click", end);
    button.disabled = true;
    stop.hidden = false;
    const waiting = files.map((file) => [file, addRow(fullName(file), "0", "Waiting")]);
    addSkippedRows(skipped);
    const total = files.reduce((sum, file) => sum + file.size, 0);
    let sent = 0;
    let done = 0;
    let failed = 0;
    const show = () => {
      const trouble = (failed ? `, ${failed} not imported` : "") + (skipped.length ? `, ${skipped.length} skipped` : "");
      const count = `${done} of ${chosen.length} ${chosen.length === 1 ? "file" : "files"}`;
      summary.textContent = `${count}, ${inUnits(sent)} of ${inUnits(total)}${trouble}`;
    };
    show();
    for (const [file, row] of waiting) {
      if (stopping.signal.aborted) row.cells[RESULT].textContent = "Not uploaded";
      const isTaken = !stopping.signal.aborted
        && await sendFile(file, row, stopping.signal, (bytes) => { sent += bytes; show(); });
      failed += isTaken ? 0 : 1;
      done += 1;
      show();
    }
    stop.removeEventListener("click", end);
    stop.hidden = true;
    button.disabled = false;
  });
})();
