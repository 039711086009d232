/**
 * A module worker that makes an index: `postMessage({ what, options })`; answers `{ position, size }` on
 * the way, then `{ index, requests, bytesRead }` (an ArrayBuffer, transferred), or `{ error }`.
 *
 *     const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
 */
import { makeIndex, openSource } from "./make.js";

addEventListener("message", async ({ data: { what, options } }) => {
  const onProgress = (position, size) => postMessage({ position, size });
  try {
    const source = openSource(what, options);
    const index = await makeIndex(source, { ...options, onProgress });
    postMessage({ index, requests: source.requests, bytesRead: source.bytesRead }, [index]);
  } catch (error) {
    const { name, message, path, offset } = error;
    postMessage({ error: { name, message, path, offset } });
  }
});
