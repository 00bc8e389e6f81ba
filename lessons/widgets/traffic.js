// A replay of one or two runs: HBM above, SRAM below, the transfers of this step between them.

const range = ([start, stop]) => `${start}:${stop}`;
const isRow = (array) => array.shape.length === 1;
const widthOf = (array) => (isRow(array) ? 1 : array.shape[1]);
const covers = (tile, array) => isRow(array) || (tile.cols[0] === 0 && tile.cols[1] === array.shape[1]);
const tileName = (tile, array) =>
  `${tile.array}[${range(tile.rows)}${covers(tile, array) ? "" : `, ${range(tile.cols)}`}]`;
const sameTile = (a, b) => a.array === b.array && String([a.rows, a.cols]) === String([b.rows, b.cols]);
const arrayOf = (run, name) => run.arrays.find((array) => array.name === name);

const HBM_HEIGHT = 118; // of the array with the most rows
const BUS = 66; // between HBM and SRAM
const CHIP_ROW = 54;

// ---- HBM ------------------------------------------------------------------------------------

// One column an array, as high as its rows and as wide as its columns are many (within reason).
function placeArrays(run, x, y, width) {
  const rows = Math.max(...run.arrays.map((array) => array.shape[0]));
  const columns = Math.max(...run.arrays.map(widthOf));
  const slot = width / run.arrays.length;
  const widest = Math.min(slot - 10, HBM_HEIGHT);
  return Object.fromEntries(
    run.arrays.map((array, i) => {
      const w = isRow(array) ? 8 : Math.max(14, widest * Math.sqrt(widthOf(array) / columns));
      const h = Math.max(6, (HBM_HEIGHT * array.shape[0]) / rows);
      return [
        array.name,
        { array, x: x + slot * (i + 0.5) - w / 2, y: y + HBM_HEIGHT - h, w, h, middle: x + slot * (i + 0.5) },
      ];
    }),
  );
}

function tileInHbm(place, tile) {
  const [rows, columns] = [place.h / place.array.shape[0], place.w / widthOf(place.array)];
  return {
    x: place.x + tile.cols[0] * columns,
    y: place.y + tile.rows[0] * rows,
    w: Math.max(3, (tile.cols[1] - tile.cols[0]) * columns),
    h: Math.max(3, (tile.rows[1] - tile.rows[0]) * rows),
  };
}

function drawHbm(places, state, stripes) {
  const columns = Object.values(places).map((place) =>
    group(
      box(place.x, place.y, place.w, place.h, "panel"),
      box(place.x, place.y, place.w, place.h, "outline"),
      label(place.middle, place.y - 7, place.array.name, "strong", { "text-anchor": "middle" }),
    ),
  );
  const here = state.live.map((tile) => {
    const { x, y, w, h } = tileInHbm(places[tile.array], tile);
    return box(x, y, w, h, "seen", { "fill-opacity": 0.4 });
  });
  const moving = state.transfers.map((tile) => {
    const { x, y, w, h } = tileInHbm(places[tile.array], tile);
    return box(x, y, w, h, tile.kind === "load" ? "now edge" : "edge", {
      fill: tile.kind === "load" ? null : `url(#${stripes})`,
    });
  });
  return group(...columns, ...here, ...moving);
}

// ---- SRAM -----------------------------------------------------------------------------------

// What the box holds: live tiles, tiles that came and were let go at once, results on their way out.
function chipTiles(state) {
  const loaded = state.transfers.filter((tile) => tile.kind === "load");
  const stored = state.transfers.filter((tile) => tile.kind === "store");
  const live = state.live.map((tile) => ({
    ...tile,
    role: loaded.some((other) => sameTile(other, tile)) ? "arrives" : "stays",
  }));
  return [
    ...live,
    ...loaded.filter((tile) => !tile.alive).map((tile) => ({ ...tile, role: "let go" })),
    ...stored.map((tile) => ({ ...tile, role: "leaves" })),
  ];
}

