// Events of the service; EventSource cannot send the key.

import { Problem, ask } from "./api.js";
import { pause } from "./dom.js";

// Events until `complete` or `error`. A stream that breaks off is requested again, after the last
// event that came.
export async function follow(path, told, signal) {
  let last = null;
  for (let broken = 0; ; broken++) {
    try {
      const headers = { Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) };
      const response = await ask(path, { headers, signal });
      if (response.status === 204) return;
      for await (const [name, data, id] of events(response)) {
        if (name === "complete") return;
        if (name === "error") throw new Problem(data.status ?? 500, data);
        if (name !== "heartbeat") told(name, data);
        last = id ?? last;
        broken = 0;
      }
    } catch (error) {
      // `error` is the last word of a record; what the network does is not
      if (signal?.aborted || (error instanceof Problem && error.status !== 0) || broken > 20) {
        throw error;
      }
    }
    await pause(Math.min(500 * 2 ** broken, 8000), signal);
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
      for (const one of text.slice(0, end).split("\n")) {
        const colon = one.indexOf(":");
        if (colon > 0) fields.set(one.slice(0, colon), one.slice(colon + 1).trim());
      }
      text = text.slice(end + 2);
      if (fields.has("event")) {
        yield [fields.get("event"), JSON.parse(fields.get("data") ?? "{}"), fields.get("id")];
      }
    }
  }
}
