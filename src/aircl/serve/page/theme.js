"use strict";
// Before anything is drawn, so that a dark page never flashes white. A wish is kept as long as the tab is open.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  let wanted = null;
  try { wanted = sessionStorage.getItem("aircl-theme"); } catch { /* storing may be forbidden */ }
  const apply = () => {
    root.dataset.theme = wanted ?? (system.matches ? "dark" : "light");
    const button = document.getElementById("theme");
    if (button) button.textContent = root.dataset.theme === "dark" ? "Use light colours" : "Use dark colours";
  };
  apply();
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", () => {
      wanted = root.dataset.theme === "dark" ? "light" : "dark";
      try { sessionStorage.setItem("aircl-theme", wanted); } catch { /* then it is forgotten */ }
      apply();
    });
  });
})();
