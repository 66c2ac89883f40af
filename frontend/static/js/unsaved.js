// Leaving a form that has words in it which nobody has saved asks first.
"use strict";
(() => {
  const form = document.querySelector("form[data-unsaved]");
  const said = () => new URLSearchParams(new FormData(form)).toString();
  const saved = form.dataset.unsaved === "already" ? null : said();
  let isSent = false;
  document.addEventListener("submit", (event) => {
    // "data-confirm" has asked already.
    if (!event.defaultPrevented && (event.target === form || event.target.dataset.confirm)) isSent = true;
  });
  window.addEventListener("pageshow", () => { isSent = false; });
  window.addEventListener("beforeunload", (event) => {
    if (!isSent && said() !== saved) event.preventDefault();
  });
})();
