// Theme: flips at once, remembers in the cookie the server reads, tells the charts. Also marks that scripts run.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  for (const element of document.querySelectorAll("[data-needs-script]")) element.hidden = false;

  const darkSystem = matchMedia("(prefers-color-scheme: dark)");
  const shown = () => root.dataset.theme || (darkSystem.matches ? "dark" : "light");

  function remember(theme) {
    const age = theme === "system" ? 0 : 31536000;
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `plimsoll_theme=${theme}; Path=/; Max-Age=${age}; SameSite=Lax${secure}`;
  }

  function tell() {
    document.dispatchEvent(new CustomEvent("plimsoll:theme", { detail: shown() }));
  }

  function choose(theme) {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    const scheme = document.querySelector('meta[name="color-scheme"]');
    if (scheme) scheme.content = theme === "system" ? "light dark" : theme;
    for (const button of document.querySelectorAll('[data-theme-form] button[name="theme"]')) {
      button.setAttribute("aria-pressed", String(button.value === theme));
    }
    remember(theme);
    tell();
  }

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-theme-form]") || !event.submitter) return;
    event.preventDefault();
    choose(event.submitter.value);
  });
  document.addEventListener("plimsoll:flip-theme", () => choose(shown() === "dark" ? "light" : "dark"));
  darkSystem.addEventListener("change", tell);
})();
