// A log-log roofline of one device, with the roofs of the others behind it. A step is a kernel.

const PREFIXES = [
  [1e18, "E"],
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
  [1e-3, "m"],
  [1e-6, "µ"],
  [1e-9, "n"],
  [1e-12, "p"],
];

// Three figures and a prefix: 312 TFLOP/s, 4.19 MB, 12.5 µs.
function withUnit(x, unit) {
  const [size, prefix] = PREFIXES.find(([size]) => x >= size * 0.9995) ?? PREFIXES.at(-1);
  return `${three(x / size)} ${prefix}${unit}`.trim();
}

function three(x) {
  if (x >= 100) return x.toFixed(0);
  if (x >= 0.01) return String(Number(x.toPrecision(3)));
  return x.toExponential(1).replace("-", "−");
}

const attainable = ([peak, bandwidth], intensity) => Math.min(peak, intensity * bandwidth);
const ridgeOf = ([peak, bandwidth]) => peak / bandwidth;

// ---- Axes -----------------------------------------------------------------------------------

// Whole decades that hold every value, with room for words beyond the largest.
function decades(values) {
  const low = Math.floor(Math.log10(Math.min(...values)) - 0.15);
  const high = Math.ceil(Math.log10(Math.max(...values)) + 0.6);
  return Array.from({ length: high - low + 1 }, (_, i) => low + i);
}

function axesFor(devices, trace, width) {
  const rates = Object.values(devices);
  const xs = decades([...rates.map(ridgeOf), ...trace.map((p) => p.intensity)]);
  const roofs = rates.flatMap((rate) => [rate[0], ...trace.map((p) => attainable(rate, p.intensity))]);
  const ys = decades(roofs);
  const [left, top, right, bottom] = [62, 16, width - 12, width >= 860 ? 372 : 332];
  const [dx, dy] = [(right - left) / (xs.length - 1), (bottom - top) / (ys.length - 1)];
  return {
    xs,
    ys,
    left,
    top,
    right,
    bottom,
    x: (v) => left + (Math.log10(v) - xs[0]) * dx,
    intensity: (x) => 10 ** (xs[0] + (x - left) / dx),
    y: (v) => bottom - (Math.log10(v) - ys[0]) * dy,
  };
}

const axisNumber = (power) =>
  power >= 0 && power <= 3
    ? String(10 ** power)
    : power < 0 && power >= -3
      ? String(Number((10 ** power).toPrecision(1)))
      : `1e${power}`;

function drawAxes(axes) {
  const { xs, ys, left, top, right, bottom, x, y } = axes;
  return group(
    ...xs.map((power) =>
      group(
        line(x(10 ** power), top, x(10 ** power), bottom, "grid"),
        label(x(10 ** power), bottom + 17, axisNumber(power), "small number", { "text-anchor": "middle" }),
      ),
    ),
    ...ys.map((power) =>
      group(
        line(left, y(10 ** power), right, y(10 ** power), "grid"),
        label(left - 8, y(10 ** power) + 4, withUnit(10 ** power, ""), "small number", {
          "text-anchor": "end",
        }),
      ),
    ),
    line(left, bottom, right, bottom),
    line(left, top, left, bottom),
    label((left + right) / 2, bottom + 38, "FLOPs for each byte of HBM traffic", "small", {
      "text-anchor": "middle",
    }),
    label(14, (top + bottom) / 2, "FLOP/s", "small", {
      "text-anchor": "middle",
      transform: `rotate(-90 14 ${(top + bottom) / 2})`,
    }),
  );
}

// ---- Roofs ----------------------------------------------------------------------------------

// The slope enters from the left edge, or from the bottom where the roof leaves the picture.
function roofPath(axes, rate) {
  const first = Math.max(10 ** axes.xs[0], 10 ** axes.ys[0] / rate[1]);
  const corners = [
    [first, attainable(rate, first)],
    [ridgeOf(rate), rate[0]],
    [10 ** axes.xs.at(-1), rate[0]],
  ];
  return "M" + corners.map(([intensity, flops]) => `${axes.x(intensity)} ${axes.y(flops)}`).join("L");
}

