/* Sends chosen files in parts that end at line ends: any size, with progress, one result row per file. */
"use strict";

(() => {
  const form = document.querySelector("form[data-upload]");
  if (!form) return;
  const PART_BYTES = 4 * 1024 * 1024;
  const results = document.querySelector("[data-upload-results]");
  const rows = document.querySelector("[data-upload-rows]");
  const summary = document.querySelector("[data-upload-summary]");
  const inputs = [...form.querySelectorAll("input[type=file]")];
  const csrf = form.querySelector("[name=csrfmiddlewaretoken]").value;
  for (const hidden of form.querySelectorAll("[data-needs-script]")) hidden.hidden = false;

  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  const isTranscript = (file) => /\.(jsonl|meta\.json)$/.test(file.name);

  function addRow(name) {
    const row = rows.insertRow();
    const code = document.createElement("code");
    code.textContent = name;
    row.insertCell().append(code);
    for (let column = 0; column < 4; column += 1) {
      const cell = row.insertCell();
      cell.className = "num";
      cell.textContent = "0";
    }
    row.insertCell().textContent = "Waiting";
    return row;
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

  async function sendPart(name, line, blob) {
    const body = new FormData();
    body.set("team", form.elements.team.value);
    body.set("name", name);
    body.set("line", String(line));
    body.set("file", blob, "part");
    for (let wait = 1000; ; wait = Math.min(wait * 2, 30000)) {
      const answer = await fetch(form.dataset.upload, { method: "POST", body, headers: { "X-CSRFToken": csrf } });
      if (answer.status !== 503) {
        const told = await answer.json().catch(() => ({ detail: `The server answered ${answer.status}.` }));
        if (!answer.ok) throw new Error(told.detail || `The server answered ${answer.status}.`);
        return told;
      }
      await new Promise((resolve) => { setTimeout(resolve, wait); });
    }
  }

  function tell(row, totals, words, isError) {
    ["lines", "new_lines", "calls", "breaks"].forEach((name, index) => {
      row.cells[index + 1].textContent = totals[name].toLocaleString("en");
    });
    row.cells[5].textContent = words;
    row.cells[5].className = isError ? "error" : "";
  }

  function describe(totals) {
    if (totals.problem_count) {
      const [line, reason] = totals.problems[0];
      const lines = totals.problem_count === 1 ? "1 line" : `${totals.problem_count} lines`;
      return `Taken in; ${lines} could not be read (line ${line}: ${reason})`;
    }
    return totals.new_lines ? "Taken in" : "Nothing new";
  }

  async function sendFile(file, row, progress) {
    const name = file.webkitRelativePath || file.name;
    const totals = { lines: 0, new_lines: 0, calls: 0, breaks: 0, problem_count: 0, problems: [] };
    try {
      let line = 1;
      for (let start = 0; start < file.size; ) {
        tell(row, totals, `${Math.floor((100 * start) / file.size)}%`, false);
        const part = await cutPart(file, start);
        const told = await sendPart(name, line, part);
        for (const key of ["lines", "new_lines", "calls", "breaks", "problem_count"]) totals[key] += told[key];
        totals.problems.push(...told.problems);
        line += await countLines(part);
        start += part.size;
        progress(part.size);
      }
      tell(row, totals, file.size ? describe(totals) : "The file holds no lines.", !file.size);
    } catch (error) {
      tell(row, totals, error.message || "The connection was lost.", true);
      return false;
    }
    return true;
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const chosen = inputs.flatMap((input) => [...input.files]);
    const files = chosen.filter(isTranscript);
    results.hidden = false;
    if (!files.length) {
      summary.textContent = chosen.length ? "None of these is a .jsonl file." : "No file was chosen.";
      return;
    }
    const button = form.querySelector("button");
    button.disabled = true;
    rows.replaceChildren();
    const waiting = files.map((file) => [file, addRow(file.webkitRelativePath || file.name)]);
    const total = files.reduce((sum, file) => sum + file.size, 0);
    let sent = 0;
    let done = 0;
    let failed = 0;
    const show = () => {
      const trouble = failed ? `, ${failed} not taken in` : "";
      summary.textContent = `${done} of ${files.length} files, ${megabytes(sent)} of ${megabytes(total)}${trouble}`;
    };
    show();
    for (const [file, row] of waiting) {
      const isTaken = await sendFile(file, row, (bytes) => { sent += bytes; show(); });
      failed += isTaken ? 0 : 1;
      done += 1;
      show();
    }
    button.disabled = false;
  });
})();
