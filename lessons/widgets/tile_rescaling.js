// The picture of tile rescaling and its form; the algorithm and the words stand in the two
// files that Python puts before this one.

// ---- Row one: the tiles ---------------------------------------------------------------------

const STATUS = {
  seen: ["seen", "seen"],
  reading: ["reading", "now"],
  unread: ["not read", ""],
};

function statusOf(tile, state) {
  if (tile > state.tile) return STATUS.unread;
  return tile === state.tile && state.phase !== "divide" ? STATUS.reading : STATUS.seen;
}

// Where each tile stands: left to right, and on a new line when the width is used up.
function placeTiles(tiles, width) {
  const cell = Math.min(60, (width - 12) / Math.max(...tiles.map((s) => s.length)));
  let [x, y, first] = [0, 22, 0];
  return tiles.map((s) => {
    const w = Math.max(118, s.length * cell + 12);
    if (x > 0 && x + w > width) [x, y] = [0, y + 86];
    const place = { x, y, w, cell: Math.max(cell, (w - 12) / s.length), first };
    x += w + 14;
    first += s.length;
    return place;
  });
}

function drawTile(s, index, place, state) {
  const [words, fill] = statusOf(index, state);
  const ink = fill ? " on" : "";
  const { x, y, w, cell, first } = place;
  const longest = Math.max(...s.map((score) => brief(score).length));
  const tight = longest * 8.4 > cell ? " small" : "";
  const cells = s.map((score, j) => {
    const middle = x + 6 + cell * (j + 0.5);
    const weight = state.weights[first + j];
    return group(
      label(middle, y + 48, brief(score), `number strong${tight}${ink}`, {
        "text-anchor": "middle",
        "data-k": `s${first + j}`,
      }),
      cell < 46
        ? null
        : label(middle, y + 67, weight === null ? "·" : decimal(weight), `number small${ink}`, {
            "text-anchor": "middle",
            "data-k": `weight${first + j}`,
          }),
    );
  });
  return group(
    label(x + 1, y + 18, [part(`tile ${index + 1}`, null, "strong"), part(` · ${words}`)], "small"),
    box(x, y + 26, w, 50, fill || "none", { rx: 6, fill: fill ? null : "none" }),
    box(x, y + 26, w, 50, fill ? "outline" : "dashed", {
      rx: 6,
      "stroke-width": words === "reading" ? 3 : 1.2,
    }),
    ...cells,
  );
}

function drawTiles(tiles, state, width) {
  const places = placeTiles(tiles, width);
  const caption = label(
    0,
    11,
    "the scores s of one query; below each, its term e^(s − m) in the sum l",
    "small quiet",
  );
  return {
    marks: group(caption, ...tiles.map((s, i) => drawTile(s, i, places[i], state))),
    height: places.at(-1).y + 84,
  };
}

// ---- Row two, left: the arithmetic ----------------------------------------------------------

const PHASES = ["read", "rescale", "add", "divide"];
const reached = (state, phase) => PHASES.indexOf(state.phase) >= PHASES.indexOf(phase);
const power = (from, to) => `e^(${brief(from)} − ${to < 0 ? `(${brief(to)})` : brief(to)})`;

// A few terms are written out, many as their sum.
function termsText(terms, room = 4) {
  return terms.length <= room
    ? terms.map(decimal).join(" + ")
    : `(${terms.length} terms: ${decimal(sum(terms))})`;
}

function maxLine(state, s) {
  const shown = s.length <= 4 ? s.map(brief).join(", ") : `tile: ${brief(Math.max(...s))}`;
  return [
    part("max("),
    part(brief(state.m_old), "m_old"),
    part(`, ${shown}) = `),
    part(brief(state.m), "m", "strong"),
  ];
}

function factorLine(state) {
  if (state.factor === null) return [part("–", "factor", "strong"), part("  nothing to rescale yet")];
  return [part(power(state.m_old, state.m) + " = "), part(decimal(state.factor), "factor", "strong")];
}

