// The repair of a video whose index was never written: the offer, how far it is, and its report.

import { askJson, post } from "./api.js";
import { attempt, h } from "./dom.js";
import { follow } from "./events.js";
import { bytesText, count } from "./format.js";

const MOST = 20; // findings that are shown

export function isRepairable(file) {
  return (file.problem?.detail ?? "").includes("fragdex repair");
}

// Why a file cannot be used, without what to call for its repair: there is a button for that.
export function reasonOf(problem) {
  return (problem?.detail ?? "").split("; fragdex repair")[0];
}

export function repair(file, signal) {
  const state = h("p#repair-state.soft", { role: "status" }, "The samples of this video may still be in the file.");
  const bar = h("progress", { max: 1, value: 0, "aria-label": "Repairing", hidden: true });
  const result = h("div#repair-result");
  const begin = h("button#repair.writes", { type: "button" }, "Repair");
  begin.addEventListener("click", () => attempt(async () => {
    begin.disabled = true;
    bar.hidden = false;
    try {
      const { id } = await post(`files/${file.id}/repair`, {});
      await follow(`repairs/${id}/progress`, (name, data) => {
        if (name !== "progress") return;
        bar.value = data.progress;
        state.textContent = `Repairing: ${Math.round(data.progress * 100)} %.`;
      }, signal);
      const record = await askJson(`repairs/${id}`, { signal });
      state.textContent = "Repaired.";
      result.replaceChildren(...report(record));
      begin.hidden = true;
    } catch (error) {
      state.textContent = "";
      throw error;
    } finally {
      bar.hidden = true;
      begin.disabled = false;
    }
  }));
  return h("section#repairing", { "aria-label": "Repair" }, state, bar, h("p", {}, begin), result);
}

function report({ repaired_file_id: id, like_file_id: like, report: summary }) {
  const tracks = summary.tracks.map((track) => h("li", {}, `${track.codec ?? track.type}: `
    + `${count(track.samples)} samples, ${count(track.proved)} of them proved, ${(track.duration_ms / 1000).toFixed(1)} s`));
  const lost = summary.lost_bytes ? `${bytesText(summary.lost_bytes)} lost` : "nothing lost";
  return [h("p", {}, h("a", { href: `files/${id}` }, "Open the repaired video"), ` (${bytesText(summary.byte_size)}, ${lost})`),
    like && h("p", {}, "Found with ", h("a", { href: `files/${like}` }, "a video like it"), "."),
    h("ul", {}, tracks),
    summary.findings.length > 0 && h("ul.soft", {}, summary.findings.slice(0, MOST).map((one) => h("li", {}, one)))].filter(Boolean);
}
