// ---- The algorithm, the same as tile_rescaling_trace in Python -----------------------------

const sum = (numbers) => numbers.reduce((total, x) => total + x, 0);
// While m is −∞ every score is −∞ too; −∞ − (−∞) would be NaN, the term is 0.
const termsOf = (s, m) => s.map((x) => (m > -Infinity ? Math.exp(x - m) : 0));
const weighted = (terms, V) => V[0].map((_, c) => sum(terms.map((p, j) => p * V[j][c])));
const divide = (O, l) => O.map((o) => (l ? o / l : 0));
const identity = (n) =>
  Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => Number(i === j)));

function update(m_old, l_old, O_old, s, V) {
  const m = Math.max(m_old, ...s);
  const factor = m_old > -Infinity ? Math.exp(m_old - m) : null;
  const scale = factor ?? 1; // nothing seen: l and O are 0 already
  const terms = termsOf(s, m);
  const l_rescaled = l_old * scale;
  const O_rescaled = O_old.map((o) => o * scale);
  const l = l_rescaled + sum(terms);
  const O = weighted(terms, V).map((fresh, c) => O_rescaled[c] + fresh);
  const kept = l ? l_rescaled / l : 0;
  return {
    m_old,
    m,
    factor,
    l_old,
    l_rescaled,
    terms,
    l,
    O_old,
    O_rescaled,
    O,
    kept,
    out_old: divide(O_old, l_old),
    out: divide(O, l),
  };
}

export function tileRescalingTrace(tiles, values = []) {
  const row = tiles.flat();
  const V = values.length ? values : identity(row.length);
  const whole_row = termsOf(row, Math.max(...row));
  const truth = divide(weighted(whole_row, V), sum(whole_row));
  const padded = (seen, m) => [...termsOf(seen, m), ...Array(row.length - seen.length).fill(null)];
  const trace = [];
  let [m, l, O, seen] = [-Infinity, 0, V[0].map(() => 0), []];
  tiles.forEach((s, tile) => {
    const change = update(m, l, O, s, V.slice(seen.length, seen.length + s.length));
    trace.push({ tile, phase: "read", ...change, weights: padded(seen, m), truth });
    ({ m, l, O } = change);
    if (change.factor !== null)
      trace.push({ tile, phase: "rescale", ...change, weights: padded(seen, m), truth });
    seen = [...seen, ...s];
    trace.push({ tile, phase: "add", ...change, weights: padded(seen, m), truth });
  });
  trace.push({ ...trace.at(-1), phase: "divide" });
  return trace;
}

// ---- Scores as text: "1, 3 | 2, 5" ----------------------------------------------------------

const MASKED = /^[-−]\s*(inf|infinity|∞)$/i;
// A score as it was typed, at most four decimals: 2.5, −301, −∞.
const brief = (x) =>
  Math.abs(x) < 1e5
    ? decimal(x)
        .replace(/(\.\d*?)0+$/, "$1")
        .replace(/\.$/, "")
    : decimal(x);
const scoreText = (s) => (s === -Infinity ? "-inf" : String(s));
const scoresText = (tiles) => tiles.map((s) => s.map(scoreText).join(", ")).join(" | ");

function parseScore(words, tile) {
  if (MASKED.test(words)) return -Infinity;
  const s = Number(words.replace("−", "-"));
  if (Number.isFinite(s)) return s;
  throw new Error(
    `Tile ${tile}: “${words}” is not a number. Write scores like 1, 3 | 2, 5; -inf masks a key.`,
  );
}

export function parseScores(text, limits) {
  const tiles = text.split("|").map((words, index) => {
    const pieces = words.split(/[,;\s]+/).filter((piece) => piece !== "");
    if (!pieces.length)
      throw new Error(`Tile ${index + 1} is empty: put at least one score on each side of a |.`);
    return pieces.map((piece) => parseScore(piece, index + 1));
  });
  const most = Math.max(...tiles.map((s) => s.length));
  if (tiles.length > limits.tiles)
    throw new Error(`${tiles.length} tiles: the picture holds at most ${limits.tiles}.`);
  if (most > limits.tile)
    throw new Error(`A tile of ${most} scores: the picture holds at most ${limits.tile} in a tile.`);
  if (tiles.flat().length > limits.scores)
    throw new Error(`${tiles.flat().length} scores: the picture holds at most ${limits.scores}.`);
  return tiles;
}
