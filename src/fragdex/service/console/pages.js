// A folder of a page as one archive (tar, POSIX.1-1988, compressed by gzip) and as files to look at.

const BLOCK = 512;

// `files`: of a chosen folder, each with its path below it.
export async function folder(files) {
  const own = new Map();
  for (const file of files) {
    const path = file.path ?? file.webkitRelativePath.split("/").slice(1).join("/");
    if (path) own.set(path, file);
  }
  if (!own.has("index.html")) throw new Error("There is no index.html at the top of this folder.");
  const name = files[0].path ? files[0].top : files[0].webkitRelativePath.split("/")[0];
  return { archive: await packed(own), files: own, name };
}

// What is dropped as a folder, with its paths.
export async function walked(entry, top = entry.name, below = "") {
  if (entry.isFile) {
    const file = await new Promise((done, failed) => entry.file(done, failed));
    return [Object.assign(file, { path: below, top })];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (!some.length) return found;
    for (const one of some) found.push(...await walked(one, top, below ? `${below}/${one.name}` : one.name));
  }
}

async function packed(files) {
  const pieces = [];
  for (const [path, file] of files) {
    pieces.push(header(path, file.size), file, new Uint8Array((BLOCK - file.size % BLOCK) % BLOCK));
  }
  pieces.push(new Uint8Array(2 * BLOCK));
  const stream = new Blob(pieces).stream().pipeThrough(new CompressionStream("gzip"));
  return new Response(stream).blob();
}

function header(path, size) {
  const bytes = new Uint8Array(BLOCK);
  const utf8 = new TextEncoder();
  const whole = utf8.encode(path);
  let [prefix, name] = ["", path];
  if (whole.length > 100) {
    const cut = path.lastIndexOf("/", path.length - 1);
    [prefix, name] = [path.slice(0, cut), path.slice(cut + 1)];
  }
  const put = (text, at, most) => {
    const encoded = utf8.encode(text);
    if (encoded.length > most) throw new Error(`${path}: this path is too long.`);
    bytes.set(encoded, at);
  };
  const octal = (number, wide) => number.toString(8).padStart(wide - 1, "0");
  put(name, 0, 100);
  put(octal(0o644, 8), 100, 8);
  put(octal(0, 8), 108, 8);
  put(octal(0, 8), 116, 8);
  put(octal(size, 12), 124, 12);
  put(octal(0, 12), 136, 12);
  put(" ".repeat(8), 148, 8);
  put("0", 156, 1);
  put("ustar", 257, 6);
  put("00", 263, 2);
  put(prefix, 345, 155);
  put(`${octal(bytes.reduce((sum, byte) => sum + byte, 0), 7)}\0 `, 148, 8);
  return bytes;
}
