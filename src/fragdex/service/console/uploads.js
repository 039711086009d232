// Files on their way: each goes where it belongs, one after another, and what is watched stays.

import { post } from "./api.js";
import { $, attempt, h, pause, say, sentence } from "./dom.js";
import { bytesText } from "./format.js";
import { go } from "./router.js";
import { recordOf, upload } from "./upload.js";

let queue = Promise.resolve();
let open = null; // the video that is open: captions that come are its own

export const arrived = new EventTarget(); // "change", whenever a record is made or complete

export function captionsGoTo(film, signal) {
  open = film;
  signal.addEventListener("abort", () => { open = null; });
}

export function stemOf(name) {
  return name.replace(/\.[^.]+$/, "");
}

// What a record of this file says of it.
function placed(file) {
  const end = file.name.toLowerCase().split(".").pop();
  if (["vtt", "srt", "json"].includes(end)) {
    const stem = open && stemOf(open.filename);
    // captions belong to the video that their name begins with
    const own = !stem || file.name.startsWith(`${stem}.`);
    return { type: "caption", filename: own ? file.name : `${stem}.${file.name}` };
  }
  const picture = ["png", "jpg", "jpeg", "webp", "svg"].includes(end);
  return { type: picture ? "image" : "video", filename: file.name };
}

export function take(files) {
  for (const file of files) {
    const values = placed(file);
    for (const old of $("tray").children) {
      if (old.dataset.name === file.name && !old.querySelector("progress")) old.remove();
    }
    const bar = h("progress", { max: Math.max(file.size, 1), value: 0, "aria-label": `Upload of ${file.name}` });
    const words = h("span.soft", {}, "Waits");
    const ended = new AbortController();
    const stop = h("button.quiet", { type: "button", onclick: () => ended.abort() }, "Stop");
    const item = h("div.upload", { "data-name": file.name }, h("span.name", {}, file.name), stop, bar, words);
    $("tray").append(item);
    $("tray").hidden = false;
    queue = queue.then(() => send(file, values, { item, bar, words, stop }, ended.signal));
  }
}

async function send(file, values, { item, bar, words, stop }, signal) {
  try {
    signal.throwIfAborted();
    const record = await upload(file, values, (sent, problem) => {
      bar.value = sent;
      const lost = problem ? ` · Retrying: ${problem.message}` : "";
      words.textContent = `${bytesText(sent)} of ${bytesText(file.size)}${lost}`;
      if (!sent) arrived.dispatchEvent(new Event("change"));
    }, signal);
    bar.remove();
    if (values.type === "video") stop.before(h("a", { href: `files/${record.id}` }, "Open"));
    stop.replaceWith(dismissing(item));
    say(`${file.name} is uploaded.`);
    // the next one need not wait for what becomes of it
    became(record.id, values.type, item, words);
  } catch (error) {
    bar.remove();
    words.textContent = signal.aborted ? "Stopped. Drop it again to resume." : error.message;
    words.className = signal.aborted ? "soft" : "wrong";
    stop.replaceWith(dismissing(item));
    if (!signal.aborted) say(`${file.name}: ${error.message}`);
  }
  arrived.dispatchEvent(new CustomEvent("change", { detail: values.type }));
}

// All bytes are here; whether they are a video or a picture shows later.
async function became(id, type, item, words) {
  words.textContent = "Upload complete. Processing.";
  for (let wait = 250; item.isConnected; wait = Math.min(2 * wait, 4000)) {
    let file;
    try {
      file = await recordOf(id);
    } catch (error) {
      if (error.status === 404) return; // deleted meanwhile
      file = {};
    }
    if (file.status === "failed") {
      const { isRepairable, reasonOf } = await import("./repair.js");
      words.textContent = sentence(reasonOf(file.problem) || "This file cannot be used.");
      words.className = "wrong";
      if (isRepairable(file)) item.append(mending(id, item));
      say(`${file.filename}: ${words.textContent}`);
    } else if (file.status === "ready") {
      words.textContent = type === "caption" ? "Captions stored." : "File ready.";
    }
    if (["failed", "ready"].includes(file.status)) {
      arrived.dispatchEvent(new CustomEvent("change", { detail: type }));
      return;
    }
    await pause(wait);
  }
}

// The view of the file shows how far its repair is.
function mending(id, item) {
  return h("button.quiet.writes", { type: "button", onclick: () => attempt(async () => {
    await post(`files/${id}/repair`, {});
    dismiss(item);
    await go(`files/${id}`);
  }) }, "Repair");
}

function dismissing(item) {
  return h("button.quiet", { type: "button", onclick: () => dismiss(item) }, "Dismiss");
}

function dismiss(item) {
  item.remove();
  $("tray").hidden = !$("tray").childElementCount;
}

// Room for it is kept below what the view shows.
new ResizeObserver(() => {
  document.documentElement.style.setProperty("--tray", `${$("tray").offsetHeight}px`);
}).observe($("tray"));

addEventListener("beforeunload", (event) => {
  if ($("tray").querySelector("progress")) event.preventDefault();
});
