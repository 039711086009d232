// The interface of the service as this page uses it: requests with the key, problems in words,
// events. All scripts of the page are one module, in the order that routes.py tells.

const API = "api/v1/"; // relative: a proxy may put the service below a path
const KEY = "fragdex.key";

// What went wrong, as the service tells it (RFC 9457), or the network did.
class Problem extends Error {
  constructor(status, told, retryAfter) {
    const errors = (told.errors ?? []).map((error) =>
      [error.pointer ?? error.parameter, error.detail].filter(Boolean).join(": "));
    const words = [told.detail || told.title || `Status ${status}`, ...errors];
    super(words.join(" · "));
    this.status = status;
    this.nextByte = told.next_byte;
    this.retryAfter = retryAfter;
  }

  get mayPass() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

async function ask(path, { method = "GET", headers = {}, body, signal } = {}) {
  const key = sessionStorage.getItem(KEY) ?? "";
  let response;
  try {
    // a key with other letters than Latin-1 cannot be a header at all
    response = await fetch(API + path, {
      method, body, signal, cache: "no-store",
      headers: { Authorization: `Bearer ${encodeURI(key)}`, ...headers },
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, { detail: "The service does not answer." });
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({ title: response.statusText }));
  throw new Problem(response.status, told, Number(response.headers.get("Retry-After")) || 0);
}

async function askJson(path, options) {
  return (await ask(path, options)).json();
}

function post(path, values) {
  const headers = { "Content-Type": "application/json" };
  return askJson(path, { method: "POST", headers, body: JSON.stringify(values) });
}

// Events until `complete` or `error`; EventSource cannot send the key. A stream that breaks off
// is asked for again: it begins with the whole picture.
async function follow(path, told, signal) {
  for (let broken = 0; ; broken++) {
    try {
      const response = await ask(path, { headers: { Accept: "text/event-stream" }, signal });
      for await (const [name, data] of events(response)) {
        if (name === "complete") return;
        if (name === "error") throw new Problem(data.status ?? 500, data);
        if (name !== "heartbeat") told(name, data);
      }
    } catch (error) {
      // `error` is the last word of a record; what the network does is not
      if (signal?.aborted || (error instanceof Problem && error.status !== 0) || broken > 20) {
        throw error;
      }
    }
    await pause(Math.min(500 * 2 ** broken, 8000));
  }
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    let end;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const fields = new Map();
      for (const line of text.slice(0, end).split("\n")) {
        const colon = line.indexOf(":");
        if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trim());
      }
      text = text.slice(end + 2);
      if (fields.has("event")) yield [fields.get("event"), JSON.parse(fields.get("data") ?? "{}")];
    }
  }
}

function pause(milliseconds) {
  return new Promise((done) => setTimeout(done, milliseconds));
}
