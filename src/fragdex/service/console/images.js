// Images and captions: what is stored next to videos.

import { ask, send, signed } from "./api.js";
import { collection } from "./collection.js";
import { h, renaming, twice } from "./dom.js";
import { sizeText, when } from "./format.js";
import { download } from "./transcriptions.js";

function named(one, refresh) {
  const name = h("span", {}, one.filename);
  const rename = renaming(one.filename, name, async (filename) => {
    await send("PATCH", `files/${one.id}`, { filename });
    await refresh();
  });
  return { name: [name, h("div.soft", {}, when(one.created_at))], rename };
}

function actions(one, place, rename, refresh) {
  const remove = twice("Delete", "Delete for good", async () => {
    await ask(place, { method: "DELETE" });
    await refresh();
  });
  return h("div.actions", {}, one.complete ? download(place, "Download", one.filename) : h("span.chip", {}, "Incomplete"), rename, remove);
}

function images(view, signal) {
  return collection(view, {
    name: "Images", path: "image_files", field: "image_files", place: (id) => `image_files/${id}`, heads: ["Name", "Picture", "Size", "Bytes", ""],
    empty: ["picture", "No images yet", "Drop a PNG, JPEG, WebP or SVG anywhere."],
    moving: (one) => !one.complete,
    row: (one, refresh) => {
      const { name, rename } = named(one, refresh);
      return [name, one.complete ? small(one) : "", one.width ? `${one.width} × ${one.height}` : "",
        sizeText(one), actions(one, `image_files/${one.id}`, rename, refresh)];
    },
  }, signal);
}

function small(one) {
  const picture = h("img.small", { alt: "", loading: "lazy" });
  signed(`image_files/${one.id}`, "image_files").then((url) => { picture.src = url; }, () => {});
  return picture;
}

function captions(view, signal) {
  return collection(view, {
    name: "Captions", path: "caption_files", field: "caption_files", place: (id) => `caption_files/${id}`, heads: ["Name", "Kind", "Bytes", ""],
    empty: ["words", "No captions yet", "Drop a .vtt, .srt or .json file on a video, or edit its transcript."],
    moving: (one) => !one.complete,
    row: (one, refresh) => {
      const { name, rename } = named(one, refresh);
      return [name, one.mime_type, sizeText(one), actions(one, `caption_files/${one.id}`, rename, refresh)];
    },
  }, signal);
}

export function show(view, { section, signal }) {
  return (section === "captions" ? captions : images)(view, signal);
}
