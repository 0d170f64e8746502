/* Lists the files that are chosen or dropped, then sends them in parts that end at line ends: any size, with progress, one result row per file. What the server
   or the network does not take now is sent again, ever more rarely, until it is taken or the person stops it. */
"use strict";

(() => {
  const form = document.querySelector("form[data-upload]");
  if (!form) return;
  const PART_BYTES = 4 * 1024 * 1024;
  const LONGEST_WAIT_SECONDS = 30;
  const MOST_SKIPPED_ROWS = 100;
  const MOST_PROBLEMS = 5;
  const [RESULT, SESSION] = [2, 3]; // columns; figures follow them
  const STOPPED = "Stopped. Lines imported so far are kept";
  const BUSY = new Set([429, 502, 503, 504]);
  const results = document.querySelector("[data-upload-results]");
  const rows = document.querySelector("[data-upload-rows]");
  const summary = document.querySelector("[data-upload-summary]");
  const stop = form.querySelector("[data-upload-stop]");
  const clear = form.querySelector("[data-upload-clear]");
  const button = form.querySelector("button:not([type=button])");
  const area = form.querySelector("[data-drop-area]");
  const inputs = [...form.querySelectorAll("input[type=file]")];
  const dropped = new Map(); // file by its path
  const paths = new WeakMap(); // of dropped files: they do not know the folder they lie in
  let isSending = false;
  const csrf = form.querySelector("[name=csrfmiddlewaretoken]").value;
  for (const hidden of form.querySelectorAll("[data-needs-script]")) hidden.hidden = false;

  const inUnits = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
  const isTranscript = (file) => /\.(jsonl|meta\.json)$/.test(file.name);

  const fullName = (file) => paths.get(file) || file.webkitRelativePath || file.name;
  const listChosen = () => [...inputs.flatMap((input) => [...input.files]), ...dropped.values()];
  const compressedEndings = form.dataset.compressedEndings.split(" ");

  function addRow(name, size, figure, words) {
    const row = rows.insertRow();
    const code = document.createElement("code");
    code.textContent = name;
    row.insertCell().append(code);
    const sizeCell = row.insertCell();
    sizeCell.className = "num";
    sizeCell.textContent = size;
    row.insertCell().textContent = words;
    row.insertCell().textContent = "\u2013";
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
      addRow(fullName(file), inUnits(file.size), "\u2013", reason).cells[RESULT].className = "dim";
    }
    const more = skipped.length - MOST_SKIPPED_ROWS;
    if (more > 0) addRow(`${more.toLocaleString("en")} more`, "\u2013", "\u2013", "Skipped").cells[RESULT].className = "dim";
  }

  /* Files that can be sent, each with its row, and the others. */
  function listRows(words) {
    const chosen = listChosen();
    const skipped = chosen.filter((file) => !isTranscript(file));
    rows.replaceChildren();
    const waiting = chosen.filter(isTranscript)
      .map((file) => [file, addRow(fullName(file), inUnits(file.size), "\u2013", words)]);
    addSkippedRows(skipped);
    return { chosen, skipped, waiting };
  }

  function showChosen() {
    if (isSending) return;
    const { chosen, skipped, waiting } = listRows("Ready");
    results.hidden = clear.hidden = !chosen.length;
    const size = inUnits(waiting.reduce((sum, [file]) => sum + file.size, 0));
    const count = `${waiting.length} ${waiting.length === 1 ? "file" : "files"}, ${size}`;
    summary.textContent = `${count} ready to upload${skipped.length ? `, ${skipped.length} skipped` : ""}`;
  }

  /* All files of something that was dropped, a folder with everything in it. */
  async function collect(entry, found) {
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      const path = entry.fullPath.replace(/^\//, "");
      paths.set(file, path);
      found.push([path, file]);
      return;
    }
    const reader = entry.createReader();
    for (;;) { // a folder tells a hundred names at a time
      const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!entries.length) return;
      for (const each of entries) await collect(each, found);
    }
  }

  async function takeDropped(items) {
    const given = [...items].filter((item) => item.kind === "file")
      .map((item) => [item.webkitGetAsEntry(), item.getAsFile()]); // now: they are gone after the event
    const found = [];
    let failure = "";
    for (const [entry, file] of given) {
      try {
        if (entry) await collect(entry, found);
        else found.push([file.name, file]);
      } catch (error) {
        failure = ` Some dropped files could not be read: ${error.message}`;
      }
    }
    for (const [path, file] of found) dropped.set(path, file);
    showChosen();
    if (failure) {
      results.hidden = false;
      summary.textContent += `.${failure}`;
    }
  }

  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault(); // beside the area too: the browser would leave the page and open the file
    area.classList.toggle("is-over", !isSending);
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) area.classList.remove("is-over");
  });
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    area.classList.remove("is-over");
    if (!isSending) takeDropped(event.dataTransfer.items);
  });
  for (const input of inputs) input.addEventListener("change", showChosen);
  clear.addEventListener("click", () => {
    for (const input of inputs) input.value = "";
    dropped.clear();
    showChosen();
    inputs[0].focus();
  });

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
      row.cells[SESSION + 1 + index].textContent = totals[name].toLocaleString("en");
    });
    row.cells[RESULT].textContent = words;
    row.cells[RESULT].className = isError ? "error" : "";
  }

  function showProblems(cell, totals) {
    if (!totals.problem_count || isRefused(totals)) return;
    const list = document.createElement("ul");
    for (const [line, reason] of totals.problems.slice(0, MOST_PROBLEMS)) {
      list.append(document.createElement("li"));
      list.lastChild.textContent = `line ${line}: ${reason}`;
    }
    cell.append(list);
  }

  function showSessions(cell, sessions) {
    if (!sessions.size) return;
    cell.replaceChildren();
    for (const [url, { name, calls }] of sessions) {
      if (cell.hasChildNodes()) cell.append(", ");
      const link = document.createElement("a");
      link.href = url;
      link.textContent = name;
      cell.append(link);
      if (calls) continue;
      const badge = document.createElement("span");
      badge.className = "badge";
      badge.textContent = "no calls";
      cell.append(" ", badge);
    }
  }

  const countOf = (count) => (count === 1 ? "1 line" : `${count.toLocaleString("en")} lines`);
  const isRefused = (totals) => Object.keys(totals.refused).length > 0 && !totals.new_lines;

  function describe(totals) {
    const refused = Object.entries(totals.refused)
      .map(([reason, count]) => `${countOf(count)} not imported: ${reason}. `).join("");
    if (isRefused(totals)) return refused.trim();
    if (totals.problem_count) {
      return `${refused}Imported. ${countOf(totals.problem_count)} could not be parsed:`;
    }
    return refused + (totals.new_lines ? "Imported" : "Nothing new");
  }

  async function sendFile(file, row, signal, progress) {
    const name = fullName(file);
    const totals = { lines: 0, new_lines: 0, calls: 0, breaks: 0, problem_count: 0, problems: [], refused: {} };
    const sessions = new Map();
    try {
      let line = 1;
      for (let start = 0; start < file.size; ) {
        tell(row, totals, `${Math.floor((100 * start) / file.size)}%`, false);
        const part = await cutPart(file, start);
        const say = (words) => tell(row, totals, words, false);
        const told = await sendPart(fillPart(name, line, part), signal, say);
        for (const key of ["lines", "new_lines", "calls", "breaks", "problem_count"]) totals[key] += told[key];
        totals.problems.push(...told.problems);
        for (const session of told.session_links) sessions.set(session.url, session);
        for (const [reason, count] of Object.entries(told.refused)) {
          totals.refused[reason] = (totals.refused[reason] || 0) + count;
        }
        line += await countLines(part);
        start += part.size;
        progress(part.size);
      }
      tell(row, totals, file.size ? describe(totals) : "The file is empty.", !file.size || isRefused(totals));
      showProblems(row.cells[RESULT], totals);
    } catch (error) {
      tell(row, totals, signal.aborted ? STOPPED : error.message, true);
      return false;
    } finally {
      showSessions(row.cells[SESSION], sessions);
    }
    return !isRefused(totals);
  }

  function setSending(sending) {
    isSending = sending;
    stop.hidden = !sending;
    clear.hidden = sending;
    for (const control of [button, ...inputs]) control.disabled = sending;
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { chosen, skipped, waiting } = listRows("Waiting");
    results.hidden = false;
    if (!chosen.length) {
      summary.textContent = "Choose at least one file.";
      return;
    }
    const stopping = new AbortController();
    const end = () => stopping.abort();
    stop.addEventListener("click", end);
    setSending(true);
    const total = waiting.reduce((sum, [file]) => sum + file.size, 0);
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
    setSending(false);
  });
})();
