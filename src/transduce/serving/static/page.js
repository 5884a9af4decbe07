// The page: what its parts do together.

import { languages, settings, stream, translateFile, useKey } from "./client.js";
import { by, element, settled } from "./dom.js";
import { History } from "./history.js";
import { Inspector } from "./inspector.js";
import { Output } from "./output.js";

const RIGHT_TO_LEFT = new Set(["ar", "arc", "ckb", "dv", "fa", "he", "ku", "ps", "sd", "ug", "ur", "yi"]);
const direction = (code) => (RIGHT_TO_LEFT.has(code.split("-")[0]) ? "rtl" : "auto");
const state = { known: [], detected: "", asking: null, done: "" };

const output = new Output(by("output"), remember);
const history = new History(take);
const inspector = new Inspector(() => ({ source: by("from").value, target: by("to").value }), failed);
const translate = settled(ask, 350);

function failed(error) {
  by("problem").hidden = !error;
  by("problem").textContent = error ? error.message : "";
  if (error && [401, 403].includes(error.status)) { by("access").hidden = false; by("access").open = true; }
}

// The targets of the chosen source; of no source, those of all.
function fillTargets(wanted) {
  const source = by("from").value || state.detected;
  const rows = state.known.filter((one) => by("from").value === "auto" || one.code === source);
  const targets = new Map(rows.flatMap((one) => one.targets.filter((t) => t.code !== one.code).map((t) => [t.code, t.name])));
  by("to").replaceChildren(...[...targets].map(([code, name]) => element("option", { value: code }, name)));
  if (targets.has(wanted)) by("to").value = wanted;
  by("source").dir = by("from").value === "auto" ? "auto" : direction(by("from").value);
  by("output").dir = direction(by("to").value || "");
}

async function begin() {
  try {
    state.known = await languages();
    const usual = (await settings()).language;
    const sources = state.known.filter((one) => one.targets.some((target) => target.code !== one.code));
    by("from").replaceChildren(element("option", { value: "auto" }, "find out"),
      ...sources.map((one) => element("option", { value: one.code }, one.name)));
    by("from").value = sources.length > 1 ? "auto" : (sources[0]?.code ?? "auto");
    fillTargets(usual.target.code);
    failed(null);
    if (by("source").value) translate.now();
  } catch (error) { failed(error); }
}

// Whether one model serves the pair: words can then be asked for, and the inside be looked at.
function single(source, target) {
  const row = state.known.find((one) => one.code === source);
  return row?.targets.find((one) => one.code === target)?.via.length === 0 && source !== target;
}

async function ask() {
  state.asking?.abort();
  const asking = state.asking = new AbortController();
  const text = by("source").value, source = by("from").value, target = by("to").value;
  by("count").textContent = text ? `${[...text].length.toLocaleString("en")} characters` : "";
  if (!text.trim() || !target) {
    output.clear();
    by("status").textContent = by("detected").textContent = "";
    return;
  }
  let grown = "";
  output.root.classList.add("waiting");
  const from = performance.now();
  try {
    const found = await stream({ text, source, target, confidence: true }, (piece) => {
      grown += piece;
      output.growing(grown);
    }, asking.signal);
    state.detected = found.source_language;
    output.show(found, { source: found.source_language, target, single: single(found.source_language, target) });
    const name = state.known.find((one) => one.code === found.source_language)?.name ?? found.source_language;
    by("detected").textContent = source === "auto" ? `${name}, ${Math.round(found.confidence)} %` : "";
    const way = found.via.length ? ` by way of ${found.via.join(", ")}` : "";
    by("status").textContent = `${((performance.now() - from) / 1000).toFixed(1)} s${way}`;
    failed(null);
    remember();
  } catch (error) {
    if (error.name === "AbortError") return;
    output.root.classList.remove("waiting");
    by("status").textContent = "";
    failed(error);
  }
}

function remember() {
  history.add({ source: state.detected || by("from").value, target: by("to").value, text: by("source").value, output: output.text });
}

function take(entry) {
  by("from").value = [...by("from").options].some((one) => one.value === entry.source) ? entry.source : "auto";
  fillTargets(entry.target);
  by("source").value = entry.text;
  choose("translate");
  translate.now();
}

function swap() {
  const source = by("from").value === "auto" ? state.detected : by("from").value, target = by("to").value;
  if (![...by("from").options].some((one) => one.value === target)) {
    failed({ message: "No model here translates the other way." });
    return;
  }
  const text = output.text;
  by("from").value = target;
  fillTargets(source);
  if (text) by("source").value = text;
  translate.now();
}

async function translateDocument(file) {
  const source = by("from").value, target = by("to").value;
  by("status").textContent = `${file.name} is being translated…`;
  try {
    const made = await translateFile(file, source, target);
    const dot = file.name.lastIndexOf(".");
    const name = dot > 0 ? `${file.name.slice(0, dot)}.${target}${file.name.slice(dot)}` : `${file.name}.${target}`;
    const address = URL.createObjectURL(made), link = element("a", { href: address, download: name }, name);
    by("status").replaceChildren("Done: ", link);
    link.click();
    failed(null);
  } catch (error) {
    by("status").textContent = "";
    failed(error);
  }
}

const TABS = ["translate", "inspect", "history"];
function choose(name) {
  for (const one of TABS) {
    const chosen = one === name;
    by(one).hidden = !chosen;
    by(`tab-${one}`).setAttribute("aria-selected", chosen);
    by(`tab-${one}`).tabIndex = chosen ? 0 : -1;
  }
  if (name === "inspect") inspector.open(by("source").value.split("\n").find((line) => line.trim()) ?? "");
}

for (const [at, name] of TABS.entries()) {
  by(`tab-${name}`).addEventListener("click", () => choose(name));
  by(`tab-${name}`).addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const next = TABS[(at + move + TABS.length) % TABS.length];
    choose(next);
    by(`tab-${next}`).focus();
  });
}
by("source").addEventListener("input", translate);
by("from").addEventListener("change", () => { fillTargets(by("to").value); translate.now(); inspector.look(); });
by("to").addEventListener("change", () => { fillTargets(by("to").value); translate.now(); inspector.look(); });
by("swap").addEventListener("click", swap);
by("clear").addEventListener("click", () => { by("source").value = ""; translate.now(); by("source").focus(); });
by("shade").addEventListener("change", () => output.root.classList.toggle("shaded", by("shade").checked));
by("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(output.text);
    by("status").textContent = "Copied.";
  } catch { failed({ message: "The browser does not let this page copy; mark the text instead." }); }
});
by("file").addEventListener("change", () => { if (by("file").files[0]) translateDocument(by("file").files[0]); by("file").value = ""; });
by("key").addEventListener("change", () => { useKey(by("key").value.trim()); translate.now(); });
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translate.now();
  else if (event.altKey && event.code === "KeyS") { event.preventDefault(); swap(); }
});
document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  const file = event.dataTransfer.files[0], text = event.dataTransfer.getData("text/plain");
  if (file) translateDocument(file);
  else if (text) { by("source").value = text; translate.now(); }
});
output.root.classList.add("shaded");
begin();
