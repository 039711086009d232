// What is taken out of a film: a clip from point to point, and addresses that need no key.

import { signed } from "./api.js";
import { complain, h, say, tell } from "./dom.js";
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
  const submit = async (event) => {
    event.preventDefault();
    const { start, end } = ends();
    try {
      const url = await signed(`${place}/clip.mp4?start=${start.toFixed(3)}&end=${end.toFixed(3)}`, place);
      const name = `${stemOf(file.filename)} ${clock(start, 1)}-${clock(end, 1)}.mp4`.replaceAll(":", ".");
      h("a", { href: url, download: name }).click();
    } catch (error) {
      complain(error);
    }
  };
  const point = (which, label) => h("div.point", {}, h("label", { for: `clip-${which}` }, label), fields[which],
    h("button.quiet", { type: "button", onclick: () => mark(which) }, `Set ${which}`));
  for (const one of Object.values(fields)) one.addEventListener("input", draw);
  video.addEventListener("durationchange", draw, { signal });
  const element = h("form.lines", { onsubmit: submit },
    h("p.soft", {}, "A clip begins and ends exactly there. Press i and o while you watch."),
    h("div.row", {}, point("in", "In"), point("out", "Out"), cut), length);
  return { element, mark };
}

export function linksTab(video, place) {
  const rows = h("ul.links");
  const element = h("div.lines", {},
    h("p.soft", {}, "Whoever has one of these addresses can read this film, and nothing else, without a key, for an hour."), rows);
  const kinds = [["HLS", "hls/master.m3u8"], ["DASH", "dash/manifest.mpd"], ["Film as one file", "fragmented.mp4"],
    ["Picture of this moment", () => `thumbnail.jpg?exact=true&t=${video.currentTime.toFixed(3)}`]];

  // Addresses are signed when they are wanted.
  async function copy(path, field) {
    const below = typeof path === "string" ? path : path();
    try {
      field.value = await signed(`${place}/${below}`, place);
    } catch (error) {
      complain(error);
      return;
    }
    field.hidden = false;
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      tell("Copied.");
    } catch {
      // an address without https has no clipboard; what is selected can be copied by hand
      document.execCommand("copy");
    }
  }

  for (const [name, path] of kinds) {
    const field = h("input", { type: "text", readOnly: true, hidden: true, "aria-label": `Address: ${name}` });
    rows.append(h("li", {}, h("strong", {}, name), field,
      h("button.quiet", { type: "button", onclick: () => copy(path, field) }, "Copy link")));
  }
  return { element };
}
