// Dialogs: data-dialog-open="id" opens <dialog id>; <details class="confirm"> asks in a dialog what, without a script,
// it asks in place.
(() => {
  function open(dialog, opener) {
    if (dialog.open) return;
    dialog.addEventListener("close", () => opener?.isConnected && opener.focus(), { once: true });
    dialog.showModal();
  }

  // The question is moved, not copied, so its form keeps its token and its fields; on close it goes back.
  function ask(details) {
    const question = details.querySelector(".ask");
    const dialog = document.createElement("dialog");
    const title = document.createElement("h2");
    title.id = "confirm-title";
    title.textContent = details.dataset.confirm || details.querySelector("summary").textContent.trim();
    dialog.setAttribute("aria-labelledby", title.id);

    const submit = question.querySelector("form button:not([type=button])");
    const cancel = document.createElement("button");
    cancel.type = "button";
    cancel.className = "btn quiet";
    cancel.textContent = "Cancel";
    cancel.addEventListener("click", () => dialog.close());
    submit.before(cancel);

    dialog.append(title, question);
    document.body.append(dialog);
    dialog.addEventListener("close", () => {
      cancel.remove();
      details.append(question);
      dialog.remove();
    }, { once: true });
    open(dialog, details.querySelector("summary"));
    cancel.focus();
  }

  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-dialog-open]");
    if (opener) {
      const dialog = document.getElementById(opener.dataset.dialogOpen);
      if (dialog) open(dialog, opener);
      return;
    }
    const summary = event.target.closest("details.confirm > summary");
    if (summary) {
      event.preventDefault();
      ask(summary.parentElement);
      return;
    }
    if (event.target.closest("[data-dialog-close]")) event.target.closest("dialog")?.close();
    else if (event.target instanceof HTMLDialogElement && outside(event)) event.target.close();
  });

  function outside(event) {
    const box = event.target.getBoundingClientRect();
    const { clientX: x, clientY: y } = event;
    return x < box.left || x > box.right || y < box.top || y > box.bottom;
  }
})();
