// The server's own API, /v1/, as functions; addresses are relative, so a server may stand below any path.

export class Failure extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

let key = "";
export function useKey(value) { key = value; }

async function answered(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure("The server does not answer. It will be asked again when the text changes.");
  }
  if (response.ok) return response;
  let message = `The server answered ${response.status}.`;
  try { message = (await response.json()).error ?? message; } catch { /* an answer that is no JSON has no message */ }
  throw new Failure(message, response.status);
}

const withKey = (body) => (key ? { ...body, api_key: key } : body);

function posted(path, body, signal) {
  const headers = { "content-type": "application/json" };
  return answered(path, { method: "POST", headers, body: JSON.stringify(withKey(body)), signal });
}

export const languages = async () => (await answered("v1/languages")).json();
export const settings = async () => (await answered("frontend/settings")).json();
export const alternatives = async (body, signal) => (await posted("v1/alternatives", body, signal)).json();
export const attention = async (body, signal) => (await posted("v1/attention", body, signal)).json();
export const tree = async (body, signal) => (await posted("v1/tree", body, signal)).json();

// The translated document as a Blob.
export async function translateFile(file, source, target, signal) {
  const form = new FormData();
  for (const [name, value] of Object.entries(withKey({ source, target }))) form.append(name, value);
  form.append("file", file);
  return (await answered("v1/translate_file", { method: "POST", body: form, signal })).blob();
}

// The whole translation; `tell` gets each piece of text as it comes.
export async function stream(body, tell, signal) {
  const response = await posted("v1/stream", body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "", found = null;
  for (;;) {
    const { value, done } = await reader.read();
    if (done && found) return found;
    if (done) throw new Failure("The connection ended before the translation did.");
    waiting += value;
    for (let end = waiting.indexOf("\n\n"); end >= 0; end = waiting.indexOf("\n\n")) {
      const { event, data } = read(waiting.slice(0, end));
      waiting = waiting.slice(end + 2);
      if (event === "piece") tell(data.text);
      else if (event === "end") found = data;
      else if (event === "error") throw new Failure(data.error, data.status);
    }
  }
}

// One event of a stream: lines of `name: value`; a line that begins with a colon is there for the connection alone.
function read(block) {
  const found = { event: "", data: null };
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) found.event = line.slice(7);
    else if (line.startsWith("data: ")) found.data = JSON.parse(line.slice(6));
  }
  return found;
}
