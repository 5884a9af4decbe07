// Elements made and found.

const SVG = "http://www.w3.org/2000/svg";

export const by = (id) => document.getElementById(id);

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export const element = (name, attributes = {}, ...children) =>
  filled(document.createElement(name), attributes, children);
export const drawn = (name, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, name), attributes, children);

// A function that calls `work` when it was not called again for so many milliseconds; `.now()` calls it at once.
export function settled(work, milliseconds) {
  let timer = 0;
  const later = () => { clearTimeout(timer); timer = setTimeout(work, milliseconds); };
  later.now = () => { clearTimeout(timer); work(); };
  return later;
}