function drawRoof(axes, rate) {
  const [x, y] = [axes.x(ridgeOf(rate)), axes.y(rate[0])];
  const under = `${roofPath(axes, rate)}L${axes.right} ${axes.bottom}L${axes.x(Math.max(10 ** axes.xs[0], 10 ** axes.ys[0] / rate[1]))} ${axes.bottom}Z`;
  return group(
    svg("path", { d: under, class: "panel" }),
    svg("path", { d: roofPath(axes, rate), fill: "none", stroke: "currentColor", "stroke-width": 2.5 }),
    line(x, y, x, axes.bottom, "dashed"),
    svg("path", { d: `M${x} ${y - 7}L${x + 7} ${y}L${x} ${y + 7}L${x - 7} ${y}Z`, class: "rescaled edge" }),
  );
}

// At the top, above every roof, where no mark and no drop line comes.
function drawRidgeWords(axes, rate) {
  const [x, y] = [axes.x(ridgeOf(rate)), axes.top + 14];
  return group(
    label(x - 12, y, "← memory-bound", "small halo", { "text-anchor": "end" }),
    label(x + 12, y, "compute-bound →", "small halo"),
    label(x, y + 16, `ridge: ${three(ridgeOf(rate))} FLOP/B`, "small strong halo", {
      "text-anchor": "middle",
      "data-k": "ridge",
    }),
  );
}

// ---- Kernels --------------------------------------------------------------------------------

const RADIUS = 10;

// A mark on the roof; where it would cover an earlier one it hangs lower, on its drop line.
function placePoints(axes, trace, rate) {
  const placed = [];
  trace.forEach((point) => {
    const x = axes.x(point.intensity);
    const roof = axes.y(attainable(rate, point.intensity));
    let y = roof;
    while (placed.some((other) => Math.hypot(other.x - x, other.y - y) < 2 * RADIUS + 2)) y += 4;
    placed.push({ x, y, roof });
  });
  return placed;
}

function drawPoint({ x, y, roof }, i, chosen, choose) {
  const style = chosen ? "now" : "seen";
  return svg(
    "g",
    { click: () => choose(i), pointerenter: () => choose(i), style: "cursor: pointer" },
    y > roof ? line(x, roof, x, y, "axis") : null,
    svg("circle", {
      cx: x,
      cy: y,
      r: chosen ? RADIUS + 3 : RADIUS,
      class: `${style} edge`,
      "stroke-width": chosen ? 2.5 : 1,
    }),
    label(x, y + 4, String(i + 1), "small strong on", { "text-anchor": "middle" }),
  );
}

function tooltipLines(point, on) {
  return [
    [part(point.name, "name", "strong")],
    [part(`${withUnit(point.flops, "FLOP")}, ${withUnit(point.nbytes, "B")}`)],
    [part(three(point.intensity), "intensity", "strong"), part(" FLOPs a byte")],
    [
      part("at most "),
      part(withUnit(on.attainable, "FLOP/s"), "attainable", "strong"),
      part(`, ${three(100 * on.share)} % of peak`),
    ],
    [
      part("at least "),
      part(withUnit(on.seconds, "s"), "seconds", "strong"),
      part(", "),
      part(`${on.bound}-bound`, "bound", "strong"),
    ],
  ];
}

// The place nearest the mark that lies wholly under the roof and covers no mark.
function placeTooltip(axes, places, k, rate, w, h) {
  const mark = places[k];
  const roofAt = (x) => axes.y(attainable(rate, axes.intensity(x)));
  const free = (x, y) =>
    places.every((p) => p.x < x - 14 || p.x > x + w + 14 || p.y < y - 14 || p.y > y + h + 14);
  const away = ({ x, y }) => Math.hypot(x + w / 2 - mark.x, y + h / 2 - mark.y);
  const spots = [];
  for (let x = axes.left + 8; x + w < axes.right - 4; x += 6) {
    for (let y = roofAt(x) + 14; y + h < axes.bottom - 6; y += 6) if (free(x, y)) spots.push({ x, y });
  }
  const corner = { x: axes.left + 10, y: axes.top + 40 };
  return spots.reduce((best, spot) => (away(spot) < away(best) ? spot : best), spots[0] ?? corner);
}

function drawTooltip(axes, places, k, point, on, rate) {
  const [w, h] = [Math.max(250, point.name.length * 8 + 24), 104];
  const { x, y } = placeTooltip(axes, places, k, rate, w, h);
  const mark = places[k];
  const nearest = [Math.max(x, Math.min(mark.x, x + w)), Math.max(y, Math.min(mark.y, y + h))];
  return group(
    line(mark.x, mark.y, ...nearest, "axis", { "stroke-width": 1.5 }),
    box(x, y, w, h, "tip", { rx: 6 }),
    box(x, y, w, h, "outline", { rx: 6 }),
    ...tooltipLines(point, on).map((words, i) => label(x + 12, y + 21 + 18.5 * i, words, i ? "small" : "")),
  );
}

