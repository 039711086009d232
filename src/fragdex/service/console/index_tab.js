// The index of a film: its fragments over time, its tracks, and the bytes that a seek fetched.

import { h } from "./dom.js";
import { bytesText, clock, count, counted, secondsOf } from "./format.js";
import { Timeline } from "./timeline.js";

const HELP = "Each bar is a segment: fragments that are fetched together. Its height is the bit"
  + " rate. Full colour: fetched. Click to seek; ← → go by segment, Page Up and Page Down by ten.";

export function indexTab(video, seek, signal) {
  const readout = h("p#readout");
  const canvas = h("canvas#bars", { "aria-hidden": "true" });
  const playhead = h("div#playhead", { "aria-hidden": "true" });
  const slider = h("div#timeline", {
    role: "slider", tabIndex: 0, "aria-label": "Position in the timeline of fragments",
    "aria-describedby": "timeline-help",
  }, canvas, playhead);
  const moment = h("input#moment", {
    type: "text", inputMode: "decimal", autocomplete: "off", required: true, placeholder: "12.5 or 1:02.5",
  });
  const go = h("form#go", {
    onsubmit: (event) => {
      event.preventDefault();
      const time = secondsOf(moment.value.trim());
      moment.setCustomValidity(Number.isNaN(time) ? "Seconds, or minutes:seconds" : "");
      if (moment.reportValidity()) seek(time);
    },
  }, h("label", { for: "moment" }, "Go to"), moment, h("button.quiet", { type: "submit" }, "Seek"));
  moment.addEventListener("input", () => moment.setCustomValidity(""));
  const tracks = h("ul#tracks", { "aria-label": "Tracks" });
  const sum = h("p#fetched-sum");
  const rows = h("tbody#fetched");
  const all = h("p#fetched-all.soft");
  const heads = ["Track", "What", "Time", "Bytes", "Size"];
  const table = h("table", { "aria-labelledby": "fetched-title" },
    h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col" }, name)))), rows);
  const element = h("div", {}, slider, readout, h("p#timeline-help.soft", {}, HELP), go, tracks,
    h("h2#fetched-title", {}, "Bytes fetched for the seek"), sum,
    h("div.wide", { tabIndex: 0, role: "region", "aria-labelledby": "fetched-title" }, table), all);

  const timeline = new Timeline(slider, canvas, playhead, readout, seek, signal);
  const place = () => timeline.lanes.length && timeline.place(video.currentTime);
  for (const name of ["timeupdate", "seeking"]) video.addEventListener(name, place, { signal });

  function show(lanes) {
    tracks.replaceChildren(...lanes.map(card));
    timeline.show(lanes);
  }

  // What a seek needed, and what was read ahead of need.
  function report(lanes, state) {
    const whole = lanes.reduce((total, lane) => total + lane.init.size + lane.bytes, 0);
    let total = 0;
    let needed;
    return {
      began(time) {
        needed = { size: 0, ranges: 0 };
        state("seeking");
        rows.replaceChildren();
        sum.textContent = `To ${clock(time)} …`;
      },
      fetched(lane, n, ahead) {
        const { offset, size } = lane.place(n);
        total += size;
        timeline.drawSoon();
        all.textContent = `Including read-ahead, ${bytesText(total)} of ${bytesText(whole)} were`
          + ` fetched since the file was opened (${(total / whole * 100).toFixed(1)} %).`;
        if (ahead) return;
        needed.size += size;
        needed.ranges++;
        const cells = [lane.name, n < 0 ? "initialization" : `segment ${n + 1}`, n < 0 ? "" : clock(lane.starts[n]),
          `${count(offset)}–${count(offset + size - 1)}`, bytesText(size)];
        rows.append(h("tr", {}, cells.map((text) => h("td", {}, text))));
      },
      reached(time) {
        const ranges = counted(needed.ranges, "range");
        sum.textContent = needed.ranges ? `To ${clock(time)}: ${ranges}, ${bytesText(needed.size)}.`
          : `To ${clock(time)}: nothing; the bytes were already loaded.`;
        state("ready");
      },
    };
  }

  return { element, show, report };
}

function card(lane) {
  const { told } = lane;
  const what = lane.kind === "video" ? `${told.width} × ${told.height}`
    : `${count(told.sample_rate)} Hz, ${told.channel_count} ch`;
  const parts = [told.codec, what, counted(lane.count, "segment"), clock(lane.end - lane.start), bytesText(lane.bytes)];
  return h(`li.${lane.id < 0 ? "scrub" : lane.kind}`, {},
    h("strong", {}, lane.title), h("span.soft", {}, parts.join(" · ")));
}
