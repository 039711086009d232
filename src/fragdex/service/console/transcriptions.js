// All transcriptions, newest first.

import { ask, post, signed } from "./api.js";
import { bar, chip, collection } from "./collection.js";
import { attempt, h, twice } from "./dom.js";
import { fileLinks } from "./file_link.js";
import { clock, count, when } from "./format.js";

const RUNNING = ["created", "pending", "transcribing"];

export function show(view, { signal }) {
  const link = fileLinks(signal);
  return collection(view, {
    name: "Transcriptions", path: "transcriptions", field: "transcriptions",
    heads: ["Video", "State", "Words", "Languages", "Captions", ""],
    empty: ["words", "No transcriptions yet", "Open a video and press Transcribe."],
    moving: (one) => RUNNING.includes(one.status),
    row: (one, refresh) => [
      [link(one.file_id), h("div.soft", {}, `${clock(one.isobmff_track.duration_ms / 1000, 0)} · ${when(one.created_at)}`),
        one.problem && h("div.wrong", {}, one.problem.detail)],
      chip(one.status),
      one.status === "transcribing" ? bar(one.slices_done, one.slices, "Slices") : one.words === null ? "" : count(one.words),
      one.languages.join(", "),
      one.status === "complete" ? h("div.actions", {}, ["vtt", "srt", "json"].map((form) => download(`transcriptions/${one.id}.${form}`, form))) : "",
      RUNNING.includes(one.status)
        ? h("button.quiet.writes", { type: "button", onclick: () => attempt(() => post(`transcriptions/${one.id}/cancel`, {}).then(refresh)) }, "Cancel")
        : twice("Delete", "Delete for good", async () => {
          await ask(`transcriptions/${one.id}`, { method: "DELETE" });
          await refresh();
        }),
    ],
  }, signal);
}

// An address is signed when it is wanted.
export function download(path, label, name = "", look = "link") {
  return h(`button.${look}`, {
    type: "button", "aria-label": label === "Download" ? undefined : `Download ${label}`,
    onclick: () => attempt(async () => h("a", { href: await signed(path), download: name }).click()),
  }, label);
}
