// Draws the figures that the page carries as JSON, in the page's own theme; saves them as PNG.
"use strict";
(() => {
  const CONFIG = { displayModeBar: false, responsive: true, showTips: false };

  // The figure names the custom property behind each colour it uses.
  const themed = (value, colors) => {
    if (typeof value === "string") return colors[value] ?? value;
    if (Array.isArray(value)) return value.map((item) => themed(item, colors));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, themed(item, colors)]));
    }
    return value;
  };
  const colorsOf = (tokens) => {
    const style = getComputedStyle(document.documentElement);
    return Object.fromEntries(Object.entries(tokens).map(([hex, name]) => [hex, style.getPropertyValue(name).trim() || hex]));
  };

  // Names beside points are placed for a laptop's width: where they would leave the drawing they change sides, or go.
  const LETTER = 6.8;
  const PEN = document.createElement("canvas").getContext("2d");
  const lengthOf = (note, font) => {
    PEN.font = `${note.font?.size ?? font.size}px ${font.family}`;
    return Math.max(...note.text.split("<br>").map((line) => PEN.measureText(line).width));
  };
  const HIGH_UP = 0.86;
  // Ticks whose words would touch: every second one goes, until none do.
  const thinned = (axis, span) => {
    let { tickvals, ticktext } = axis;
    if (!tickvals) return axis;
    const [start, end] = axis.range;
    const touches = (at, n) => {
      if (n === 0) return false;
      const apart = ((Math.log10(at) - Math.log10(tickvals[n - 1])) / (end - start)) * span;
      return apart < ((ticktext[n].length + ticktext[n - 1].length) / 2) * TICK_LETTER + 6;
    };
    while (tickvals.length > 2 && tickvals.some(touches)) {
      tickvals = tickvals.filter((_, n) => n % 2 === 0);
      ticktext = ticktext.filter((_, n) => n % 2 === 0);
    }
    return { ...axis, tickvals, ticktext };
  };
  const TICK_LETTER = 7.2;
  const placed = (layout, width) => {
    const { margin, xaxis, annotations } = layout;
    if (!annotations || xaxis?.type !== "log") return layout;
    const span = width - margin.l - margin.r;
    const [start, end] = xaxis.range;
    const placeOf = (note) => margin.l + ((note.x - start) / (end - start)) * span;
    const limit = annotations.find((note) => note.yref === "paper" && note.xref !== "paper");
    const [low, high] = layout.yaxis.range ?? [0, 1];
    // A name may run neither over the line of a limit nor, near the top, into its words.
    const meetsLimit = (note, start, stop) => {
      if (!limit) return false;
      const line = placeOf(limit);
      const isHigh = (note.y - low) / (high - low) >= HIGH_UP;
      const words = isHigh ? line - lengthOf(limit, layout.font) - 6 : line - 8;
      return start < line + 8 && stop > words;
    };
    const kept = annotations.filter((note) => {
      if (note.xref === "paper" || !note.xshift || note.yref === "paper") return true;
      const at = placeOf(note);
      const shift = Math.abs(note.xshift);
      const fits = (side) => {
        const length = lengthOf(note, layout.font) + shift;
        return side === "left"
          ? at + length < width - 4 && !meetsLimit(note, at + shift, at + length)
          : at - length > margin.l + 2 && !meetsLimit(note, at - length, at - shift);
      };
      const sides = note.xanchor === "left" ? ["left", "right"] : ["right", "left"];
      const whole = note.text;
      // In one line, then in two: what stands after the last comma goes under the rest.
      for (const text of [whole, whole.replace(/, ([^,]*)$/, "<br>$1")]) {
        note.text = text;
        const side = sides.find(fits);
        if (!side) continue;
        note.xanchor = side;
        note.xshift = shift * (side === "left" ? 1 : -1);
        return true;
      }
      return false;
    });
    const folded = layout.xaxis.title.text.length * LETTER > span;
    const title = folded ? layout.xaxis.title.text.replace(/, ([^,]*)$/, ",<br>$1") : layout.xaxis.title.text;
    return {
      ...layout,
      margin: folded ? { ...margin, b: margin.b + 16 } : margin,
      xaxis: { ...thinned(xaxis, span), title: { ...xaxis.title, text: title } },
      annotations: kept,
    };
  };

  // What has been drawn as it is to look now: a group that opens draws the rest.
  let done = new WeakSet();
  const draw = (plot, paper) => {
    const script = document.getElementById(plot.dataset.figure);
    if (!script || !window.Plotly) return;
    done.add(plot);
    const figure = JSON.parse(script.textContent);
    const { tokens, ...meta } = figure.layout.meta;
    const colors = colorsOf(tokens);
    const size = paper && { ...paper, autosize: false, height: Math.min(paper.height, figure.layout.height) };
    const layout = placed(themed({ ...figure.layout, meta, ...size }, colors), paper?.width ?? plot.clientWidth);
    if (paper && layout.yaxis.tickfont) layout.yaxis.tickfont = { ...layout.yaxis.tickfont, size: 10 };
    Plotly.react(plot, themed(figure.data, colors), layout, CONFIG).then(() => {
      plot.dataset.drawn = "true";
      plot.removeAllListeners?.("plotly_click");
      plot.on?.("plotly_click", ({ points }) => {
        const id = points[0]?.id;
        if (id) document.querySelector(`[data-row="${CSS.escape(id)}"] [data-choose]`)?.click();
      });
    });
  };
  // One after another, with a breath between: the first can be read while the last are still to come.
  let order = 0;
  const drawEach = async (plots) => {
    const own = ++order;
    for (const plot of plots) {
      if (own !== order) return;
      if (!done.has(plot)) draw(plot);
      await new Promise((resolve) => setTimeout(resolve));
    }
  };
  // A chart in a closed group has no width to be drawn to: it waits until the group is opened.
  const isFolded = (plot) => plot.closest("details:not([open])") !== null;
  const drawAll = () => {
    done = new WeakSet();
    return drawEach([...document.querySelectorAll("[data-figure]")].filter((plot) => !isFolded(plot)));
  };

  const save = async (button) => {
    const plot = document.getElementById(button.dataset.png);
    const { width, height } = plot.getBoundingClientRect();
    const svg = await Plotly.toImage(plot, { format: "svg", width, height });
    const image = new Image();
    image.src = svg;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = width * 2;
    canvas.height = height * 2;
    const context = canvas.getContext("2d");
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--panel");
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    const link = document.createElement("a");
    link.download = `${button.dataset.name}.png`;
    link.href = canvas.toDataURL("image/png");
    link.click();
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-png]");
    if (button) save(button);
  });
  document.addEventListener(
    "toggle",
    ({ target }) => {
      if (!target.open) return;
      for (const plot of target.querySelectorAll("[data-figure]")) if (!done.has(plot)) draw(plot);
    },
    true,
  );
  document.addEventListener("DOMContentLoaded", drawAll);
  document.addEventListener("takar:theme", drawAll);
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.target.querySelector?.("[data-figure]")) drawAll();
  });
  // Paper has a width of its own: charts are drawn to it, and back again afterwards.
  const PAPER = { "plot-tradeoff": { width: 400, height: 290 } };
  const SMALL_PAPER = { width: 265, height: 190 };
  const HALF_PAPER = { width: 330, height: 230 };
  const paperOf = (plot) => PAPER[plot.id] ?? (plot.closest(".four, .even") ? HALF_PAPER : SMALL_PAPER);
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll(".working")) details.open = true;
    for (const plot of document.querySelectorAll("[data-drawn]")) if (!isFolded(plot)) draw(plot, paperOf(plot));
  });
  window.addEventListener("afterprint", drawAll);
})();
