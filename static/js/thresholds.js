// Moves thresholds on the gauge, by pointer or keys, and takes them in percent. The form fields stay the truth: a change
// writes the margin of a threshold and lets the form ask for its preview.
(() => {
  const STEP = 1_000;
  const LARGE_STEP = 10_000;
  const PERCENT_PLACES = 10; // one decimal
  const form = document.querySelector("[data-thresholds-form]");
  if (!form) return;
  let dragged = null;

  const read = (slider, name) => Number(slider.getAttribute(name));
  const now = (slider) => read(slider, "aria-valuenow");
  const windowOf = (slider) => Number(slider.dataset.window);
  const percentOf = (slider) => Math.round((1000 * now(slider)) / windowOf(slider)) / PERCENT_PLACES;
  const write = (number) => number.toLocaleString("en-US");

  // An auto-compact threshold in percent stays one: its field goes before the margin.
  function fieldOf(slider) {
    const percent = form.elements.auto_percent;
    return slider.dataset.style === "auto" && percent.value.trim() ? percent : form.elements[slider.dataset.field];
  }

  function show(slider, tokens) {
    const kept = Math.min(Math.max(tokens, read(slider, "aria-valuemin")), read(slider, "aria-valuemax"));
    slider.setAttribute("aria-valuenow", kept);
    const share = Math.round((100 * kept) / windowOf(slider));
    slider.setAttribute("aria-valuetext", `${write(kept)} tokens, ${share}% of the window`);
    slider.style.left = `${(100 * kept) / windowOf(slider)}%`;
  }

  function save(slider) {
    const field = fieldOf(slider);
    const limit = Number(slider.dataset.limit);
    const isPercent = field === form.elements.auto_percent;
    field.value = isPercent ? Math.round((1000 * now(slider)) / limit) / PERCENT_PLACES : write(limit - now(slider));
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function tokensAt(slider, x) {
    const track = slider.parentElement.getBoundingClientRect();
    const tokens = ((x - track.left) / track.width) * windowOf(slider);
    return Math.round(tokens / STEP) * STEP;
  }

  document.addEventListener("pointerdown", (event) => {
    const slider = event.target.closest?.("[data-tick-slider]");
    if (!slider || event.button) return;
    event.preventDefault();
    slider.focus();
    slider.setPointerCapture(event.pointerId);
    slider.classList.add("is-dragged");
    dragged = { slider, before: now(slider) };
  });
  document.addEventListener("pointermove", (event) => {
    if (dragged) show(dragged.slider, tokensAt(dragged.slider, event.clientX));
  });
  // The preview replaces the gauge, so it is asked for when the pointer lets go.
  function release(isKept) {
    if (!dragged) return;
    const { slider, before } = dragged;
    dragged = null;
    slider.classList.remove("is-dragged");
    if (!isKept) return show(slider, before);
    if (now(slider) !== before) save(slider);
  }
  document.addEventListener("pointerup", () => release(true));
  document.addEventListener("pointercancel", () => release(false));

  const steps = {
    ArrowLeft: -STEP, ArrowDown: -STEP, ArrowRight: STEP, ArrowUp: STEP,
    PageDown: -LARGE_STEP, PageUp: LARGE_STEP, Home: -Infinity, End: Infinity,
  };
  document.addEventListener("keydown", (event) => {
    const slider = event.target.closest?.("[data-tick-slider]");
    if (!slider || !Object.hasOwn(steps, event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const before = now(slider);
    show(slider, before + steps[event.key]);
    if (now(slider) !== before) save(slider);
  });

  // Percent: of the first window drawn.
  const firstSlider = (style) => document.querySelector(`[data-tick-slider][data-style="${style}"]`);
  const inputs = [...form.querySelectorAll("[data-percent-of]")];

  function fillPercents() {
    for (const input of inputs) {
      const slider = firstSlider(input.dataset.percentOf);
      input.disabled = !slider;
      if (input !== document.activeElement) input.value = slider ? percentOf(slider) : "";
    }
  }

  form.addEventListener("change", (event) => {
    if (event.target.name !== "entry_unit") return;
    form.querySelector("[data-percent-fields]").hidden = event.target.value !== "percent";
    fillPercents();
  });
  for (const input of inputs) {
    input.addEventListener("input", (event) => {
      event.stopPropagation(); // the margin it writes asks for the preview
      const slider = firstSlider(input.dataset.percentOf);
      const percent = Number(input.value.replace(",", "."));
      if (!slider || !input.value.trim() || Number.isNaN(percent)) return;
      show(slider, Math.round((percent * windowOf(slider)) / 100));
      save(slider);
    });
    input.addEventListener("blur", fillPercents);
  }
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id === "preview") fillPercents();
  });
})();