function oldSumLine(state) {
  if (state.factor === null) return [part(decimal(state.l_old), "l_old")];
  const before = part(decimal(state.l_old), "l_old");
  if (!reached(state, "rescale")) return [before, part(`, still over m = ${brief(state.m_old)}`)];
  return [
    before,
    part(` × ${decimal(state.factor)} = `),
    part(decimal(state.l_rescaled), "l_rescaled", "strong"),
  ];
}

function sumLine(state, local) {
  if (!reached(state, local ? "rescale" : "add")) return [part("…")];
  const old = state.factor === null ? "" : `${decimal(state.l_rescaled)} + `;
  return [
    part(old),
    part(termsText(state.terms), "terms"),
    part(" = "),
    part(decimal(state.l), "l", "strong"),
  ];
}

function keptLine(state) {
  if (!reached(state, "rescale")) return [part("…")];
  return [
    part(`${decimal(state.l_rescaled)} / ${decimal(state.l)} = `),
    part(decimal(state.kept), "kept", "strong"),
  ];
}

function oneGoLine(state) {
  if (state.phase !== "divide") return [part("… when every tile is read")];
  return [part(termsText(state.weights, 5) + " = "), part(decimal(sum(state.weights)), "one_go", "strong")];
}

function ledgerRows(state, s, local) {
  const rows = [
    ["m", maxLine(state, s), "read"],
    ["factor", factorLine(state), "read"],
    ["old sum", oldSumLine(state), "rescale"],
    ["new sum l", sumLine(state, local), local ? "rescale" : "add"],
  ];
  if (local) rows.push(["kept l₁/l₂", keptLine(state), "rescale"]);
  return [...rows, ["l in one go", oneGoLine(state), "divide"]];
}

function drawLedger(state, s, local, y, width) {
  const rows = ledgerRows(state, s, local).map(([name, words, phase], i) => {
    const top = y + i * 30;
    const current = phase === state.phase;
    return group(
      current ? box(0, top, width, 28, "now", { rx: 4, "fill-opacity": 0.22 }) : null,
      current ? box(0, top, 4, 28, "now") : null,
      label(12, top + 19, name, "quiet"),
      label(98, top + 19, words, "number", { "data-row": name }),
    );
  });
  return { marks: group(...rows), height: rows.length * 30 };
}

// ---- The sum l as a bar, to scale -----------------------------------------------------------

function segments(lengths, x, y, scale, style, fill = null) {
  let at = x;
  return lengths.map((length) => {
    const piece = box(at, y, length * scale, 22, style, { fill, "stroke-width": 1 });
    at += length * scale;
    return piece;
  });
}

function drawSum(state, trace, local, y, width, stripes, moving) {
  const scale = (width - 100) / Math.max(...trace.map((t) => Math.max(t.l, t.l_old)), 1e-30);
  const piece = (lengths, from, style, fill) =>
    segments(lengths, 98 + from * scale, y, scale, `${style} edge`, fill);
  const grown = reached(state, local ? "rescale" : "add");
  const pieces = [];
  if (state.phase === "divide") pieces.push(piece(state.weights, 0, "seen"));
  else if (!reached(state, "rescale")) pieces.push(piece([state.l_old], 0, "seen"));
  else pieces.push(piece([state.l_rescaled], 0, "", `url(#${stripes})`));
  if (moving) glide(pieces[0][0], { width: state.l_old * scale });
  if (grown && state.phase !== "divide") pieces.push(piece(state.terms, state.l_rescaled, "now"));
  const ghost = state.phase === "rescale" || state.phase === "add";
  return group(
    label(12, y + 16, "l, to scale", "quiet"),
    line(98, y - 4, 98, y + 26),
    ...pieces.flat(),
    ghost ? box(98, y - 4, state.l_old * scale, 30, "dashed", { "stroke-width": 1.5 }) : null,
  );
}

