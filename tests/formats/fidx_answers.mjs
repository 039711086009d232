/* Answers questions about .fidx files by fidx.js, as fidx_answers.c does by fidx.h.
 *
 *     node fidx_answers.mjs FIDX.JS FOLDER
 *
 * Reads FOLDER/questions.json, `[{ file, questions }]`, and prints a list of lists of answers; null
 * for a file that is refused, and for a question without an answer.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [module, folder] = process.argv.slice(2);
const { FrameIndex, FrameIndexError } = await import(
  `data:text/javascript;base64,${readFileSync(module).toString("base64")}`
);

// Node 18 has no toSorted
Array.prototype.toSorted ??= function (compare) {
  return [...this].sort(compare);
};

const pair = ({ start, stop }) => [start, stop];

function answer(index, { ask, track, seconds, sample, start, stop, period }) {
  if (ask === "tracks") {
    return index.tracks.map((one) => {
      const { fragments, samples } = one._parts.track.tables;
      const { id, kind, codec, timescale, period } = one;
      const rows = { fragments: fragments.rows, samples: samples?.rows ?? null };
      return { id, kind, codec: codec ?? null, timescale, period, ...rows };
    });
  }
  if (ask === "init") return index.init(period).map(pair);
  if (ask === "span") return index.span(start, stop).map(pair);
  if (ask === "seek") {
    const hit = index.seek(seconds, { track: index.tracks[track] });
    const { fragment, cts, dts, clamped, time } = hit;
    const bytes = { offset: hit.start, size: hit.stop - hit.start };
    return { fragment, sample: hit.sample, ...bytes, cts, dts, seconds: time, clamped };
  }
  if (ask === "sample") {
    const frames = index.frames({ track: index.tracks[track], hidden: true });
    if (!(sample < frames._rows.offset.length)) return null;
    const of = (name) => frames._rows[name][sample];
    const names = ["offset", "size", "dts", "cts", "duration"];
    return { ...Object.fromEntries(names.map((name) => [name, of(name)])), sync: Boolean(of("sync")) };
  }
  throw new Error(ask);
}

function answers(file, questions) {
  let index;
  try {
    const data = readFileSync(join(folder, file));
    index = new FrameIndex(data.buffer.slice(data.byteOffset, data.byteOffset + data.length));
  } catch (error) {
    if (error instanceof FrameIndexError) return null;
    throw error;
  }
  return questions.map((question) => {
    try {
      return answer(index, question);
    } catch (error) {
      if (error instanceof FrameIndexError || error instanceof RangeError) return null;
      throw error;
    }
  });
}

const asked = JSON.parse(readFileSync(join(folder, "questions.json"), "utf8"));
console.log(JSON.stringify(asked.map(({ file, questions }) => answers(file, questions))));
