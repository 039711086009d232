// Writes the pixels of canvases into a file that has no name: its maker and this worker have it
// open, and nobody else finds it. Only workers may write to files without asking another process.
"use strict";
let file = null;
let [written, waiting] = [-1, null];
const BUCKET = "fragdex";

async function begin(size, mark) {
  const bucket = await navigator.storageBuckets.open(BUCKET);
  const folder = await bucket.getDirectory();
  const entry = await folder.getFileHandle("pixels", { create: true });
  file = await entry.createSyncAccessHandle();
  file.truncate(size);
  file.write(new TextEncoder().encode(mark), { at: 0 });
}

// Take away the name, and with it all that the page could see of the file.
async function hide() {
  await navigator.storageBuckets.delete(BUCKET);
}

// Settles when a picture is written.
function until(number) {
  return new Promise((done) => {
    waiting = () => { if (written >= number) done(true); };
    waiting();
  });
}

onmessage = ({ data: [number, bytes] }) => {
  if (file.write(new Uint8Array(bytes), { at: 0 }) !== bytes.byteLength) return;
  written = number;
  postMessage(bytes, [bytes]);
  waiting?.();
};
