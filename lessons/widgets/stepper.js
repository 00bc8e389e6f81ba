// Shared by every widget: SVG and HTML by hand, numbers as text, and the stepper itself.
// Python puts `const STYLE` and this file in front of each widget's own script.

function element(space, tag, attributes, children) {
  const node = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.flat().filter((child) => child !== null));
  return node;
}

const html = (tag, attributes = {}, ...children) =>
  element("http://www.w3.org/1999/xhtml", tag, attributes, children);

const svg = (tag, attributes = {}, ...children) =>
  element("http://www.w3.org/2000/svg", tag, attributes, children);

const label = (x, y, words, style = "", attributes = {}) =>
  svg("text", { x, y, class: style, ...attributes }, ...[words].flat());

const part = (words, key = null, style = null) => svg("tspan", { "data-k": key, class: style }, words);

const group = (...children) => svg("g", {}, ...children);

const box = (x, y, width, height, style, attributes = {}) =>
  svg("rect", { x, y, width: Math.max(0, width), height: Math.max(0, height), class: style, ...attributes });

const line = (x1, y1, x2, y2, style = "axis", attributes = {}) =>
  svg("line", { x1, y1, x2, y2, class: style, ...attributes });

// Stripes, so that a part is told from its neighbour without its colour.
const hatch = (id, style) =>
  svg(
    "pattern",
    { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    box(0, 0, 6, 6, style),
    line(0, 0, 0, 6, "edge", { "stroke-width": 2.5 }),
  );

const uniqueId = () => "fab-" + Math.random().toString(36).slice(2, 10);

// Four decimals; whole numbers and powers are kept short: 3, 0.1353, 9.40e−14, −∞.
function decimal(x) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "NaN" : x < 0 ? "−∞" : "∞";
  const size = Math.abs(x);
  if (Number.isInteger(x) && size < 1e6) return String(x).replace("-", "−");
  const words = size >= 5e-5 && size < 1e5 ? x.toFixed(4) : x.toExponential(2);
  return words.replaceAll("-", "−").replace("e+", "e");
}

const whole = (n) => Math.round(n).toLocaleString("en-US");

// ±∞ and NaN travel as text, because JSON has no numbers for them.
const UNUSUAL = { "-inf": -Infinity, inf: Infinity, nan: NaN };

function fromWire(value) {
  if (Array.isArray(value)) return value.map(fromWire);
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, fromWire(item)]));
  }
  return value in UNUSUAL ? UNUSUAL[value] : value;
}

function toWire(value) {
  if (Array.isArray(value)) return value.map(toWire);
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, toWire(item)]));
  }
  if (typeof value !== "number" || Number.isFinite(value)) return value;
  return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

const stillness = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

const PLAY_MS = 1600;

// Builds the widget's box: title, forms, controls, picture, narration.
//   unit     what one step is called, "step" or "point"
//   forms    HTML elements above the controls
//   count()  number of steps
//   draw(k, {width, from}) -> {height, marks, say, why, below}: SVG children, their height, the
//            narration in one or two sentences, and HTML below; `from` is the step shown before
//   watch    names of traits that redraw the picture when they change
function stepper({ model, el, title, unit = "step", forms = [], count, draw, watch = [] }) {
  let timer = null;
  let shown = null;

  const button = (name, words, action, style = null) =>
    html("button", { type: "button", "aria-label": name, title: name, class: style, click: action }, words);
  const slider = html("input", {
    type: "range",
    min: 0,
    step: 1,
    "aria-label": unit,
    input: () => visit(Number(slider.value)),
  });
  const counter = html("span", { class: "count" });
  const play = button("play", "Play", () => (timer === null ? start() : stop()), "play");
  const controls = html(
    "div",
    { class: "bar controls" },
    button(`first ${unit}`, "|<", () => visit(0)),
    button(`previous ${unit}`, "<", () => visit(at() - 1)),
    play,
    button(`next ${unit}`, ">", () => visit(at() + 1)),
    slider,
    counter,
  );
  const picture = html("div", { class: "picture" });
  const say = html("p");
  const why = html("p");
  const below = html("div");
  const root = html(
    "div",
    { class: "fab", role: "group", tabindex: 0, "aria-label": title, "data-lm-suppress-shortcuts": "true" },
    html("style", {}, STYLE),
    html("p", { class: "title" }, title),
    forms,
    controls,
    picture,
    html("div", { class: "say", "aria-live": "polite" }, say, why),
    below,
  );

  const last = () => count() - 1;
  const at = () => Math.max(0, Math.min(model.get("step"), last()));

  function redraw() {
    const k = at();
    const drawing = draw(k, { width: Math.max(320, picture.clientWidth || 720), from: shown });
    shown = k;
    picture.replaceChildren(
      svg("svg", { role: "img", "aria-label": drawing.say, height: drawing.height }, drawing.marks),
    );
    say.textContent = drawing.say;
    why.textContent = drawing.why ?? "";
    below.replaceChildren(...(drawing.below ?? []));
    slider.max = last();
    slider.value = k;
    slider.setAttribute("aria-valuetext", `${unit} ${k + 1} of ${count()}`);
    counter.textContent = `${unit} ${k + 1} / ${count()}`;
  }

  // Playing tells only this page; the kernel hears where the reader stopped.
  function visit(k) {
    stop();
    model.set("step", Math.max(0, Math.min(k, last())));
    model.save_changes?.();
  }

  function start() {
    if (at() === last()) model.set("step", 0);
    timer = setInterval(() => {
      model.set("step", Math.min(at() + 1, last()));
      if (at() === last()) stop();
    }, PLAY_MS);
    renamePlay("pause", "Pause");
  }

  function stop() {
    if (timer === null) return;
    clearInterval(timer);
    timer = null;
    renamePlay("play", "Play");
    model.save_changes?.();
  }

  function renamePlay(name, words) {
    play.setAttribute("aria-label", name);
    play.title = name;
    play.textContent = words;
  }

  const KEYS = {
    ArrowLeft: () => visit(at() - 1),
    ArrowRight: () => visit(at() + 1),
    Home: () => visit(0),
    End: () => visit(last()),
    " ": () => (timer === null ? start() : stop()),
  };

  root.addEventListener("keydown", (event) => {
    event.stopPropagation(); // the notebook has its own use for these keys
    const typing = event.target.matches("input, select, textarea");
    const pressing = event.key === " " && event.target.matches("button, summary");
    if (typing || pressing || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  });

  let width = null;
  const resized = new ResizeObserver(() => {
    if (picture.clientWidth === width) return;
    width = picture.clientWidth;
    redraw();
  });
  const events = ["step", "trace", ...watch].map((name) => `change:${name}`);

  el.append(root);
  events.forEach((name) => model.on(name, redraw));
  redraw();
  resized.observe(picture);

  function unmount() {
    stop();
    resized.disconnect();
    events.forEach((name) => model.off?.(name, redraw));
    root.remove();
  }
  return { redraw, visit, unmount };
}
