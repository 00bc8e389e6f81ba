// The narration of a step: its numbers in plain words, and why the update is right.

// A few numbers are said one by one, of many only the largest: the table has them all.
function list(numbers) {
  if (numbers.length <= 8) return numbers.map(decimal).join(", ");
  const largest = Math.max(...numbers);
  return `largest at ${numbers.indexOf(largest) + 1} of ${numbers.length}: ${decimal(largest)}`;
}

function readWords(state, s) {
  if (s.every((x) => x === -Infinity)) return `every score is −∞ (masked), so m stays ${brief(state.m)}.`;
  const grown =
    state.m > state.m_old
      ? `m goes from ${brief(state.m_old)} to ${brief(state.m)}`
      : `m stays ${brief(state.m)}`;
  const factor =
    state.factor === null
      ? "Nothing was seen before: no factor."
      : `The factor is ${power(state.m_old, state.m)} = ${decimal(state.factor)}.`;
  return `the scores are ${s.map(brief).join(", ")}. ${grown}. ${factor}`;
}

function rescaleWords(state, local) {
  const old = `the old sum ${decimal(state.l_old)} × ${decimal(state.factor)} becomes ${decimal(state.l_rescaled)}`;
  if (!local) return `${old}. Every bar of O is multiplied by ${decimal(state.factor)} too.`;
  return `${old}; with the new terms l is ${decimal(state.l)}. Of the old O stays ${decimal(state.l_rescaled)} / ${decimal(state.l)} = ${decimal(state.kept)}.`;
}

function addWords(state) {
  const start = state.factor === null ? "" : `${decimal(state.l_rescaled)} plus `;
  const terms = state.terms.length <= 4 ? state.terms.map(decimal).join(" plus ") : termsText(state.terms);
  return `${start}${terms} gives l = ${decimal(state.l)}. O / l is ${list(state.out)}.`;
}

function divideWords(state) {
  return `Every tile is read. O / l is ${list(state.out)}. The softmax in one go gives ${list(state.truth)}; its sum is ${termsText(state.weights)} = ${decimal(sum(state.weights))}.`;
}

function inWords(state, tiles, local) {
  const place = `Tile ${state.tile + 1} of ${tiles.length}, ${state.phase}: `;
  if (state.phase === "read") return place + readWords(state, tiles[state.tile]);
  if (state.phase === "rescale") return place + rescaleWords(state, local);
  if (state.phase === "add") return place + addWords(state);
  return divideWords(state);
}

function reason(state, tiles, local) {
  const left = tiles.length - state.tile - 1;
  if (state.phase === "read" && state.factor === null)
    return "The first scores seen fix m. Each term will be e^(s − m), at most 1, so nothing overflows.";
  if (state.phase === "read" && state.m === state.m_old)
    return "m did not grow: old terms and new ones are measured from the same m, and the factor is 1.";
  if (state.phase === "read")
    return `The old terms are e^(s − ${brief(state.m_old)}), the new ones will be e^(s − ${brief(state.m)}): measured from different m, they cannot be added yet.`;
  if (state.phase === "rescale" && local)
    return `O = (l₁ / l₂) · O₁ + A₂ V₂ / l₂, with l₁ the rescaled old sum. O₁ · l₁ undoes the old, wrong denominator; / l₂ puts in the new one.`;
  if (state.phase === "rescale")
    return `e^(s − ${brief(state.m_old)}) · ${power(state.m_old, state.m)} = e^(s − ${brief(state.m)}): one multiplication moves the whole old sum to the new m. O shrinks with l, so O / l has not changed.`;
  if (state.phase === "add" && left > 0)
    return `O / l is the softmax over the keys seen so far. Its denominator still lacks ${left === 1 ? "one tile" : `${left} tiles`}; each later tile enlarges l and so shrinks these shares.`;
  if (state.phase === "add")
    return "The denominator now holds every key: what was wrong after the earlier tiles is put right.";
  if (local)
    return "Nothing is left to divide: l was divided out at every tile. The price is one division of all of O for each tile.";
  return "One division at the end. The wrong denominators on the way never mattered: l and O were always scaled alike.";
}