// ---- Row two, right: the output -------------------------------------------------------------

const GUTTER = 54; // left of the bars, for the names of the rows of numbers
const NUMBER_WIDTH = 50; // a column narrower than this shows no numbers; the table has them

// A chart's frame: where column c stands, and how high a value reaches.
function chartFrame(values, columns, x, y, width) {
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const [left, top, plot] = [x + GUTTER, y + 34, 112];
  const unit = plot / (high - low || 1);
  const slot = (width - GUTTER) / columns;
  return {
    x,
    y,
    width,
    left,
    top,
    plot,
    slot,
    bar: Math.min(44, slot * 0.56),
    bottom: top + plot,
    zero: top + high * unit,
    centre: (c) => left + slot * (c + 0.5),
    at: (v) => top + (high - v) * unit,
  };
}

function between(frame, c, from, to, style, attributes = {}, wider = 0) {
  const [a, b] = [frame.at(from), frame.at(to)];
  const w = frame.bar + wider;
  return box(frame.centre(c) - w / 2, Math.min(a, b), w, Math.abs(a - b), style, attributes);
}

function numbersUnder(frame, row, name, numbers, key, style = "") {
  const y = frame.bottom + 18 + row * 17;
  if (frame.slot < NUMBER_WIDTH) return [];
  return [
    label(frame.x, y, name, "small quiet"),
    ...numbers.map((v, c) =>
      label(frame.centre(c), y, decimal(v), `number small ${style}`, {
        "text-anchor": "middle",
        "data-k": `${key}${c}`,
      }),
    ),
  ];
}

function columnNames(frame, n, word) {
  if (frame.slot < 20) return [];
  const shown = frame.slot < NUMBER_WIDTH ? "" : `${word} `;
  return Array.from({ length: n }, (_, c) =>
    label(frame.centre(c), frame.y + 22, `${shown}${c + 1}`, "small quiet", { "text-anchor": "middle" }),
  );
}

// The three heights of an output bar: before this tile, after the rescaling, with the new terms.
function heights(state, local) {
  if (!local) return { before: state.O_old, rescaled: state.O_rescaled, after: state.O };
  return { before: state.out_old, rescaled: state.out_old.map((o) => o * state.kept), after: state.out };
}

function outputBar(frame, c, state, { before, rescaled, after }, stripes, moving) {
  if (state.phase === "read") return [between(frame, c, 0, before[c], "seen edge")];
  if (state.phase === "divide") return [between(frame, c, 0, after[c], "seen edge")];
  const shrunk = between(frame, c, 0, rescaled[c], "edge", { fill: `url(#${stripes})` });
  if (moving)
    glide(shrunk, {
      y: frame.at(Math.max(before[c], 0)),
      height: Math.abs(frame.at(before[c]) - frame.zero),
    });
  const added = state.phase === "add" ? between(frame, c, rescaled[c], after[c], "now edge") : null;
  return [shrunk, added, between(frame, c, 0, before[c], "dashed", { "stroke-width": 1.5 }, 8)];
}

// The old height turns into the new one before the reader's eyes, unless motion is unwelcome.
function glide(node, before) {
  if (stillness()) return;
  const pixels = (names) => Object.fromEntries(Object.entries(names).map(([name, v]) => [name, `${v}px`]));
  const after = Object.fromEntries(Object.keys(before).map((name) => [name, node.getAttribute(name)]));
  node.animate([pixels(before), pixels(after)], { duration: 600, easing: "ease-in-out" });
}

function legend(frame, stripes) {
  const y = frame.bottom + 27;
  const entry = (x, words, style, fill) => [
    box(x, y, 11, 11, style, { fill }),
    label(x + 16, y + 9.5, words, "small quiet"),
  ];
  return [
    ...entry(frame.left, "before", "dashed"),
    ...entry(frame.left + 68, "rescaled", "edge", `url(#${stripes})`),
    ...entry(frame.left + 144, "new", "now edge"),
  ];
}

