// Text to subword ids and back, as Transduce does it: pieces.json in, ids out.
//
// Nothing is normalised. A character that the vocabulary lacks becomes its UTF-8 bytes, so every text has ids and
// `decode(encode(text))` is the text again, but that a line feed comes back as a space.

const SPACE = "\u2581"; // how pieces write a space
const ESCAPE = "\ue000"; // stands before 1 for a U+2581 of the text, before 0 for itself
const REPLACEMENT = [0xef, 0xbf, 0xbd]; // U+FFFD in UTF-8
const UNKNOWN_PENALTY = 10;

export class Tokenizer {
  // `described` is the parsed content of pieces.json.
  constructor(described) {
    this.algorithm = described.algorithm;
    this.pieces = described.pieces;
    this.scores = described.scores;
    this.silent = new Set(described.silent);
    this.unknown = described.unknown;
    this.bytes = described.bytes;
    this.byteOf = new Map(this.bytes.map((id, byte) => [id, byte]));
    this.ids = new Map();
    this.longest = 0;
    let lowest = Infinity;
    this.pieces.forEach((piece, id) => {
      if (this.silent.has(id) || this.byteOf.has(id) || id === this.unknown) return;
      this.ids.set(piece, id);
      this.longest = Math.max(this.longest, [...piece].length);
      lowest = Math.min(lowest, this.scores[id]);
    });
    this.unknownScore = Math.fround(lowest - UNKNOWN_PENALTY);
  }

  // The ids of one line, without the end; throws for what is no valid Unicode.
  encode(text) {
    if (/\p{Surrogate}/u.test(text)) throw new RangeError("the text holds half of a surrogate pair; remove it");
    if (text === "") return [];
    const escaped = text.replaceAll(ESCAPE, ESCAPE + "0").replaceAll(SPACE, ESCAPE + "1");
    const characters = [...(SPACE + escaped.replaceAll(" ", SPACE))];
    const pieces = this.algorithm === "bpe" ? this.merged(characters) : this.likeliest(characters);
    return pieces.flatMap((piece) => this.ids.get(piece) ?? this.spelled(piece));
  }

  // The text of any sequence of ids; always one line.
  decode(ids) {
    let text = "";
    let bytes = [];
    let first = true;
    const finish = () => {
      text += decodeUtf8(bytes);
      bytes = [];
    };
    for (const id of ids) {
      if (this.silent.has(id)) continue;
      if (this.byteOf.has(id)) bytes.push(this.byteOf.get(id));
      else if (id === this.unknown || this.pieces[id] === undefined) bytes.push(...REPLACEMENT);
      else {
        finish();
        const piece = this.pieces[id].replaceAll(SPACE, " ");
        // The space that every text is given in front is no part of it.
        text += first && piece.startsWith(" ") ? piece.slice(1) : piece;
      }
      first = false;
    }
    finish();
    return text.replaceAll(ESCAPE + "1", SPACE).replaceAll(ESCAPE + "0", ESCAPE).replaceAll("\n", " ");
  }

  // The bytes of a character that is no piece.
  spelled(character) {
    return [...new TextEncoder().encode(character)].map((byte) => this.bytes[byte]);
  }

  // Byte pair encoding: neighbours become one piece, the pair with the highest score first, the leftmost of equals.
  merged(characters) {
    const symbols = characters.map((piece, at) => ({ piece, before: at - 1, after: at + 1 }));
    const queue = new Queue();
    const consider = (left, right) => {
      if (left < 0 || right >= symbols.length) return;
      const piece = symbols[left].piece + symbols[right].piece;
      const id = this.ids.get(piece);
      if (id !== undefined) queue.push({ score: this.scores[id], left, right, piece });
    };
    for (let at = 0; at + 1 < symbols.length; at++) consider(at, at + 1);
    for (let best = queue.pop(); best !== undefined; best = queue.pop()) {
      const left = symbols[best.left];
      const right = symbols[best.right];
      // One of the two has become part of another piece meanwhile.
      if (left.piece === "" || right.piece === "" || left.piece + right.piece !== best.piece) continue;
      left.piece = best.piece;
      right.piece = "";
      left.after = right.after;
      if (left.after < symbols.length) symbols[left.after].before = best.left;
      consider(left.before, best.left);
      consider(best.left, left.after);
    }
    return symbols.filter((symbol) => symbol.piece !== "").map((symbol) => symbol.piece);
  }

  // The unigram model: the pieces whose scores have the highest sum, added up in single precision.
  likeliest(characters) {
    const ends = Array.from({ length: characters.length + 1 }, () => ({ score: -Infinity, start: -1 }));
    ends[0].score = 0;
    const offer = (end, start, score) => {
      if (ends[end].start < 0 || score > ends[end].score) ends[end] = { score: Math.fround(score), start };
    };
    for (let start = 0; start < characters.length; start++) {
      const here = ends[start].score;
      let piece = "";
      for (let end = start + 1; end <= Math.min(characters.length, start + this.longest); end++) {
        piece += characters[end - 1];
        const id = this.ids.get(piece);
        if (id !== undefined) offer(end, start, here + this.scores[id]);
      }
      if (!this.ids.has(characters[start])) offer(start + 1, start, Math.fround(here + this.unknownScore));
    }
    const pieces = [];
    for (let end = characters.length; end > 0; end = ends[end].start) {
      pieces.push(characters.slice(ends[end].start, end).join(""));
    }
    return pieces.reverse();
  }
}

// Candidates for a merge; gives back the one with the highest score, the leftmost of equals. A binary heap.
class Queue {
  constructor() {
    this.heap = [];
  }

  push(item) {
    const { heap } = this;
    let at = heap.push(item) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!precedes(heap[at], heap[parent])) break;
      [heap[at], heap[parent]] = [heap[parent], heap[at]];
      at = parent;
    }
  }

  pop() {
    const { heap } = this;
    const top = heap[0];
    const last = heap.pop();
    if (heap.length > 0) {
      heap[0] = last;
      let at = 0;
      for (;;) {
        let best = at;
        for (const child of [2 * at + 1, 2 * at + 2]) {
          if (child < heap.length && precedes(heap[child], heap[best])) best = child;
        }
        if (best === at) break;
        [heap[at], heap[best]] = [heap[best], heap[at]];
        at = best;
      }
    }
    return top;
  }
}

function precedes(one, other) {
  return one.score > other.score || (one.score === other.score && one.left < other.left);
}

// The characters that bytes spell; U+FFFD for each byte that belongs to none.
function decodeUtf8(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const size = sizeOfCharacter(bytes, at);
    text += size === 0 ? "\ufffd" : new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes.slice(at, at + size)));
    at += Math.max(size, 1);
  }
  return text;
}

// The number of bytes of the character that begins there, or 0.
function sizeOfCharacter(bytes, at) {
  const lead = bytes[at];
  if (lead < 0x80) return 1;
  const size = lead >= 0xc2 && lead < 0xe0 ? 2 : lead >= 0xe0 && lead < 0xf0 ? 3 : lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
  if (size === 0 || at + size > bytes.length) return 0;
  for (let i = 1; i < size; i++) if ((bytes[at + i] & 0xc0) !== 0x80) return 0;
  const second = bytes[at + 1];
  // Longer than needed, half of a surrogate pair, or beyond U+10FFFF.
  if ((lead === 0xe0 && second < 0xa0) || (lead === 0xed && second > 0x9f)) return 0;
  if ((lead === 0xf0 && second < 0x90) || (lead === 0xf4 && second > 0x8f)) return 0;
  return size;
}
