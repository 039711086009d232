// A JavaScript reader under the clock: node peer.mjs mp4box|mediabunny FILE
//
// The process stays: each line on stdin asks for one run and gets one line of JSON, so that the
// engine is warm and the runs of all contenders can alternate. Times are nanoseconds inside.

import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { createInterface } from "node:readline";

// Large enough for a moof and the header behind it: mp4box.js then says where to read on, and
// jumps over media as our own reader does.
const PIECE = 1 << 16;

async function mp4box() {
  const { createFile } = await import("mp4box");
  return (path) => {
    const file = openSync(path, "r");
    const { size } = fstatSync(file);
    const movie = createFile(false); // media bytes are dropped, not kept
    for (let at = 0; at < size; ) {
      const piece = new ArrayBuffer(Math.min(PIECE, size - at));
      readSync(file, new Uint8Array(piece), 0, piece.byteLength, at);
      piece.fileStart = at;
      const next = movie.appendBuffer(piece, at + piece.byteLength >= size);
      // An answer at or before this piece means "more of the same box": go on behind the piece.
      at = next > at ? next : at + piece.byteLength;
    }
    movie.flush();
    closeSync(file);
    // Not getInfo: it spreads all boxes onto the stack and overflows it on 138,000 moofs.
    return movie.moov.traks.reduce((sum, track) => sum + track.samples.length, 0);
  };
}

async function mediabunny() {
  const { EncodedPacketSink, FilePathSource, Input, MP4 } = await import("mediabunny");
  return async (path) => {
    const input = new Input({ source: new FilePathSource(path), formats: [MP4] });
    let samples = 0;
    for (const track of await input.getTracks()) {
      // Its reader fetches fragments when they are asked for: listing all packets without
      // their bytes is its way to know the whole file.
      const all = new EncodedPacketSink(track).packets(undefined, undefined, {
        metadataOnly: true,
      });
      for await (const _ of all) samples += 1;
    }
    input.dispose();
    return samples;
  };
}

const [, , name, path] = process.argv;
const work = await { mp4box, mediabunny }[name]();
for await (const _ of createInterface({ input: process.stdin })) {
  const began = process.hrtime.bigint();
  const samples = await work(path);
  const ns = Number(process.hrtime.bigint() - began);
  console.log(JSON.stringify({ ns, samples }));
}