function drawOutput(state, trace, local, names, [x, y, width], stripes, moving) {
  const all = trace.flatMap((t) => Object.values(heights(t, local)).flat());
  const frame = chartFrame(all, state.O.length, x, y, width);
  const bars = heights(state, local);
  const now = { read: bars.before, rescale: bars.rescaled, add: bars.after, divide: bars.after }[state.phase];
  return group(
    label(x, y + 4, local ? "O, divided at every tile" : "O, not yet divided", "strong"),
    ...columnNames(frame, now.length, names),
    ...now.flatMap((_, c) => outputBar(frame, c, state, bars, stripes, moving)),
    line(frame.left, frame.zero, x + width, frame.zero),
    ...numbersUnder(frame, 0, "O", now, local ? "local" : "O", "strong"),
    ...legend(frame, stripes),
  );
}

const outNow = (state) => (reached(state, "add") ? state.out : state.out_old);

function drawAgainstTruth(state, trace, names, [x, y, width]) {
  const out = outNow(state);
  const frame = chartFrame(
    trace.flatMap((t) => [...t.out, ...t.truth]),
    out.length,
    x,
    y,
    width,
  );
  return group(
    label(x, y + 4, "O / l (bar), softmax (frame)", "strong"),
    ...columnNames(frame, out.length, names),
    ...out.map((v, c) => between(frame, c, 0, v, "true")),
    ...state.truth.map((v, c) => between(frame, c, 0, v, "outline", { "stroke-width": 2 }, 8)),
    line(frame.left, frame.zero, x + width, frame.zero),
    ...numbersUnder(frame, 0, "O / l", out, "out", "strong"),
    ...numbersUnder(frame, 1, "softmax", state.truth, "truth", "quiet"),
  );
}

// ---- The numbers as a table -----------------------------------------------------------------

function numbersTable(state, local, names) {
  const columns = [
    ["O before", heights(state, local).before],
    ["rescaled", heights(state, local).rescaled],
    ["O after", heights(state, local).after],
    ["O / l after", state.out],
    ["softmax", state.truth],
  ];
  return html(
    "table",
    {},
    html("caption", {}, `Tile ${state.tile + 1}: the output, column by column`),
    html(
      "thead",
      {},
      html(
        "tr",
        {},
        html("th", { scope: "col" }, names),
        ...columns.map(([name]) => html("th", { scope: "col" }, name)),
      ),
    ),
    html(
      "tbody",
      {},
      ...state.O.map((_, c) =>
        html(
          "tr",
          {},
          html("th", { scope: "row" }, String(c + 1)),
          ...columns.map(([, numbers]) => html("td", {}, decimal(numbers[c]))),
        ),
      ),
    ),
  );
}

// ---- The widget -----------------------------------------------------------------------------

// The arithmetic beside the two charts, or above them; the charts abreast wherever their numbers fit.
function layout(width, columns) {
  const ledger = Math.round(width * 0.45);
  const right = ledger + 28;
  const abreast = (room) => ((room - 24) / 2 - GUTTER) / columns >= NUMBER_WIDTH;
  const wide = width >= 860 && (abreast(width - right) || !abreast(width));
  const room = wide ? width - right : width;
  return { wide, ledger: wide ? ledger : width, right: wide ? right : 0, room, beside: abreast(room) };
}

