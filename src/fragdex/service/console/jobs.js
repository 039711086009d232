// Work in the background: what runs, how often it was tried, and what became of what failed.

import { askJson, post } from "./api.js";
import { bar, chip, keepFocus, table } from "./collection.js";
import { attempt, complain, empty, h, pause, sentence } from "./dom.js";
import { fileLinks } from "./file_link.js";
import { count, when } from "./format.js";
import { nameOf } from "./renders.js";
import { reasonOf } from "./repair.js";
import { title } from "./router.js";

const NEWEST = 50; // of each kind

export async function show(view, { signal }) {
  title("Jobs");
  const none = empty("clock", "Nothing to do", "No job is running, and none has failed.");
  none.hidden = true;
  const link = fileLinks(signal);
  const rows = table("Jobs", ["File or render", "Work", "State", "Part done", "Attempts", "Since", ""]);
  const sum = h("p.soft", { role: "status" });
  let drawn = "";
  const refresh = async () => {
    const jobs = await all(signal);
    const running = jobs.filter((job) => !job.failed);
    sum.textContent = `${count(running.length)} in progress, ${count(jobs.length - running.length)} failed`;
    const state = JSON.stringify(jobs);
    rows.element.hidden = !jobs.length;
    none.hidden = jobs.length > 0;
    if (state !== drawn) {
      keepFocus(rows.body, () => rows.body.replaceChildren(...jobs.map((one) => rows.row(one.id, cells(one, link, refresh)))));
    }
    drawn = state;
    return running.length;
  };
  let busy = await refresh();
  view.append(h("div.heading", {}, h("h1", {}, "Jobs"), sum),
    h("div.wide.rows", { tabIndex: 0, role: "region", "aria-label": "Jobs" }, rows.element), none);
  (async () => {
    for (;;) {
      await pause(busy ? 1500 : 6000, signal);
      if (signal.aborted) return;
      if (!document.hidden) busy = await refresh().catch((error) => complain(error) ?? busy);
    }
  })();
}

async function all(signal) {
  const list = (path) => askJson(`${path}&limit=${NEWEST}`, { signal });
  const states = { processes: ["processing", "failed"], repairs: ["repairing", "failed"], renders: ["pending", "rendering", "failed"],
    transcriptions: ["pending", "transcribing", "failed"] };
  const asked = Object.entries(states).flatMap(([field, names]) => names.map(async (status) =>
    (await list(`${field === "processes" ? "process_isobmff" : field}?status=${status}`))[field].map((one) => job(field, one))));
  const jobs = (await Promise.all(asked)).flat();
  const work = (one) => `${one.name} ${one.file}`;
  const going = new Set(jobs.filter((one) => !one.failed).map(work));
  for (const one of jobs) if (going.has(work(one))) one.again = null;
  return jobs.sort((one, other) => Number(one.failed) - Number(other.failed) || (one.since < other.since ? 1 : -1));
}

function job(field, one) {
  const common = { id: one.id, status: one.status, since: one.created_at, failed: one.status === "failed",
    problem: reasonOf(one.problem) };
  if (field === "processes") {
    return { ...common, name: "Make playable", file: one.unprocessed_file_id, done: one.progress,
      again: common.failed ? `unprocessed_files/${one.unprocessed_file_id}/process` : null };
  }
  if (field === "repairs") {
    return { ...common, name: "Repair", file: one.file_id, done: one.progress,
      again: common.failed ? `files/${one.file_id}/repair` : null };
  }
  if (field === "renders") {
    const attempts = Math.max(0, ...one.slices.map((slice) => slice.attempts));
    return { ...common, name: "Render", render: nameOf(one), attempts,
      done: one.frames ? one.frames_done / one.frames : 0, again: null };
  }
  return { ...common, name: "Transcribe", file: one.file_id, done: one.slices ? one.slices_done / one.slices : 0,
    again: common.failed ? `files/${one.file_id}/transcribe` : null };
}

function cells(job, link, refresh) {
  const again = job.again && h("button.quiet.writes", {
    type: "button", onclick: () => attempt(() => post(job.again, {}).then(refresh)),
  }, "Try again");
  const what = job.file ? link(job.file) : h("a", { href: `renders/${job.id}` }, job.render);
  return [[what, job.problem && h("div.wrong", {}, sentence(job.problem))], job.name,
    chip(job.status), job.failed ? "" : bar(job.done, 1, "Part done"),
    job.attempts ? count(job.attempts) : "", when(job.since), again ?? ""];
}
