// The account menu closes with Esc and with a click or a focus elsewhere. "data-confirm" asks before it sends.
"use strict";
(() => {
  const close = (except) => {
    for (const menu of document.querySelectorAll("details[data-menu][open]")) {
      if (!except || !menu.contains(except)) menu.open = false;
    }
  };
  document.addEventListener("keydown", (event) => {
    const open = event.key === "Escape" && document.querySelector("details[data-menu][open]");
    if (!open) return;
    close();
    open.querySelector("summary").focus();
  });
  document.addEventListener("click", (event) => close(event.target));
  document.addEventListener("focusin", (event) => close(event.target));
  document.addEventListener("submit", (event) => {
    const question = event.submitter?.dataset.confirm ?? event.target.dataset.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
  });
})();
