// Runs before the first paint: the stored theme, else the system's. The button cycles system, light, dark.
"use strict";
(() => {
  const KEY = "takar-theme";
  const root = document.documentElement;
  const read = () => {
    try { return localStorage.getItem(KEY) || "auto"; } catch { return "auto"; }
  };
  const apply = (theme) => {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
  };
  apply(read());

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("[data-theme-toggle]");
    const name = (theme) => {
      button.querySelector("[data-theme-label]").textContent = button.dataset[theme];
      button.title = button.dataset[theme];
    };
    button.hidden = false;
    name(read());
    button.addEventListener("click", () => {
      const theme = { auto: "light", light: "dark", dark: "auto" }[read()] || "auto";
      try { localStorage.setItem(KEY, theme); } catch { /* private mode: the choice lasts for this page */ }
      apply(theme);
      name(theme);
      document.dispatchEvent(new CustomEvent("takar:theme"));
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
      document.dispatchEvent(new CustomEvent("takar:theme")));
  });
})();
