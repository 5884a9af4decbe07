// What was translated, in this browser alone.

import { by, element } from "./dom.js";

const PLACE = "transduce-history", KEPT = "transduce-keep", MOST = 50;

// Storage may be switched off: then nothing is kept.
function stored(name, otherwise) {
  try { return JSON.parse(localStorage.getItem(name)) ?? otherwise; } catch { return otherwise; }
}

function store(name, value) {
  try { localStorage.setItem(name, JSON.stringify(value)); } catch { /* full or switched off */ }
}

export class History {
  constructor(take) {
    this.take = take;
    by("keep").checked = stored(KEPT, true);
    by("keep").addEventListener("change", () => {
      store(KEPT, by("keep").checked);
      if (!by("keep").checked) this.forget();
    });
    by("forget").addEventListener("click", () => this.forget());
    this.draw();
  }

  forget() { store(PLACE, []); this.draw(); }

  // One that goes on from the last one takes its place, since it is the same text, grown.
  add(entry) {
    if (!by("keep").checked || !entry.text.trim()) return;
    const past = stored(PLACE, []).filter((one) => one.text !== entry.text || one.target !== entry.target);
    const last = past[0];
    if (last && last.target === entry.target && (entry.text.startsWith(last.text) || last.text.startsWith(entry.text))) past.shift();
    store(PLACE, [entry, ...past].slice(0, MOST));
    this.draw();
  }

  draw() {
    const past = stored(PLACE, []);
    by("past").replaceChildren(...past.map((one) => {
      const button = element("button", { type: "button" }, element("span", { class: "soft" }, `${one.source} → ${one.target} `),
        element("span", { dir: "auto" }, one.text.slice(0, 200)), element("br"), element("strong", { dir: "auto" }, one.output.slice(0, 200)));
      button.addEventListener("click", () => this.take(one));
      return element("li", {}, button);
    }));
    by("forget").disabled = !past.length;
  }
}
