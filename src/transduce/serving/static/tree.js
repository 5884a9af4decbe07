// The tree of a beam search: a column a step, in it the hypotheses that lived on, then those that did not.

import { drawn } from "./dom.js";

const ACROSS = 112, DOWN = 20;
const shown = (piece) => piece.replaceAll("\u2581", " ").trim() || "\u2423";

// `found.nodes` stand step by step, each with the place of its parent (-1: the start).
export function drawTree(root, found) {
  const nodes = found.nodes.map((node) => ({ ...node, children: [] }));
  const start = { parent: null, step: 0, piece: "<start>", fate: "kept", gain: 0, log_probability: 0, children: [] };
  for (const node of nodes) (node.parent < 0 ? start : nodes[node.parent]).children.push(node);
  const all = [start, ...nodes], steps = Map.groupBy(all, (node) => node.step);
  for (const [step, column] of steps) {
    const lived = (node) => node.children.length > 0 || ["best", "ended"].includes(node.fate);
    column.sort((a, b) => lived(b) - lived(a) || b.log_probability - a.log_probability);
    column.forEach((node, row) => { node.x = 12 + step * ACROSS; node.y = DOWN + row * DOWN; });
  }
  const width = Math.max(...all.map((node) => node.x)) + 2 * ACROSS;
  const height = Math.max(...all.map((node) => node.y)) + DOWN;
  const paths = all.flatMap((node) => node.children.map((child) => drawn("path", {
    class: child.fate, "stroke-width": (0.5 + 3.5 * Math.exp(Math.max(child.gain, -20))).toFixed(2),
    d: `M${node.x} ${node.y}C${node.x + 40} ${node.y} ${child.x - 40} ${child.y} ${child.x} ${child.y}`,
  })));
  const marks = all.map((node) => {
    const score = node.score == null ? "" : `, score ${node.score.toFixed(4)}`;
    const told = `${shown(node.piece)}: ${node.fate}, log P ${node.log_probability.toFixed(4)} (${node.gain.toFixed(4)})${score}`;
    return drawn("g", { class: node.fate }, drawn("title", {}, told), drawn("circle", { cx: node.x, cy: node.y, r: 4, class: node.fate }),
      drawn("text", { x: node.x + 5, y: node.y - 4 }, shown(node.piece)));
  });
  root.replaceChildren(drawn("svg", { width, height, role: "img", "aria-label":
    `${found.steps} steps; the search ended because ${found.reason}` }, ...paths, ...marks));
}
