// Search-as-you-type over the catalog's models, by the ARIA combobox pattern: arrows, Enter, Esc.
"use strict";
(() => {
  const box = document.querySelector("[data-combobox]");
  const input = box.querySelector("input");
  const list = box.querySelector("[role=listbox]");
  let chosen = input.value;
  let timer = 0;

  const options = () => [...list.querySelectorAll("[role=option]")];
  const active = () => list.querySelector("[aria-selected=true]");

  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const open = () => {
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  };
  const select = (option) => {
    for (const other of options()) other.setAttribute("aria-selected", String(other === option));
    if (option) {
      input.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    }
  };
  const announce = () => input.dispatchEvent(new Event("input", { bubbles: true }));
  const pick = (value) => {
    clearTimeout(timer);
    input.value = value;
    close();
    if (value === chosen) return;
    chosen = value;
    document.querySelector(".config-chip")?.remove();
    announce();
  };

  // Half a name is no question: the form hears of the model only once one is picked or the box is left.
  input.addEventListener("input", (event) => {
    if (!event.isTrusted) return;
    event.stopPropagation();
    clearTimeout(timer);
    timer = setTimeout(() => htmx.trigger(input, "find"), 120);
  });
  input.addEventListener("find", (event) => event.stopPropagation());
  list.addEventListener("htmx:afterSwap", (event) => {
    event.stopPropagation();
    if (document.activeElement === input) open();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      input.value = chosen;
      close();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) { htmx.trigger(input, "find"); return; }
      const all = options();
      const at = all.indexOf(active()) + (event.key === "ArrowDown" ? 1 : -1);
      select(all[(at + all.length) % all.length]);
    } else if (event.key === "Enter" && !list.hidden && active()) {
      event.preventDefault();
      pick(active().dataset.value);
    }
  });
  list.addEventListener("mousedown", (event) => {
    event.preventDefault();
    const option = event.target.closest("[role=option]");
    if (option) pick(option.dataset.value);
  });
  input.addEventListener("blur", () => {
    close();
    if (input.value !== chosen) pick(input.value);
  });
  document.getElementById("question").addEventListener("submit", () => { chosen = input.value; close(); }, true);
})();
