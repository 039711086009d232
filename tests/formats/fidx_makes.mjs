/* Makes indexes by make.js.
 *
 *     node fidx_makes.mjs MAKE.JS FOLDER < LIST
 *
 * LIST: JSON, paths and URLs. Writes FOLDER/NUMBER.fidx for each, and prints a list: null, or
 * what was refused, `{ name, message, path, offset }`.
 */
import { openAsBlob, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [module, folder, form = "bytes"] = process.argv.slice(2);
const { makeIndex, openSource } = await import(pathToFileURL(module));

const open = {
  bytes: (path) => new Uint8Array(readFileSync(path)),
  blob: (path) => openAsBlob(path),
  url: (url) => url,
}[form];

const replies = [];
for (const [number, one] of JSON.parse(readFileSync(0, "utf8")).entries()) {
  const what = await open(one.path ?? one);
  try {
    const source = openSource(what);
    if (one.options?.init) one.options.init = await open(one.options.init);
    writeFileSync(join(folder, `${number}.fidx`), new Uint8Array(await makeIndex(source, one.options ?? { samples: true })));
    replies.push({ requests: source.requests, bytes: source.bytesRead });
  } catch (error) {
    const { name, message, path, offset } = error;
    replies.push({ refused: { name, message, path, offset, stack: error.stack } });
  }
}
console.log(JSON.stringify(replies));
