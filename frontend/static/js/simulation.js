// The simulation form: an autoscaler's target has the unit of its metric.
"use strict";
(() => {
  const units = JSON.parse(document.getElementById("target-units").textContent);
  const metric = document.getElementById("field-fleet-scaling_metric");
  const unit = document.getElementById("field-fleet-scaling_target").parentElement.querySelector(".unit");
  metric.addEventListener("change", () => { unit.textContent = units[metric.value] ?? ""; });
})();
