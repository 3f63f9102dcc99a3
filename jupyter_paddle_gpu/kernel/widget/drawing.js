// What a screen draws.

const POINTS = 300;

function node(tag, attributes = {}, ...inside) {
  const svg = ["svg", "circle", "polyline", "text"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null) made.setAttribute(name, value);
  }
  made.append(...inside);
  return made;
}

const share = (used, all) => (used == null || !all ? null : (100 * used) / all);

function numbers(reading) {
  const { gpus = [], host = {} } = reading || {};
  return [
    ...gpus.map((gpu) => [gpu.utilization_percent, share(gpu.memory_used_bytes, gpu.memory_total_bytes)]),
    [host.cpu_limit_cores ? share(host.cpu_percent, 100 * host.cpu_limit_cores) : null,
      share(host.memory_used_bytes, host.memory_limit_bytes)],
  ];
}

/** A line of the last values in percent, the newest right; what is unknown leaves a gap. */
function spark(values, width = 90, height = 18) {
  const parts = [[]];
  const from = Math.max(0, POINTS / 3 - values.length);
  values.slice(-POINTS / 3).forEach((value, i) => {
    if (value == null) parts.push([]);
    else parts.at(-1).push(`${(((from + i) * width) / (POINTS / 3)).toFixed(1)},${(height - 1 - (value / 100) * (height - 2)).toFixed(1)}`);
  });
  const lines = parts.filter((part) => part.length).map((part) => node("polyline", { points: part.join(" ") }));
  return node("svg", { class: "pg-spark", width, height, "aria-hidden": "true" }, ...lines);
}

function ring(left, all) {
  const length = 2 * Math.PI * 13;
  const rest = Math.max(0, Math.min(1, left / (all || 1)));
  return node("svg", { class: "pg-ring", viewBox: "0 0 32 32", width: 32, height: 32, "aria-hidden": "true" },
    node("circle", { cx: 16, cy: 16, r: 13 }),
    node("circle", { cx: 16, cy: 16, r: 13, class: "pg-rest", "stroke-dasharray": `${rest * length} ${length}` }),
    node("text", { x: 16, y: 20, "text-anchor": "middle" }, String(Math.ceil(left))));
}
