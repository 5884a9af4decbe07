// The inside of the model for one sentence: attention of every head, and the search, while it is typed.

import { showAttention } from "./attention.js";
import { attention, tree } from "./client.js";
import { by, settled } from "./dom.js";
import { drawTree } from "./tree.js";

const rowsAndColumns = (found) => ({
  encoder: [found.source, found.source],
  decoder: [found.target_out, found.target_in],
  cross: [found.target_out, found.source],
});

// What the attention view reads, of what the server says.
function readable(found) {
  return Object.fromEntries(Object.entries(rowsAndColumns(found)).map(([kind, [rows, columns]]) =>
    [kind, { layers: found[kind].length, heads: found[kind][0].length, rows, columns, weights: found[kind] }]));
}

export class Inspector {
  constructor(pair, failed) {
    this.pair = pair;
    this.failed = failed;
    this.view = {};
    this.asking = null;
    this.look = settled(() => this.ask(), 350);
    for (const id of ["sentence", "beam", "alpha"]) by(id).addEventListener("input", this.look);
  }

  open(sentence) {
    if (sentence && !by("sentence").value) by("sentence").value = sentence;
    this.look.now();
  }

  async ask() {
    this.asking?.abort();
    const asking = this.asking = new AbortController();
    const text = by("sentence").value.trim(), pair = this.pair();
    by("looked").textContent = "";
    if (!text) {
      by("attention").replaceChildren();
      by("tree").replaceChildren();
      return;
    }
    const beam = Number(by("beam").value) || 4, alpha = Number(by("alpha").value);
    try {
      const found = await attention({ ...pair, text }, asking.signal);
      this.view = showAttention(by("attention"), readable(found), this.view);
      by("looked").textContent = found.translation;
      drawTree(by("tree"), await tree({ ...pair, text, beam, alpha }, asking.signal));
      this.failed(null);
    } catch (error) {
      if (error.name !== "AbortError") this.failed(error);
    }
  }
}
