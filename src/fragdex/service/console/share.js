// What is taken out of a film: a clip from point to point, and addresses that need no key.

import { signed } from "./api.js";
import { attempt, copy, h, say } from "./dom.js";
import { clock, secondsOf } from "./format.js";
import { stemOf } from "./uploads.js";

export function clipTab(video, file, place, range, signal) {
  const field = (id, label) => h("input", { id, type: "text", inputMode: "decimal", autocomplete: "off", "aria-label": label });
  const fields = { in: field("clip-in", "In point"), out: field("clip-out", "Out point") };
  const length = h("p.soft", { role: "status" });
  const cut = h("button", { type: "submit" }, "Download clip");
  const ends = () => {
    const start = secondsOf(fields.in.value.trim() || "0");
    const end = fields.out.value.trim() ? secondsOf(fields.out.value.trim()) : video.duration;
    return { start, end, right: end > start };
  };
  const draw = () => {
    const { start, end, right } = ends();
    cut.disabled = !right;
    length.textContent = right ? `${clock(end - start)} from ${clock(start)} to ${clock(end)}`
      : "The out point has to be after the in point: 12.5 or 1:02.5";
    range.hidden = !right || (!fields.in.value && !fields.out.value);
    if (!right) return;
    range.style.left = `${start / video.duration * 100}%`;
    range.style.width = `${(Math.min(end, video.duration) - start) / video.duration * 100}%`;
  };
  const mark = (which) => {
    fields[which].value = clock(video.currentTime);
    draw();
    say(`${which === "in" ? "In" : "Out"} point at ${clock(video.currentTime)}`);
  };
  const submit = (event) => {
    event.preventDefault();
    const { start, end } = ends();
    return attempt(async () => {
      const url = await signed(`${place}/clip.mp4?start_ms=${Math.round(1000 * start)}&end_ms=${Math.round(1000 * end)}`, place);
      const name = `${stemOf(file.filename)} ${clock(start, 1)}-${clock(end, 1)}.mp4`.replaceAll(":", ".");
      h("a", { href: url, download: name }).click();
    });
  };
  const point = (which, label) => h("div.point", {}, h("label", { for: `clip-${which}` }, label), fields[which],
    h("button.quiet", { type: "button", onclick: () => mark(which) }, `Set ${which}`));
  for (const one of Object.values(fields)) one.addEventListener("input", draw);
  video.addEventListener("durationchange", draw, { signal });
  const element = h("form.lines", { onsubmit: submit },
    h("p.soft", {}, "A clip has exactly this span. Press i and o while you watch."),
    h("div.row", {}, point("in", "In"), point("out", "Out"), cut), length);
  return { element, mark };
}

const HOUR = 3600; // seconds
const LASTS = [[HOUR, "an hour"], [24 * HOUR, "a day"], [7 * 24 * HOUR, "a week"], [30 * 24 * HOUR, "30 days"]];

export function linksTab(video, file, place) {
  const rows = h("ul.links");
  const lasts = h("select#lasts", { "aria-label": "Links are valid for" },
    LASTS.map(([seconds, words]) => h("option", { value: seconds }, words)));
  const element = h("div.lines", {},
    h("p.soft", {}, "Anyone who has one of these addresses can read this video, and nothing else, without a key, for ", lasts, "."), rows);
  // Addresses are signed when they are wanted.
  const address = (below) => signed(`${place}/${below}`, place, Number(lasts.value));
  const moment = () => `thumbnail.jpg?exact=true&time_ms=${Math.round(1000 * video.currentTime)}`;
  const kinds = [["HLS", () => address("hls/master.m3u8")], ["DASH", () => address("dash/manifest.mpd")],
    ["Video as one file", () => address("fragmented.mp4")], ["Current picture", () => address(moment())],
    ["For a web page", async () => embed(file, await address("fragmented.mp4"), await address(moment()))]];

  for (const [name, made] of kinds) {
    const field = h("input", { type: "text", readOnly: true, hidden: true, "aria-label": `Address: ${name}` });
    const show = () => attempt(async () => {
      field.value = await made();
      field.hidden = false;
      await copy(field.value);
      field.select();
    });
    rows.append(h("li", {}, h("strong", {}, name), field,
      h("button.quiet", { type: "button", onclick: show }, name === "For a web page" ? "Copy code" : "Copy link")));
  }
  lasts.addEventListener("change", () => {
    for (const field of rows.querySelectorAll("input")) field.hidden = true;
  });
  return { element };
}

// An element that plays the video in any page; made in a document that fetches nothing.
function embed(file, src, poster) {
  const sound = !file.width;
  const player = document.implementation.createHTMLDocument("").createElement(sound ? "audio" : "video");
  const shape = sound ? {} : { width: file.width, height: file.height, poster };
  for (const [name, value] of Object.entries({ controls: "", preload: "none", ...shape, src })) player.setAttribute(name, value);
  return player.outerHTML;
}
