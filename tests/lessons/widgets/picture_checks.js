// Run inside a widget's page by the tests: what a reader with good eyes would complain about.

// Texts of the picture that cover each other or leave it.
function collisions() {
  const picture = document.querySelector(".fab svg").getBoundingClientRect();
  const texts = [...document.querySelectorAll(".fab svg text")]
    .map((node) => {
      const { left, right, top, bottom } = node.getBoundingClientRect();
      return { words: node.textContent, left, right, top: top + 2, bottom: bottom - 2 };
    })
    .filter(({ words }) => words.trim());
  const outside = texts.filter(
    (text) =>
      text.left < picture.left - 1 ||
      text.right > picture.right + 1 ||
      text.top < picture.top - 2 ||
      text.bottom > picture.bottom + 2,
  );
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return [
    ...outside.map(({ words }) => `outside: ${words}`),
    ...texts.flatMap((a, i) =>
      texts
        .slice(i + 1)
        .filter((b) => meet(a, b))
        .map((b) => `${a.words} / ${b.words}`),
    ),
  ];
}

// Any CSS colour as [r, g, b] and alpha, by painting one pixel with it.
function parse(colour) {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d");
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return { rgb: [r, g, b], alpha: a / 255 };
}

function luminance(rgb) {
  const [r, g, b] = rgb
    .map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

const over = (top, alpha, under) => top.map((c, i) => alpha * c + (1 - alpha) * under[i]);

// The text with the lowest contrast against all that is painted under its middle.
function worstContrast() {
  const paper = parse(getComputedStyle(document.documentElement).backgroundColor).rgb;
  const painted = [];
  let worst = { ratio: 99, words: "" };
  for (const node of document.querySelectorAll(".fab svg > :not(defs), .fab svg > :not(defs) *")) {
    const { fill, fillOpacity } = getComputedStyle(node);
    if (node instanceof SVGGeometryElement && fill !== "none" && !fill.startsWith("url")) {
      const { rgb, alpha } = parse(fill);
      painted.push({ node, rgb, alpha: alpha * Number(fillOpacity) });
    }
    if (node.tagName !== "text" || !node.textContent.trim()) continue;
    const { left, right, top, bottom } = node.getBoundingClientRect();
    const middle = new DOMPoint((left + right) / 2, (top + bottom) / 2);
    const ground = painted
      .filter((shape) =>
        shape.node.isPointInFill(middle.matrixTransform(shape.node.getScreenCTM().inverse())),
      )
      .reduce((colour, shape) => over(shape.rgb, shape.alpha, colour), paper);
    const ink = parse(fill);
    const ratio = contrast(over(ink.rgb, ink.alpha * Number(fillOpacity), ground), ground);
    if (ratio < worst.ratio) worst = { ratio, words: node.textContent };
  }
  return worst;
}

// [step, finding] at each step; one call from Python, however many steps there are.
function atEachStep(steps, check) {
  return steps.map((k) => {
    model.set("step", k);
    return [k, check()];
  });
}

const fits = () =>
  document.documentElement.scrollWidth <= innerWidth &&
  document.querySelector(".fab").scrollWidth <= document.querySelector(".fab").clientWidth;
