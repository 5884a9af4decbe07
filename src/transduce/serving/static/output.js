// A translation shown word by word: each can be asked about, and is shaded by how unsure the model is of it.
// The words are one stop of the Tab key; arrow keys go from word to word. They stay text that can be marked.

import { alternatives } from "./client.js";
import { element } from "./dom.js";

// The words of a line with where they begin, and the white space before each.
function wordsOf(text) {
  return [...text.matchAll(/(\s*)(\S+)/gu)].map((found) =>
    ({ space: found[1], word: found[2], begin: found.index + found[1].length }));
}

// Which sentence of a line a place of its output belongs to, in the source and in the output.
export function sentenceAt(line, place) {
  const output = line.outputs[0], parts = output.parts;
  let at = parts.length - 1;
  while (at > 0 && parts[at][1] > place) at--;
  if (at < 0) return null;
  const [source, begin] = parts[at], next = parts[at + 1];
  return {
    source: line.source.slice(source, next ? next[0] : undefined),
    begin,
    end: next ? next[1] : output.text.length,
  };
}

export class Output {
  constructor(root, changed) {
    this.root = root;
    this.changed = changed;
    this.lines = [];
    this.menu = null;
    root.addEventListener("click", (event) => {
      const button = event.target.closest(".word");
      if (button) this.ask(button);
    });
    root.addEventListener("keydown", (event) => this.go(event));
    document.addEventListener("click", (event) => {
      if (this.menu && !this.menu.contains(event.target) && !event.target.closest(".word")) this.close();
    });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") this.close(true); });
  }

  get text() { return this.lines.map((line) => line.outputs[0].text).join("\n"); }

  // Text that is still coming.
  growing(text) {
    this.close();
    this.root.classList.add("waiting");
    this.root.replaceChildren(text);
  }

  clear() {
    this.close();
    this.lines = [];
    this.root.classList.remove("waiting");
    this.root.replaceChildren();
  }

  // The whole translation: what `end` of a stream says; `pair` are its languages.
  show(found, pair) {
    this.lines = found.lines;
    this.pair = pair;
    this.root.classList.remove("waiting");
    this.draw();
  }

  draw() {
    this.close();
    this.root.replaceChildren(...this.lines.map((line, number) => {
      const output = line.outputs[0], shown = element("p", { dir: "auto" });
      const sure = output.words ?? [];
      wordsOf(output.text).forEach(({ space, word, begin }, at) => {
        const button = element("span", { role: "button", class: "word", "data-line": number, "data-begin": begin,
          tabindex: number || at ? "-1" : "0", "aria-haspopup": "listbox", "aria-expanded": "false" }, word);
        const confidence = sure[at]?.confidence ?? null;
        if (confidence !== null) {
          button.style.setProperty("--doubt", (0.6 * (1 - confidence) ** 1.5).toFixed(3));
          button.title = `${Math.round(100 * confidence)} % sure`;
        }
        shown.append(space, button);
      });
      if (line.warnings.length) {
        shown.className = "unsure";
        shown.title = line.warnings.join("\n");
      }
      return shown;
    }));
  }

  go(event) {
    const button = event.target.closest(".word"), move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!button) return;
    if (event.key === "Enter" || event.key === " ") this.ask(button);
    else if (move) {
      const words = [...this.root.querySelectorAll(".word")], next = words[words.indexOf(button) + move];
      if (!next) return;
      button.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    } else return;
    event.preventDefault();
  }

  close(back = false) {
    if (!this.menu) return;
    this.menu.remove();
    this.menu = null;
    this.asking?.abort();
    this.button.setAttribute("aria-expanded", "false");
    if (back) this.button.focus();
  }

  // What else could stand where the word stands, in a list below it.
  async ask(button) {
    const open = this.menu && this.button === button;
    this.close();
    if (open) return;
    const number = Number(button.dataset.line), line = this.lines[number], place = Number(button.dataset.begin);
    const sentence = sentenceAt(line, place);
    if (!sentence || !this.pair.single) return;
    this.button = button;
    this.asking = new AbortController();
    this.menu = element("ul", { class: "choices", role: "listbox", tabindex: "-1", "aria-label": "Other words" },
      element("li", { role: "option", "aria-disabled": "true" }, "…"));
    button.setAttribute("aria-expanded", "true");
    document.querySelector("main").append(this.menu);
    this.place();
    this.menu.focus();
    const menu = this.menu, before = line.outputs[0].text.slice(sentence.begin, place);
    const { source, target } = this.pair;
    try {
      const found = await alternatives({ source, target, text: sentence.source, prefix: before }, this.asking.signal);
      if (this.menu === menu) this.choose(menu, found.words, (text) => this.put(number, sentence, text));
    } catch (error) {
      if (error.name !== "AbortError" && this.menu === menu)
        menu.replaceChildren(element("li", { role: "option", "aria-disabled": "true" }, error.message));
    }
  }

  // The list below its word, and within the window.
  place() {
    const corner = this.button.getBoundingClientRect(), room = document.documentElement.clientWidth - this.menu.offsetWidth - 4;
    this.menu.style.left = `${Math.max(4, Math.min(corner.left, room)) + scrollX}px`;
    this.menu.style.top = `${corner.bottom + 4 + scrollY}px`;
  }

  choose(menu, words, take) {
    const options = words.map((one, at) => element("li", { role: "option", id: `choice-${at}`, "aria-selected": at === 0 },
      one.word || "(the end)", element("span", {}, `${Math.round(100 * one.probability)} %`), element("small", { dir: "auto" }, one.text)));
    let chosen = 0;
    const mark = (at) => {
      chosen = (at + options.length) % options.length;
      options.forEach((option, i) => option.setAttribute("aria-selected", i === chosen));
      menu.setAttribute("aria-activedescendant", options[chosen].id);
    };
    options.forEach((option, at) => option.addEventListener("click", () => take(words[at].text)));
    menu.addEventListener("keydown", (event) => {
      const moves = { ArrowDown: 1, ArrowUp: -1 };
      if (event.key in moves) mark(chosen + moves[event.key]);
      else if (event.key === "Enter" || event.key === " ") take(words[chosen].text);
      else if (event.key === "Tab") { this.close(true); return; }
      else return;
      event.preventDefault();
    });
    menu.replaceChildren(...options);
    this.place();
    mark(0);
  }

  // A sentence of a line in other words; what follows it moves along.
  put(number, sentence, text) {
    const line = this.lines[number], output = line.outputs[0];
    const old = output.text.slice(sentence.begin, sentence.end), space = old.slice(old.trimEnd().length);
    const moved = text.length + space.length - old.length;
    const parts = output.parts.map(([from, to]) => [from, to > sentence.begin ? to + moved : to]);
    const whole = output.text.slice(0, sentence.begin) + text + space + output.text.slice(sentence.end);
    this.lines[number] = { ...line, warnings: [], outputs: [{ ...output, text: whole, parts, words: null }] };
    this.draw();
    this.root.querySelector(`.word[data-line="${number}"]`)?.focus();
    this.changed();
  }
}
