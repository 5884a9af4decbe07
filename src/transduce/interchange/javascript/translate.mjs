// Translates with a model that `transduce export --to onnx` wrote, in a browser or in Node.
//
//   import * as ort from "onnxruntime-web"; // or "onnxruntime-node"
//   import { Translator } from "./translate.mjs";
//   const translator = await Translator.load(ort, "https://example.org/model/");
//   console.log(await translator.translate("A dog runs."));

import { Tokenizer } from "./tokenizer.mjs";

// White space that does not belong to a line, as Python's str.strip() knows it.
const BLANK = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+";
const ENDS = new RegExp(`^${BLANK}|${BLANK}$`, "g");

export class Translator {
  constructor(ort, config, pieces, encoder, decoder) {
    Object.assign(this, { ort, config, encoder, decoder });
    this.tokenizer = new Tokenizer(pieces);
  }

  // The translator in a folder: its address, its path in Node, or a function that takes the name of a file and gives
  // a promise of its bytes. `options` are those of the runtime's sessions.
  static async load(ort, folder, options = {}) {
    const read = typeof folder === "function" ? folder : (name) => readFile(folder, name);
    const names = ["config.json", "pieces.json", "encoder.onnx", "decoder.onnx", "weights.bin"];
    const [config, pieces, encoder, decoder, weights] = await Promise.all(names.map(read));
    const externalData = [{ path: "weights.bin", data: weights }];
    const session = (graph) => ort.InferenceSession.create(graph, { ...options, externalData });
    return new Translator(ort, parsed(config), parsed(pieces), await session(encoder), await session(decoder));
  }

  // The translation of one line; throws for a line with more tokens than the model takes. A `beam` of 1 is greedy
  // search, which is faster. `to` and `domain` are for models that have tags for them.
  async translate(text, { beam = this.config.beam, alpha = this.config.alpha, to = "", domain = "" } = {}) {
    const tags = [to && `<2${to}>`, domain && `<${domain}>`].filter(Boolean).map((tag) => this.tag(tag));
    const ids = this.tokenizer.encode(text.replace(ENDS, ""));
    if (ids.length === 0) return "";
    const source = [...tags, ...ids, this.config.end];
    const most = this.config.max_source;
    if (source.length > most) {
      throw new RangeError(`the line has ${source.length} tokens, the model takes ${most}; split it`);
    }
    const limit = tags.length + ids.length + this.config.max_extra;
    const output = await this.search(source, limit, beam, alpha);
    return this.tokenizer.decode(output).replace(ENDS, "");
  }

  // Beam search (section 6.1 of "Attention Is All You Need"): the ids of the best output of at most `limit` tokens for
  // these source ids, which end in `config.end`. Outputs are ranked by log P / ((5 + length) / 6) ** alpha.
  async search(source, limit, beam, alpha) {
    const memory = await this.encoder.run({ source: this.ints([source]) });
    const penalty = (length) => ((5 + length) / 6) ** alpha;
    let past = this.nothing();
    let alive = [{ tokens: [this.config.start], logP: 0 }];
    let ended = null;
    for (let length = 1; length <= limit; length++) {
      const target = this.ints(alive.map((one) => one.tokens.slice(-1)));
      const found = await this.decoder.run({ target, ...memory, ...past });
      const logits = found.logits.data;
      const width = logits.length / alive.length;
      const candidates = alive.flatMap((one, row) =>
        this.likeliest(logits.subarray(row * width, (row + 1) * width), 2 * beam, length <= this.config.min_length).map(
          ({ token, logP }) => ({ tokens: [...one.tokens, token], logP: one.logP + logP, token, row }),
        ),
      );
      candidates.sort((a, b) => b.logP - a.logP || a.token - b.token || a.row - b.row);
      candidates.splice(beam > 1 ? 2 * beam : 1);
      for (const one of candidates) {
        const score = one.logP / penalty(length);
        if (one.token === this.config.end && (ended === null || score > ended.score)) ended = { ...one, score };
      }
      alive = candidates.filter((one) => one.token !== this.config.end).slice(0, beam);
      // Nothing alive can win any more, whatever length it would reach.
      const flattered = penalty(alpha >= 0 ? limit : length + 1);
      if (alive.length === 0 || (ended !== null && alive[0].logP / flattered <= ended.score)) break;
      past = this.remembered(found, alive.map((one) => one.row));
    }
    return (ended ?? alive[0]).tokens.slice(1);
  }

  // The likeliest tokens of a row of logits that an output may hold, best first, with their log P.
  likeliest(logits, count, tooSoonToEnd) {
    for (const id of this.config.forbidden) logits[id] = -Infinity;
    let top = -Infinity;
    for (const logit of logits) if (logit > top) top = logit;
    let sum = 0;
    for (const logit of logits) sum += Math.exp(logit - top);
    const logSum = top + Math.log(sum);
    if (tooSoonToEnd) logits[this.config.end] = -Infinity;
    const best = [];
    for (let token = 0; token < logits.length; token++) {
      if (best.length === count && logits[token] <= logits[best[count - 1]]) continue;
      if (logits[token] === -Infinity) continue;
      let at = best.length;
      while (at > 0 && logits[best[at - 1]] < logits[token]) at--;
      best.splice(at, 0, token);
      best.length = Math.min(best.length, count);
    }
    return best.map((token) => ({ token, logP: logits[token] - logSum }));
  }

  // What the decoder is to remember, row i of which is row `rows[i]` of what it has just given.
  remembered(found, rows) {
    const past = {};
    for (const name of Object.keys(found).filter((name) => name.startsWith("present_"))) {
      const { data, dims } = found[name];
      const size = data.length / dims[0];
      const kept = new Float32Array(size * rows.length);
      rows.forEach((row, at) => kept.set(data.subarray(row * size, (row + 1) * size), at * size));
      past[name.replace("present", "past")] = new this.ort.Tensor("float32", kept, [rows.length, ...dims.slice(1)]);
    }
    return past;
  }

  // What the decoder remembers before the first token.
  nothing() {
    const { heads, d_k, d_v, decoder_layers } = this.config.model;
    const past = {};
    for (let layer = 0; layer < decoder_layers; layer++) {
      past[`past_keys_${layer}`] = new this.ort.Tensor("float32", new Float32Array(0), [1, heads, 0, d_k]);
      past[`past_values_${layer}`] = new this.ort.Tensor("float32", new Float32Array(0), [1, heads, 0, d_v]);
    }
    return past;
  }

  ints(rows) {
    return new this.ort.Tensor("int32", Int32Array.from(rows.flat()), [rows.length, rows[0].length]);
  }

  tag(name) {
    const id = this.config.tags[name];
    if (id === undefined) throw new RangeError(`the model has no tag ${name}`);
    return id;
  }
}

function parsed(bytes) {
  return JSON.parse(new TextDecoder().decode(bytes));
}

// The bytes of a file: a path in Node, else an address, which a page may give relative to its own.
async function readFile(folder, name) {
  const address = `${String(folder).replace(/\/$/, "")}/${name}`;
  if (globalThis.process?.versions?.node && !/^\w+:\/\//.test(address)) {
    const { readFile } = await import("node:fs/promises");
    return new Uint8Array(await readFile(address));
  }
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status} ${answer.statusText}`);
  return new Uint8Array(await answer.arrayBuffer());
}
