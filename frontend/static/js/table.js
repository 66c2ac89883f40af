// Tables sort by their header buttons: numbers by their full value, texts by the page's language.
// Long ones start short: "show all" gives the rest.
"use strict";
(() => {
  const shorten = () => {
    for (const button of document.querySelectorAll("[data-more][hidden]")) {
      button.hidden = false;
      button.closest("section").querySelector("table").classList.add("is-short");
    }
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-more]");
    if (!button) return;
    button.closest("section").querySelector("table").classList.remove("is-short");
    button.parentElement.remove();
  });
  document.addEventListener("DOMContentLoaded", shorten);
  document.addEventListener("htmx:afterSwap", shorten);
})();
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-sortable] thead button");
  if (!button) return;
  const header = button.closest("th");
  const table = header.closest("table");
  const column = [...header.parentElement.children].indexOf(header);
  const ascending = header.getAttribute("aria-sort") !== "ascending";
  for (const other of header.parentElement.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const key = (row) => row.children[column].dataset.sort ?? row.children[column].textContent;
  const compare = (a, b) => {
    const [x, y] = [key(a), key(b)];
    const numeric = x !== "" && y !== "" && !Number.isNaN(Number(x)) && !Number.isNaN(Number(y));
    return numeric ? Number(x) - Number(y) : x.localeCompare(y, document.documentElement.lang, { numeric: true });
  };
  const rows = [...table.tBodies[0].rows].sort((a, b) => (ascending ? 1 : -1) * compare(a, b));
  table.tBodies[0].append(...rows);
});