// At most eight blocks fit; the rest are counted in the last one.
function placeOnChip(run, state, x, y, width) {
  const tiles = chipTiles(state);
  const room = Math.max(3, Math.min(8, Math.floor(width / 92)));
  const shown = tiles.length > room ? tiles.slice(-room + 1) : tiles;
  const w = Math.min(104, (width - 16) / room - 6);
  const first = shown.length < tiles.length ? 1 : 0;
  const blocks = shown.map((tile, i) => ({
    tile,
    x: x + 8 + (i + first) * (w + 6),
    y: y + 10,
    w,
    h: CHIP_ROW,
  }));
  return { blocks, hidden: tiles.length - shown.length, x: x + 8, y: y + 10, w };
}

const LOOK = {
  arrives: ["now edge", " on"],
  stays: ["seen edge", " on"],
  leaves: [null, " on"],
  "let go": ["dashed", ""],
};

function drawBlock(run, { tile, x, y, w, h }, stripes) {
  const [style, ink] = LOOK[tile.role];
  const middle = { "text-anchor": "middle" };
  const array = arrayOf(run, tile.array);
  const lines = covers(tile, array) ? [range(tile.rows)] : [`${range(tile.rows)},`, range(tile.cols)];
  return group(
    style === null
      ? box(x, y, w, h, "edge", { fill: `url(#${stripes})`, rx: 5 })
      : box(x, y, w, h, style, { rx: 5 }),
    style === null ? box(x + 5, y + 4, w - 10, h - 8, "rescaled", { rx: 3 }) : null,
    label(
      x + w / 2,
      y + 17,
      [part(tile.array, null, "strong"), part(` ${tile.role}`)],
      `small${ink}`,
      middle,
    ),
    ...lines.map((words, i) => label(x + w / 2, y + 32 + 14 * i, words, `small number${ink}`, middle)),
  );
}

function drawChip(run, state, chip, x, y, width, stripes) {
  const share = state.sram_bytes / run.sram_bytes;
  const top = y + CHIP_ROW + 20;
  return group(
    box(x, y, width, CHIP_ROW + 56, "panel", { rx: 8 }),
    box(x, y, width, CHIP_ROW + 56, "outline", { rx: 8 }),
    chip.hidden
      ? label(chip.x + chip.w / 2, chip.y + 27, `${chip.hidden} more`, "small quiet", {
          "text-anchor": "middle",
        })
      : null,
    ...chip.blocks.map((block) => drawBlock(run, block, stripes)),
    box(x + 10, top, (width - 20) * Math.min(1, share), 9, "seen edge", { rx: 2 }),
    box(x + 10, top, width - 20, 9, "outline", { rx: 2 }),
    label(x + 10, top + 26, "SRAM", "strong"),
    label(
      x + 62,
      top + 26,
      [
        part(whole(state.sram_bytes), "sram", "strong"),
        part(
          ` of ${whole(run.sram_bytes)} bytes hold loaded tiles, ${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`,
        ),
      ],
      "small",
    ),
  );
}

// ---- Between them ---------------------------------------------------------------------------

const middleOf = ({ x, y, w, h }) => [x + w / 2, y + h / 2];

function journeys(places, chip, state) {
  return state.transfers.flatMap((tile) => {
    const block = chip.blocks.find(
      (other) => sameTile(other.tile, tile) && (other.tile.role === "leaves") === (tile.kind === "store"),
    );
    return block ? [{ tile, hbm: tileInHbm(places[tile.array], tile), block }] : [];
  });
}

// Beside the arrow, on the side that it leans away from, and never past the right edge.
function arrowWords([hx, hy], [bx, by], nbytes, right) {
  const y = by - 42;
  const x = hx + ((y - hy) * (bx - hx)) / (by - hy);
  const inward = x + 92 > right;
  const below = hx > bx !== inward;
  return label(x + (inward ? -12 : 12), y + (below ? 10 : -4), `${whole(nbytes)} bytes`, "small number", {
    "text-anchor": inward ? "end" : "start",
  });
}

