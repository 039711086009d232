// What the tenant stores and what it may, and what takes most of it.

import { ask, askJson } from "./api.js";
import { table } from "./collection.js";
import { h, twice } from "./dom.js";
import { bytesText, clock, count, counted, when } from "./format.js";
import { title } from "./router.js";

const NEWEST = 200; // files that are looked through
const LARGEST = 10;
const KINDS = { video: "Video or sound", image: "Image", caption: "Captions" };

export async function show(view, { signal }) {
  title("Storage");
  const card = h("div.card.lines");
  const limits = h("dl.facts");
  const rows = table("Largest files", ["Name", "Kind", "Size", "Since", ""]);
  const region = h("div.wide.rows", { tabIndex: 0, role: "region", "aria-label": "Largest files" }, rows.element);
  const largest = h("section", {}, h("h2.after", {}, "Largest of the newest files"), region);
  let first = null;

  async function refresh() {
    const [usage, { files }] = await Promise.all([askJson("usage", { signal }),
      askJson(`files?limit=${NEWEST}`, { signal })]);
    first ??= usage.stored_bytes;
    card.replaceChildren(...used(usage, first - usage.stored_bytes));
    limits.replaceChildren(...facts(usage));
    const stored = files.filter((file) => file.byte_size).sort((one, other) => other.byte_size - one.byte_size);
    largest.hidden = !stored.length;
    rows.body.replaceChildren(...stored.slice(0, LARGEST).map((file) => rows.row(file.id, cells(file, refresh))));
  }

  await refresh();
  view.append(h("div.heading", {}, h("h1", {}, "Storage")), card, h("h2.after", {}, "Limits"), limits, largest);
}

function used({ stored_bytes: stored, limits: { max_stored_bytes: most } }, freed) {
  return [h("p.large", {}, bytesText(stored), most !== null && h("span.soft", {}, ` of ${bytesText(most)}`)),
    most !== null && h("progress", { max: most || 1, value: stored, "aria-label": "Storage used" }),
    most !== null && h("p.soft", {}, `${bytesText(Math.max(most - stored, 0))} free`),
    h("p.soft", { role: "status" }, freed > 0 ? `${bytesText(freed)} freed since this page was opened.` : "")].filter(Boolean);
}

function facts({ jobs, limits }) {
  const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  return [fact("Jobs in progress", `${count(jobs)} of ${count(limits.max_jobs)}`),
    fact("Longest render", clock(limits.max_render_seconds, 0)),
    fact("Cost of a render", limits.max_render_cost === null ? "Not limited" : count(limits.max_render_cost)),
    fact("Storage", limits.max_stored_bytes === null ? "Not limited" : bytesText(limits.max_stored_bytes)),
    fact("Files are kept", limits.retention_days === null ? "Until they are deleted" : counted(limits.retention_days, "day"))];
}

function cells(file, refresh) {
  const name = file.type === "video" ? h("a", { href: `files/${file.id}` }, file.filename) : file.filename;
  return [name, KINDS[file.type], bytesText(file.byte_size), when(file.created_at),
    twice("Delete", "Delete for good", async () => {
      await ask(`files/${file.id}`, { method: "DELETE" });
      await refresh();
    })];
}
