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
  // What lies beyond the right edge is said, and a shade marks the edge until the end is reached.
  const mark = (box) => {
    const rest = box.scrollWidth - box.clientWidth - box.scrollLeft;
    box.classList.toggle("has-more", rest > 8);
    const hint = box.previousElementSibling;
    if (hint?.matches("[data-scroll-hint]")) hint.hidden = box.scrollWidth - box.clientWidth <= 8;
  };
  const markAll = () => document.querySelectorAll("[data-scroll]").forEach(mark);
  document.addEventListener("scroll", (event) => {
    if (event.target.matches?.("[data-scroll]")) mark(event.target);
  }, true);
  window.addEventListener("resize", markAll);
  const ready = () => {
    shorten();
    markAll();
  };
  document.addEventListener("DOMContentLoaded", ready);
  document.addEventListener("htmx:afterSwap", ready);
})();
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-sortable] thead button");
  if (!button) return;
  const header = button.closest("th");
  const table = header.closest("table");
  const column = [...header.parentElement.children].indexOf(header);
  const by = button.dataset.by ?? "sort";
  const isSame = (header.dataset.sortedBy ?? "sort") === by;
  const ascending = !isSame || header.getAttribute("aria-sort") !== "ascending";
  for (const other of header.parentElement.children) {
    other.removeAttribute("aria-sort");
    delete other.dataset.sortedBy;
  }
  header.dataset.sortedBy = by;
  header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const key = (row) => row.children[column].dataset[by] ?? row.children[column].dataset.sort ?? row.children[column].textContent;
  const compare = (a, b) => {
    const [x, y] = [key(a), key(b)];
    const numeric = x !== "" && y !== "" && !Number.isNaN(Number(x)) && !Number.isNaN(Number(y));
    return numeric ? Number(x) - Number(y) : x.localeCompare(y, document.documentElement.lang, { numeric: true });
  };
  const rows = [...table.tBodies[0].rows].sort((a, b) => (ascending ? 1 : -1) * compare(a, b));
  table.tBodies[0].append(...rows);
});