function drawArrow({ tile, hbm, block }, arrow, alone, right) {
  const [there, here] = [
    [hbm.x + hbm.w / 2, hbm.y + hbm.h],
    [block.x + block.w / 2, block.y],
  ];
  const ends = tile.kind === "load" ? [...there, here[0], here[1] - 3] : [...here, there[0], there[1] + 3];
  return group(
    line(...ends, "axis", { "stroke-width": 1.6, "marker-end": `url(#${arrow})` }),
    alone ? arrowWords(there, here, tile.nbytes, right) : null,
  );
}

// A copy of the tile that flies to its place once and is gone.
function fly({ tile, hbm, block }, delay) {
  const [from, to] = tile.kind === "load" ? [hbm, block] : [block, hbm];
  const flyer = box(from.x, from.y, from.w, from.h, tile.kind === "load" ? "now edge" : "rescaled edge", {
    class: "flyer " + (tile.kind === "load" ? "now edge" : "rescaled edge"),
  });
  const frame = (at) => ({ x: `${at.x}px`, y: `${at.y}px`, width: `${at.w}px`, height: `${at.h}px` });
  const flight = flyer.animate([frame(from), frame(to)], {
    duration: 550,
    delay,
    easing: "ease-in-out",
    fill: "both",
  });
  flight.onfinish = () => flyer.remove();
  return flyer;
}

