// The repair of a video whose index was never written: the offer, how far it is, and its report. All
// of it is what the records say, wherever the repair was begun.

import { askJson, post } from "./api.js";
import { attempt, h, pause, repeated, sentence } from "./dom.js";
import { bytesText, count, counted } from "./format.js";
import { recordOf } from "./upload.js";

const NEWEST = 5; // repairs of a file that are looked at
const MOST = 20; // findings that are shown

export function isRepairable(file) {
  return (file.problem?.detail ?? "").includes("fragdex repair");
}

// Why a file cannot be used, without what to call for its repair: there is a button for that.
export function reasonOf(problem) {
  return (problem?.detail ?? "").split("; fragdex repair")[0];
}

export async function repair(file, signal) {
  const state = h("p#repair-state.soft", { role: "status" });
  const bar = h("progress", { max: 1, value: 0, "aria-label": "Repairing" });
  const result = h("div#repair-result");
  const begin = h("button#repair.writes", { type: "button" }, "Repair");
  const section = h("section#repairing", { "aria-label": "Repair" }, state, bar, h("p", {}, begin), result);
  let drawn = null;
  let going = false;

  async function look() {
    const { repairs } = await askJson(`files/${file.id}/repairs?limit=${NEWEST}`, { signal });
    const one = repairs.find(({ status }) => status !== "failed") ?? repairs[0];
    const made = one?.repaired_file_id ? await recordOf(one.repaired_file_id, { signal }).catch(gone) : null;
    going = one?.status === "repairing";
    const now = JSON.stringify([one, made?.filename]);
    if (now !== drawn) draw(one, made);
    drawn = now;
  }

  function draw(one, made) {
    section.hidden = !one && !isRepairable(file);
    bar.hidden = !going;
    bar.value = one?.progress ?? 0;
    begin.hidden = going || made !== null;
    state.className = one?.status === "failed" ? "wrong" : "soft";
    state.replaceChildren(...words(one, made));
    result.replaceChildren(...(made ? report(one) : []));
  }

  begin.addEventListener("click", () => attempt(async () => {
    begin.disabled = true;
    try {
      await post(`files/${file.id}/repair`, {});
      await look();
    } finally {
      begin.disabled = false;
    }
  }));
  await look();
  keep(() => going, look, signal);
  return section;
}

async function keep(going, look, signal) {
  const quietly = repeated(look);
  for (;;) {
    await pause(going() ? 1000 : 6000, signal);
    if (signal.aborted) return;
    if (!document.hidden) await quietly();
  }
}

function gone(error) {
  if (error.status !== 404) throw error;
  return null;
}

function words(one, made) {
  if (!one) return ["The samples of this video may still be in the file."];
  if (one.status === "repairing") return [`Repairing: ${Math.round(one.progress * 100)} %.`];
  if (one.status === "failed") return [sentence(reasonOf(one.problem) || "The repair failed.")];
  if (!made) return ["This video was repaired, and the repaired one has been deleted."];
  const { byte_size: size, lost_bytes: lost } = one.report;
  return ["Repaired as ", h("a", { href: `files/${made.id}` }, made.filename),
    ` (${bytesText(size)}, ${lost ? `${bytesText(lost)} lost` : "nothing lost"}).`];
}

function report({ like_file_id: like, report: summary }) {
  const tracks = summary.tracks.map((track) => h("li", {}, `${track.codec ?? track.type}: `
    + `${counted(track.samples, "sample")}, ${count(track.proved)} of them proved, ${(track.duration_ms / 1000).toFixed(1)} s`));
  return [like && h("p", {}, "Found with ", h("a", { href: `files/${like}` }, "a video like it"), "."),
    h("ul", {}, tracks),
    summary.findings.length > 0 && h("ul.soft", {}, summary.findings.slice(0, MOST).map((one) => h("li", {}, one)))].filter(Boolean);
}
