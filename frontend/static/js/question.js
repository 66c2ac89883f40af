// The question form: what is sent, where the history goes, errors beside fields, use cases, keys.
"use strict";
(() => {
  const form = document.getElementById("question");
  const answer = document.getElementById("answer");
  const problems = document.getElementById("problems");
  const field = (name) => document.getElementById(`field-${name}`);
  let submitted = false;

  const markDefaults = () => {
    for (const input of form.querySelectorAll("[data-default]")) {
      input.classList.toggle("is-default", input.dataset.default !== "" && input.value === input.dataset.default);
    }
  };

  // A box of another way to state the traffic is hidden: it is not part of the question.
  const chooseTraffic = () => {
    const way = form.querySelector("[name=traffic_by]:checked");
    if (!way) return;
    for (const group of form.querySelectorAll(".way")) {
      const isOn = group.classList.contains(`way-${way.value}`);
      for (const input of group.querySelectorAll("input")) input.disabled = !isOn;
    }
  };

  // Another way to state the traffic starts from the same traffic, so that nothing breaks on the way there.
  const REQUESTS_PER_USER = 10;
  const SECONDS_PER_DAY = 86400;
  const short = (value) => String(Number(value.toPrecision(4)));
  const convertTraffic = (way) => {
    const group = form.querySelector(`.way-${way}`);
    const boxes = [...group.querySelectorAll("input")];
    if (boxes.some((box) => box.value.trim() !== "")) return true;
    const shown = answer.querySelector("[data-rate]")?.dataset;
    const rate = Number(shown?.rate);
    if (!shown || !(rate > 0)) return false;
    const values = {
      rate: { requests_per_second: short(rate) },
      users: {
        users: String(Math.max(1, Math.round((rate * SECONDS_PER_DAY) / REQUESTS_PER_USER))),
        requests_per_user_per_day: String(REQUESTS_PER_USER),
      },
      clients: { concurrency: shown.clients },
    }[way];
    for (const [name, value] of Object.entries(values)) field(name).value = value;
    return Object.values(values).every((value) => value !== "");
  };

  const showErrors = (list) => {
    for (const text of form.querySelectorAll(".error")) { text.hidden = true; text.textContent = ""; }
    for (const wrong of form.querySelectorAll(".wrong")) wrong.classList.remove("wrong");
    for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
    for (const { name, message } of list) {
      const text = document.getElementById(`error-${name}`);
      if (!text) continue;
      text.hidden = false;
      text.textContent = message;
      text.closest(".field")?.classList.add("wrong");
      field(name)?.setAttribute("aria-invalid", "true");
      text.closest("details:not([open])")?.setAttribute("open", "");
    }
  };

  const focusFirstProblem = () => {
    const name = problems.querySelector("[data-problem]")?.dataset.problem;
    const target = name && field(name);
    if (target) (target.matches("fieldset") ? target.querySelector("input, summary") : target).focus();
  };

  const fillUseCase = (option) => {
    const note = form.querySelector("[data-preset-source]");
    note.textContent = option.dataset.source || note.dataset.blank;
    for (const { name, value } of option.attributes) {
      if (name.startsWith("data-fill-")) {
        const input = field(name.slice("data-fill-".length));
        if (input) input.value = value;
      }
    }
    markDefaults();
  };

  // A number typed by hand is no longer the use case's.
  const leaveUseCase = (input) => {
    const select = document.getElementById("preset");
    const option = select?.selectedOptions[0];
    if (option && option.hasAttribute(`data-fill-${input.name}`) && option.getAttribute(`data-fill-${input.name}`) !== input.value) {
      select.value = "";
      fillUseCase(select.selectedOptions[0]);
    }
  };

  form.addEventListener("input", (event) => {
    if (event.target.id === "preset") fillUseCase(event.target.selectedOptions[0]);
    else leaveUseCase(event.target);
    if (event.target.name === "traffic_by") {
      chooseTraffic();
      // Nothing to convert: the boxes wait for numbers, and no question is asked without them.
      if (!convertTraffic(event.target.value)) event.stopImmediatePropagation();
      form.querySelector(`.way-${event.target.value} input`)?.focus({ preventScroll: true });
    }
    const picker = event.target.closest("[data-picker]");
    if (picker && event.target.type === "checkbox") {
      const names = [...picker.querySelectorAll(":checked")].map((box) => box.parentElement.textContent.trim());
      const summary = picker.querySelector("summary");
      summary.dataset.any ||= summary.textContent;
      summary.textContent = names.join(", ") || picker.dataset.any || "–";
    }
    markDefaults();
  });

  for (const filter of form.querySelectorAll("[data-picker-filter]")) {
    filter.hidden = false;
    filter.addEventListener("input", (event) => {
      event.stopPropagation();
      const wanted = filter.value.trim().toLowerCase();
      for (const label of filter.parentElement.querySelectorAll(".ticks label")) {
        label.hidden = !label.textContent.toLowerCase().includes(wanted);
      }
    });
  }

  form.addEventListener("click", (event) => {
    if (event.target.matches("[data-drop-config]")) {
      event.target.closest(".config-chip").remove();
      field("model").focus();
    }
  });

  document.body.addEventListener("htmx:configRequest", (event) => {
    const { parameters, headers, elt, triggeringEvent } = event.detail;
    if (elt === form) {
      if (field("method") && field("method").value !== "distillation") delete parameters.teacher;
      for (const name of [...new Set(Object.keys(parameters))]) {
        if (name === "preset" || name === "traffic_by" || parameters[name] === "") delete parameters[name];
      }
      submitted = triggeringEvent?.type === "submit";
      const kept = triggeringEvent?.target;
      headers["X-Takar-History"] = submitted || ["model", "preset"].includes(kept?.name) ? "push" : "replace";
    } else if (elt.matches("[data-choose]")) {
      headers["X-Takar-History"] = "push";
    }
  });

  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.target === answer) answer.setAttribute("aria-busy", "true");
  });

  // Faults stand above the old answer, which dims: nothing jumps while a number is half typed.
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target === answer && [422, 429].includes(event.detail.xhr.status)) {
      event.detail.target = problems;
      event.detail.swapOverride = "innerHTML";
    }
  });

  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target !== answer && event.detail.target !== problems) return;
    document.querySelector("[data-example]")?.remove();
    const failed = event.detail.target === problems;
    answer.setAttribute("aria-busy", "false");
    answer.classList.toggle("is-stale", failed);
    const found = [...problems.querySelectorAll("[data-problem]")];
    showErrors(found.map((link) => ({ name: link.dataset.problem, message: link.dataset.message })));
    const query = document.querySelector("[data-question-query]");
    query.value = location.search.slice(1);
    if (failed && submitted) focusFirstProblem();
    if (event.detail.requestConfig?.elt?.matches?.("[data-choose]")) document.getElementById("sentence")?.focus();
    submitted = false;
  });

  const sayFailed = () => {
    const panel = document.createElement("section");
    panel.className = "panel problem";
    panel.setAttribute("role", "alert");
    panel.textContent = answer.dataset.failed;
    problems.replaceChildren(panel);
    answer.classList.add("is-stale");
    answer.setAttribute("aria-busy", "false");
  };
  document.body.addEventListener("htmx:responseError", sayFailed);
  document.body.addEventListener("htmx:sendError", sayFailed);

  problems.addEventListener("click", (event) => {
    const name = event.target.dataset?.problem;
    if (!name || !field(name)) return;
    event.preventDefault();
    field(name).closest("details")?.setAttribute("open", "");
    field(name).focus();
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, textarea, select")) {
      event.preventDefault();
      field("model").focus();
      field("model").select();
    }
  });

  markDefaults();
  chooseTraffic();
  if (problems.querySelector("[data-problem]")) focusFirstProblem();
})();