const arrowHead = (id) =>
  svg(
    "marker",
    { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    svg("path", { d: "M0 0 L8 4 L0 8 Z", fill: "currentColor" }),
  );

// ---- The counters ---------------------------------------------------------------------------

const ROW = 19;

function drawCounters(run, state, most, x, y, width, stripes) {
  const [first, second] = [x + width - 118, x + width];
  const end = { "text-anchor": "end" };
  const scale = (width - 264) / most;
  const head = group(
    label(x, y, "bytes moved", "small quiet"),
    box(first - 42, y - 9, 10, 10, "seen edge"),
    label(first, y, "read", "small quiet", end),
    box(second - 58, y - 9, 10, 10, "edge", { fill: `url(#${stripes})` }),
    label(second, y, "written", "small quiet", end),
  );
  const rows = run.arrays.map(({ name }, i) => {
    const top = y + 8 + i * ROW;
    const [read, written] = [state.read[name], state.written[name]];
    return group(
      label(x, top + 12, name, "strong"),
      box(x + 40, top + 3, read * scale, 10, "seen edge"),
      box(x + 40 + read * scale, top + 3, written * scale, 10, "edge", { fill: `url(#${stripes})` }),
      label(first, top + 13, whole(read), "number small", { ...end, "data-k": `read ${name}` }),
      label(second, top + 13, whole(written), "number small", { ...end, "data-k": `written ${name}` }),
    );
  });
  return group(head, ...rows);
}

function drawTotal(state, end, most, x, y, width) {
  const scale = (width - 2) / most;
  return group(
    label(
      x,
      y,
      [part("total "), part(whole(state.total), "total", "strong"), part(` of ${whole(end)} bytes`)],
      "number small",
    ),
    box(x, y + 7, state.total * scale, 14, "true"),
    box(x, y + 7, end * scale, 14, "outline", { "stroke-width": 1.5 }),
  );
}

// ---- One run --------------------------------------------------------------------------------

const sceneHeight = (run, wide) => {
  const picture = 40 + HBM_HEIGHT + BUS + CHIP_ROW + 56;
  const counters = 24 + run.arrays.length * ROW + 46;
  return wide ? Math.max(picture, counters) : picture + 30 + counters;
};

function drawScene({ run, trace, k, scales, ids, flying }, x, y, width, wide) {
  const state = trace[Math.min(k, trace.length - 1)];
  const finished = k >= trace.length - 1;
  const room = wide ? Math.round(width * 0.58) : width;
  const places = placeArrays(run, x, y + 40, room);
  const chipTop = y + 40 + HBM_HEIGHT + BUS;
  const chip = placeOnChip(run, state, x, chipTop, room);
  const paths = journeys(places, chip, state);
  const [cx, cy, cw] = wide
    ? [x + room + 36, y + 30, width - room - 36]
    : [x, chipTop + CHIP_ROW + 84, width];
  return [
    label(x, y + 12, [
      part(run.name ? `${run.name} · HBM` : "HBM", null, "strong"),
      part(finished ? " · finished" : ""),
    ]),
    drawHbm(places, state, ids.stripes),
    drawChip(run, state, chip, x, chipTop, room, ids.stripes),
    ...paths.map((path) => drawArrow(path, ids.arrow, paths.length === 1, x + room)),
    drawCounters(run, state, scales.array, cx, cy, cw, ids.stripes),
    drawTotal(state, trace.at(-1).total, scales.total, cx, cy + scales.rows * ROW + 32, cw),
    ...(flying ? paths.map((path, i) => fly(path, 60 * Math.min(i, 6))) : []),
  ];
}

// ---- In words -------------------------------------------------------------------------------

function transferWords(run, state) {
  const [first] = state.transfers;
  const verb = first.kind === "load" ? "read from" : "written to";
  const others = state.transfers.length - 1;
  const more = others > 0 ? `, and ${others} more transfers` : "";
  return `${tileName(first, arrayOf(run, first.array))} is ${verb} HBM, ${whole(first.nbytes)} bytes${more}`;
}

function runWords({ run, trace }, k) {
  const name = run.name ? `${run.name}: ` : "";
  const state = trace[Math.min(k, trace.length - 1)];
  const what = k > trace.length - 1 ? "finished" : transferWords(run, state);
  return `${name}${what}; ${whole(state.sram_bytes)} of ${whole(run.sram_bytes)} bytes of SRAM in use, ${whole(state.total)} bytes moved so far.`;
}

function comparison(scenes) {
  const [a, b] = scenes.map(({ trace }) => trace.at(-1).total);
  const [first, second] = scenes.map(({ run }) => run.name);
  return `At the end ${first} has moved ${whole(a)} bytes, ${second} ${whole(b)}: a ratio of ${(a / b).toFixed(2)}.`;
}

function asides(scenes, together) {
  const words = [];
  if (scenes.length > 1) words.push("A step is the same number of transfers in both.", comparison(scenes));
  if (together > 1)
    words.push(`The run is long: each step shows ${together} transfers together; no byte is left out.`);
  return words.join(" ");
}

// ---- The widget -----------------------------------------------------------------------------

function render({ model, el }) {
  const ids = { stripes: uniqueId(), arrow: uniqueId() };
  const steps = () => Math.max(model.get("trace").length, model.get("beside").length);

  function scenes(k, flying) {
    const [runs, traces] = [model.get("runs"), [model.get("trace"), model.get("beside")]];
    const ends = runs.map((_, i) => traces[i].at(-1));
    const moved = ends.flatMap((end) =>
      Object.keys(end.read).map((name) => end.read[name] + end.written[name]),
    );
    const rows = Math.max(...runs.map((run) => run.arrays.length));
    const scales = {
      rows,
      array: Math.max(...moved, 1),
      total: Math.max(...ends.map((end) => end.total), 1),
    };
    return runs.map((run, i) => ({
      run,
      trace: traces[i],
      k,
      scales,
      ids,
      flying: flying && k < traces[i].length,
    }));
  }

  function draw(k, { width, from }) {
    const shown = scenes(k, from === k - 1 && !stillness());
    const two = shown.length > 1;
    const abreast = two && width >= 860;
    const wide = !two && width >= 860;
    const room = abreast ? (width - 40) / 2 : width;
    const tall = Math.max(...shown.map(({ run }) => sceneHeight(run, wide)));
    const marks = shown.map((scene, i) =>
      drawScene(scene, abreast ? i * (room + 40) : 0, abreast ? 0 : i * (tall + 20), room, wide),
    );
    return {
      height: two && !abreast ? 2 * tall + 20 : tall,
      marks: [svg("defs", {}, hatch(ids.stripes, "rescaled"), arrowHead(ids.arrow)), ...marks.flat()],
      say: shown.map((scene) => runWords(scene, k)).join(" "),
      why: asides(shown, model.get("together")),
    };
  }

  return stepper({ model, el, draw, title: model.get("title"), count: steps, watch: ["beside"] }).unmount;
}

export default { render };
