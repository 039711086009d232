// A file in chunks. It resumes where the service's durable bytes end: after a lost connection, and
// after the page was reloaded in the same tab.

import { Problem, ask, askJson, post } from "./api.js";
import { pause } from "./dom.js";

const CHUNK = 4 * 2 ** 20;
const TRIES = 8; // one after another without a byte that arrived

// `values`: of the new record, next to its size. The record comes back, its bytes all there.
export async function upload(file, values, told, signal) {
  const name = `fragdex.upload ${values.filename} ${file.size} ${file.lastModified}`;
  const known = sessionStorage.getItem(name);
  let record = known && await recordOf(known).catch(() => null);
  if (!record || record.status === "failed") {
    record = await post("files", { ...values, byte_size: file.size });
    sessionStorage.setItem(name, record.id);
  }
  await sendBytes(`files/${record.id}/upload`, file, record.next_byte ?? 0, told, signal);
  sessionStorage.removeItem(name);
  return record;
}

// All bytes from `next` on to the address of an upload.
export async function sendBytes(place, file, next, told, signal) {
  told(next);
  for (let failed = 0; next < file.size;) {
    const end = Math.min(next + CHUNK, file.size);
    try {
      const body = file.slice(next, end);
      const headers = {
        "Content-Type": "application/octet-stream",
        "Content-Range": `bytes ${next}-${end - 1}/${file.size}`,
      };
      const answer = await askJson(place, { method: "POST", headers, body, signal });
      next = Math.max(answer.next_byte ?? end, end);
      failed = 0;
    } catch (problem) {
      if (!(problem instanceof Problem)) throw await unreadable(file, problem);
      const otherPlace = problem.status === 409 && problem.nextByte !== undefined;
      if (!(problem.mayPass || otherPlace) || ++failed > TRIES) throw problem;
      told(next, problem);
      await pause(1000 * (problem.retryAfter || Math.min(2 ** failed / 4, 15)), signal);
      signal.throwIfAborted();
      next = await durable(place, next, file.size);
    }
    told(next);
  }
}

// An image's address answers its bytes to who does not ask for the record.
export function recordOf(id, options = {}) {
  return askJson(`files/${encodeURIComponent(id)}`, { ...options, headers: { Accept: "application/json" } });
}

// The first byte that the service does not have for good.
async function durable(place, next, size) {
  try {
    await ask(place);
    return size;
  } catch (problem) {
    return problem instanceof Problem ? problem.nextByte ?? next : next;
  }
}

async function unreadable(file, error) {
  if (error.name === "AbortError") return error;
  return new Error(`${file.name} can no longer be read: ${error.message}`);
}