function render({ model, el }) {
  const scores = () => fromWire(model.get("scores"));
  const stripes = uniqueId();
  const details = html("details", {}, html("summary", {}, "Numbers as a table"));

  function draw(k, { width, from }) {
    const [tiles, trace, local] = [scores(), fromWire(model.get("trace")), model.get("local")];
    const state = trace[k];
    const moving = state.phase === "rescale" && from === k - 1;
    const names = model.get("values").length ? "col" : "key";
    const { wide, ledger, right, room, beside } = layout(width, state.O.length);
    const strip = drawTiles(tiles, state, width);
    const sums = drawLedger(state, tiles[state.tile], local, strip.height + 14, ledger);
    const sumTop = strip.height + sums.height + 26;
    const top = wide ? strip.height + 26 : sumTop + 60;
    const chart = beside ? (room - 24) / 2 : room;
    const second = beside ? [right + chart + 24, top] : [right, top + 210];
    details.replaceChildren(details.firstChild, numbersTable(state, local, names));
    return {
      height: Math.max(sumTop + 40, (beside ? top : top + 210) + 196),
      marks: [
        svg("defs", {}, hatch(stripes, "rescaled")),
        strip.marks,
        sums.marks,
        drawSum(state, trace, local, sumTop, ledger, stripes, moving),
        drawOutput(state, trace, local, names, [right, top, chart], stripes, moving),
        drawAgainstTruth(state, trace, names, [...second, chart]),
      ],
      say: inWords(state, tiles, local),
      why: reason(state, tiles, local),
      below: [details],
    };
  }

  const form = scoreForm(model, scores);
  const { unmount } = stepper({
    model,
    el,
    draw,
    title: model.get("title"),
    forms: form.elements,
    count: () => model.get("trace").length,
    watch: ["local"],
  });
  model.on("change:scores", form.show);
  return () => {
    model.off?.("change:scores", form.show);
    unmount();
  };
}

// The line of scores, the presets and the switch between the two forms of the update.
function scoreForm(model, scores) {
  const presets = fromWire(model.get("presets"));
  const errorId = uniqueId();
  const field = html("input", {
    type: "text",
    spellcheck: "false",
    autocomplete: "off",
    "aria-describedby": errorId,
  });
  const choice = html(
    "select",
    { change: choose },
    html("option", { value: "" }, "your own"),
    ...presets.map((preset, i) => html("option", { value: i }, preset.name)),
  );
  const local = html("input", {
    type: "checkbox",
    change: () => {
      model.set("local", local.checked);
      model.save_changes?.();
    },
  });
  const error = html("p", { class: "error", role: "alert", id: errorId });
  const note = html("p", { class: "note" });

  function show() {
    const text = scoresText(scores());
    const at = presets.findIndex((preset) => scoresText(preset.scores) === text);
    field.value = text;
    choice.value = at < 0 ? "" : at;
    note.textContent = at < 0 ? "" : presets[at].note;
    local.checked = model.get("local");
    complain("");
  }

  function complain(message) {
    error.textContent = message;
    field.setAttribute("aria-invalid", message ? "true" : "false");
  }

  // V stays while it has one row a score; otherwise V = I, and the reader is told.
  function use(tiles) {
    const values = model.get("values");
    const fits = values.length === 0 || values.length === tiles.flat().length;
    model.set("step", 0);
    model.set("scores", toWire(tiles));
    if (!fits) model.set("values", []);
    model.set("trace", toWire(tileRescalingTrace(tiles, fits ? values : []))); // draws: so it is last
    model.save_changes?.();
    show();
    if (!fits)
      note.textContent = `V had ${values.length} rows, these are ${tiles.flat().length} scores: showing V = I, where O is P itself.`;
  }

  function choose() {
    if (choice.value !== "") use(presets[Number(choice.value)].scores);
  }

  function submit(event) {
    event.preventDefault();
    try {
      use(parseScores(field.value, model.get("limits")));
    } catch (problem) {
      complain(problem.message);
    }
  }

  show();
  const form = html(
    "form",
    { class: "bar", submit },
    html("label", { class: "scores" }, "Scores", field),
    html("button", { type: "submit" }, "Use"),
    html("label", {}, "Preset", choice),
    html("label", {}, local, "divide at every tile (local denominators)"),
  );
  return { elements: [form, error, note], show };
}

export default { render };
