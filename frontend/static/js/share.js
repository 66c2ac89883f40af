// Share, print and PNG: buttons that need scripts show themselves only where scripts run.
"use strict";
(() => {
  const reveal = () => {
    for (const button of document.querySelectorAll("[data-share], [data-print], [data-png]")) button.hidden = false;
  };
  const share = async (button) => {
    const link = new URL(button.dataset.link, location.href).href;
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(link);
      button.textContent = button.dataset.done;
    } catch {
      history.replaceState(history.state, "", link);
      button.textContent = button.dataset.failed;
    }
    setTimeout(() => { button.textContent = before; }, 2500);
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if ("share" in button.dataset) share(button);
    else if ("print" in button.dataset) window.print();
  });
  document.addEventListener("DOMContentLoaded", reveal);
  document.addEventListener("htmx:afterSettle", reveal);
  document.addEventListener("htmx:afterSwap", reveal);
})();
