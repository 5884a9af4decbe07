// Attention of one sentence pair: choose a layer and a head, point at a token to see where it looks.
// showAttention(root, data, state): data[kind] = {layers, heads, rows, columns, weights}; the weights are lists,
// weights[layer][head][row][column], or packed as page_data in Python does it. `state` is what an earlier call gave
// back: what was chosen there stays chosen.

const KINDS = [
  ["encoder", "source looks at source"],
  ["decoder", "target looks at what came before"],
  ["cross", "target looks at source"],
];
const SVG = "http://www.w3.org/2000/svg";
const ROW = 22;

function unpacked(kind, part) {
  if (Array.isArray(part.weights))
    return { ...part, weight: (layer, head, row, column) => part.weights[layer][head][row][column] };
  const text = atob(part.weights);
  const steps = Uint8Array.from(text, (c) => c.charCodeAt(0));
  const rows = part.rows.length, columns = part.columns.length, causal = kind === "decoder";
  const perHead = causal ? (rows * (rows + 1)) / 2 : rows * columns;
  return {
    ...part,
    // The weight with which `row` looks at `column`, from 0 to 1.
    weight(layer, head, row, column) {
      if (causal && column > row) return 0;
      const start = (layer * part.heads + head) * perHead;
      const place = causal ? (row * (row + 1)) / 2 + column : row * columns + column;
      return steps[start + place] / 255;
    },
  };
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawn(name, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

const shown = (label) => label.replaceAll("\u2581", "\u00b7");

export function showAttention(root, data, earlier = {}) {
  const parts = Object.fromEntries(KINDS.map(([kind]) => [kind, unpacked(kind, data[kind])]));
  const state = { kind: "cross", layer: data.cross.layers - 1, head: 0, side: "row", token: 0, held: false, ...earlier };
  const view = {
    kind: element("select", { "aria-label": "Which attention" }),
    layer: element("select", { "aria-label": "Layer" }),
    head: element("select", { "aria-label": "Head" }),
    lines: element("div", { class: "lines" }),
    matrix: element("div", { class: "matrix" }),
    overview: element("div", { class: "overview" }),
    told: element("p", { class: "told", "aria-live": "polite" }),
  };
  for (const [kind, name] of KINDS) view.kind.append(element("option", { value: kind }, `${kind}: ${name}`));
  root.replaceChildren(
    element("fieldset", {}, element("label", {}, "attention", view.kind),
      element("label", {}, "layer", view.layer), element("label", {}, "head", view.head)),
    element("p", { class: "hint" }, "Point at a token, or go to it with Tab, to see where it looks; click to hold it."),
    view.told, view.lines,
    element("h2", {}, "The same head as a matrix"), view.matrix,
    element("h2", {}, "All heads"), view.overview,
  );
  const chosen = () => parts[state.kind];

  function options(select, count, value) {
    select.replaceChildren(...Array.from({ length: count }, (_, i) => element("option", { value: i }, `${i + 1}`)));
    select.value = value;
  }

  function colour() {
    return getComputedStyle(root).color.match(/\d+/g).slice(0, 3).map(Number);
  }

  function picture(layer, head, scale) {
    const part = chosen(), rows = part.rows.length, columns = part.columns.length;
    const canvas = element("canvas", { width: columns, height: rows });
    canvas.style.width = `${columns * scale}px`;
    canvas.style.height = `${rows * scale}px`;
    const context = canvas.getContext("2d"), image = context.createImageData(columns, rows), ink = colour();
    for (let row = 0, at = 0; row < rows; row++)
      for (let column = 0; column < columns; column++, at += 4) {
        image.data.set(ink, at);
        image.data[at + 3] = Math.round(255 * part.weight(layer, head, row, column));
      }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  function drawLines() {
    const part = chosen(), sides = { row: part.rows, column: part.columns };
    const longest = (labels) => Math.max(...labels.map((label) => shown(label).length)) * 8.5 + 12;
    const left = longest(part.rows), right = longest(part.columns), gap = 220;
    const height = Math.max(part.rows.length, part.columns.length) * ROW + 6;
    const svg = drawn("svg", { width: left + gap + right, height, role: "group", "aria-label": "Tokens" });
    const y = (index) => index * ROW + ROW / 2 + 3;
    const lines = drawn("g", { class: "weights" });
    svg.append(lines);
    for (const [side, labels] of Object.entries(sides))
      labels.forEach((label, index) => {
        const at = side === "row" ? { x: left - 6, "text-anchor": "end" } : { x: left + gap + 6 };
        const text = drawn("text", { ...at, y: y(index) + 4, class: "token", tabindex: 0, "data-side": side,
          "data-index": index }, shown(label));
        const look = () => { if (!state.held) { state.side = side; state.token = index; point(); } };
        text.addEventListener("pointerenter", look);
        text.addEventListener("focus", look);
        text.addEventListener("click", () => {
          const same = state.side === side && state.token === index;
          state.held = !(state.held && same);
          state.side = side; state.token = index; point();
        });
        svg.append(text);
      });
    view.lines.replaceChildren(svg);

    function point() {
      const { side, token } = state;
      const others = side === "row" ? part.columns : part.rows;
      const weights = others.map((_, other) => side === "row"
        ? part.weight(state.layer, state.head, token, other)
        : part.weight(state.layer, state.head, other, token));
      lines.replaceChildren(...weights.flatMap((weight, other) => {
        if (weight < 0.01) return [];
        const [row, column] = side === "row" ? [token, other] : [other, token];
        return [drawn("line", { x1: left, y1: y(row), x2: left + gap, y2: y(column), "stroke-opacity": weight,
          "stroke-width": 1 + 4 * weight })];
      }));
      svg.querySelectorAll(".token").forEach((text) => text.classList.toggle("chosen",
        text.dataset.side === side && Number(text.dataset.index) === token));
      const best = weights.map((weight, other) => [weight, other]).sort((a, b) => b[0] - a[0]).slice(0, 4);
      const verb = side === "row" ? "looks at" : "is looked at by";
      view.told.textContent = `${shown(sides[side][token])} ${verb} ` +
        best.filter(([weight]) => weight >= 0.01).map(([weight, other]) =>
          `${shown(others[other])} ${Math.round(weight * 100)} %`).join(", ");
    }
    point();
  }

  function drawOverview() {
    const part = chosen(), scale = Math.max(1, Math.floor(84 / Math.max(part.rows.length, part.columns.length)));
    const table = element("table");
    table.append(element("tr", {}, element("td"),
      ...Array.from({ length: part.heads }, (_, head) => element("th", { scope: "col" }, `${head + 1}`))));
    for (let layer = 0; layer < part.layers; layer++) {
      const row = element("tr", {}, element("th", { scope: "row" }, `layer ${layer + 1}`));
      for (let head = 0; head < part.heads; head++) {
        const pressed = layer === state.layer && head === state.head;
        const button = element("button", { type: "button", "aria-pressed": pressed,
          "aria-label": `layer ${layer + 1}, head ${head + 1}`, "data-layer": layer, "data-head": head },
        picture(layer, head, scale));
        button.addEventListener("click", () => { state.layer = layer; state.head = head; draw(); });
        row.append(element("td", {}, button));
      }
      table.append(row);
    }
    view.overview.replaceChildren(table);
  }

  function draw() {
    const part = chosen();
    state.layer = Math.min(state.layer, part.layers - 1);
    state.head = Math.min(state.head, part.heads - 1);
    const count = state.side === "row" ? part.rows.length : part.columns.length;
    state.token = Math.min(state.token, count - 1);
    view.kind.value = state.kind;
    options(view.layer, part.layers, state.layer);
    options(view.head, part.heads, state.head);
    drawLines();
    view.matrix.replaceChildren(picture(state.layer, state.head, Math.max(4, Math.min(14, Math.floor(640 / part.columns.length)))));
    drawOverview();
  }

  view.kind.addEventListener("change", () => { state.kind = view.kind.value; state.held = false; draw(); });
  view.layer.addEventListener("change", () => { state.layer = Number(view.layer.value); draw(); });
  view.head.addEventListener("change", () => { state.head = Number(view.head.value); draw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
  return state;
}
