// The speech of a video: captions and transcriptions that belong to it, and showing them.

import { ask, askAll, askJson } from "./api.js";
import { h } from "./dom.js";
import { stemOf } from "./uploads.js";

// All that is there, newest first: { id, name, words } and how to read it. Transcriptions belong to all
// uploads of the same bytes. The service reads captions of every kind, and gives all of them as WebVTT
// whose blocks are cues in the order of browsers.
export async function captionsOf(file, signal) {
  const [files, heard] = await Promise.all([
    askAll("files?type=caption&status=ready", "files", { signal }),
    askAll("transcriptions?status=complete", "transcriptions", { signal }),
  ]);
  const stem = stemOf(file.filename);
  const names = new Set();
  const own = files.filter(({ filename }) => {
    const fits = filename.startsWith(`${stem}.`) && !names.has(filename);
    names.add(filename);
    return fits;
  });
  const all = [
    ...heard.filter((one) => one.file_id === (file.isobmff_file_id ?? file.id)).map((one) => ({
      id: one.id, since: one.created_at, name: ["Transcription", one.languages.join(", ")].filter(Boolean).join(" · "),
      text: (options) => read(`transcriptions/${one.id}.vtt`, options),
      words: (options) => wordsOf(one.id, options),
    })),
    ...own.map((one) => ({
      id: one.id, since: one.created_at, name: stemOf(one.filename.slice(stem.length + 1)) || one.filename,
      text: (options) => read(`caption_files/${one.id}.vtt`, options),
    })),
  ];
  return all.sort((one, other) => (one.since < other.since ? 1 : -1));
}

// The words of a transcription, each with its language where there are several, whether it was
// probably not said, and whether nobody knows who says it; and who speaks.
async function wordsOf(id, options) {
  const { word_segments: words, speakers, ...spans } = await askJson(`transcriptions/${id}.json`, options);
  const around = (name, word) => spans[name].find(({ start, end }) => start <= word.start && word.end <= end);
  return { speakers, words: words.map((word) => ({
    ...word, language: around("languages", word)?.language,
    doubted: Boolean(around("doubted", word)), unattributed: Boolean(around("unattributed", word)),
  })) };
}

async function read(path, options) {
  return (await ask(path, options)).text();
}

// The cues of captions, which the video then has, and their text; what was there before is taken out.
export async function attach(video, captions, shown, signal) {
  for (const track of video.querySelectorAll("track")) {
    URL.revokeObjectURL(track.src);
    track.remove();
  }
  if (!captions) return { cues: [], text: "" };
  const text = await captions.text({ signal });
  const url = URL.createObjectURL(new Blob([text], { type: "text/vtt" }));
  const track = h("track", { kind: "captions", label: captions.name, src: url });
  const loaded = new Promise((done, failed) => {
    track.addEventListener("load", done);
    track.addEventListener("error", () => failed(new Error(`${captions.name}: these captions cannot be read.`)));
  });
  video.append(track);
  track.track.mode = shown ? "showing" : "hidden";
  await loaded;
  const cues = Array.from(track.track.cues, (cue) =>
    ({ start: cue.startTime, end: cue.endTime, text: cue.getCueAsHTML().textContent }));
  return { cues, text };
}

// WebVTT of the service with other texts in its cues; null leaves a cue as it is, with its styles
// and its place, no text takes it out, and who speaks stays. No text is taken for markup or for a time.
export function edited(webvtt, texts) {
  let n = 0;
  const blocks = webvtt.split(/\n{2,}/).filter(Boolean).flatMap((block) => {
    const [times] = block.split("\n", 1);
    if (!times.includes("-->")) return [block];
    const text = texts[n++];
    if (text === null) return [block];
    const words = text.trim().replace(/\n\s*\n/g, "\n");
    const [voice] = block.slice(times.length + 1).match(/^<v [^>\n]*>/) ?? [""];
    return words ? [`${times}\n${voice}${escaped(words)}`] : [];
  });
  return `${blocks.join("\n\n")}\n`;
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