function drawDrop(axes, { x, y }) {
  return line(x, y, x, axes.bottom, "axis", { "stroke-dasharray": "2 3", "stroke-width": 1.5 });
}

// ---- In words -------------------------------------------------------------------------------

function inWords(point, k, device, rate) {
  const on = point.on[device];
  const side = on.bound === "memory" ? "left of" : "right of";
  return (
    `${k + 1}, ${point.name}: ${three(point.intensity)} FLOPs a byte, ${side} the ridge of ${device} at ${three(ridgeOf(rate))}: ${on.bound}-bound. ` +
    `At most ${withUnit(on.attainable, "FLOP/s")}, ${three(100 * on.share)} % of the peak; at least ${withUnit(on.seconds, "s")}.`
  );
}

function reason(point, device, rate) {
  const [computing, moving] = [point.flops / rate[0], point.nbytes / rate[1]];
  const words = `Arithmetic alone takes ${withUnit(computing, "s")}, moving the bytes ${withUnit(moving, "s")}.`;
  return point.on[device].bound === "memory"
    ? `${words} Fewer bytes make this kernel faster; fewer FLOPs do not.`
    : `${words} Fewer bytes would not make this kernel faster.`;
}

function kernelTable(trace, k, device) {
  const heads = ["kernel", "FLOPs", "bytes", "FLOP/byte", "at most", "% of peak", "at least", "bound"];
  const row = (point, i) => {
    const on = point.on[device];
    const cells = [
      withUnit(point.flops, ""),
      withUnit(point.nbytes, "B"),
      three(point.intensity),
      withUnit(on.attainable, "FLOP/s"),
      three(100 * on.share),
      withUnit(on.seconds, "s"),
      on.bound,
    ];
    return html(
      "tr",
      { "aria-current": i === k ? "true" : null },
      html("th", { scope: "row" }, `${i + 1}  ${point.name}`),
      ...cells.map((words) => html("td", {}, words)),
    );
  };
  return html(
    "table",
    {},
    html("caption", {}, `Every kernel on ${device}`),
    html("thead", {}, html("tr", {}, ...heads.map((name) => html("th", { scope: "col" }, name)))),
    html("tbody", {}, ...trace.map(row)),
  );
}

// ---- The widget -----------------------------------------------------------------------------

function render({ model, el }) {
  const names = Object.keys(model.get("devices"));
  const choice = html(
    "select",
    {
      change: () => {
        model.set("device", choice.value);
        model.save_changes?.();
      },
    },
    ...names.map((name) => html("option", { value: name }, name)),
  );
  const limits = html("span", {});
  const form = html("div", { class: "bar" }, html("label", {}, "Device", choice), limits);

  function draw(k, { width }) {
    const [devices, device, trace] = [model.get("devices"), model.get("device"), model.get("trace")];
    const [rate, point] = [devices[device], trace[k]];
    const axes = axesFor(devices, trace, width);
    const places = placePoints(axes, trace, rate);
    const others = names.filter((name) => name !== device);
    const order = [...trace.keys()].filter((i) => i !== k);
    choice.value = device;
    limits.textContent = `peak ${withUnit(rate[0], "FLOP/s")}, HBM ${withUnit(rate[1], "B/s")}; dashed: the other devices`;
    return {
      height: axes.bottom + 46,
      marks: [
        drawAxes(axes),
        ...others.map((name) =>
          svg("path", { d: roofPath(axes, devices[name]), class: "dashed", "stroke-width": 1 }),
        ),
        drawRoof(axes, rate),
        drawRidgeWords(axes, rate),
        drawDrop(axes, places[k]),
        ...order.map((i) => drawPoint(places[i], i, false, hover)),
        drawTooltip(axes, places, k, point, point.on[device], rate),
        drawPoint(places[k], k, true, hover),
      ],
      say: inWords(point, k, device, rate),
      why: reason(point, device, rate),
      below: [kernelTable(trace, k, device)],
    };
  }

  const hover = (i) => {
    if (i !== model.get("step")) steps.visit(i);
  };
  const steps = stepper({
    model,
    el,
    draw,
    title: model.get("title"),
    unit: "kernel",
    forms: [form],
    count: () => model.get("trace").length,
    watch: ["device", "devices"],
  });
  return steps.unmount;
}

export default { render };
