// A render: its slices as they come, what came of it, and what its page requested and was refused.

import { askJson, post, signed } from "./api.js";
import { chip } from "./collection.js";
import { attempt, complain, h, sentence, twice } from "./dom.js";
import { follow } from "./events.js";
import { bytesText, clock, count, counted, when } from "./format.js";
import { contactSheet } from "./contact_sheet.js";
import { RUNNING, nameOf } from "./renders.js";
import { deleteShown, title } from "./router.js";

export async function show(view, { id, signal }) {
  const place = `renders/${encodeURIComponent(id)}`;
  let render = await askJson(place, { signal });
  const name = nameOf(render);
  title(name);
  const state = h("span", { role: "status" });
  const part = h("p.soft");
  const slices = h("ol.slices", { "aria-label": "Slices" });
  const result = h("div.result");
  const facts = h("div.lines");
  const cancel = h("button.quiet.writes", {
    type: "button", onclick: () => attempt(() => post(`${place}/cancel`, {}).then(refresh)),
  }, "Cancel");
  view.append(h("div.heading", {}, h("a.up", { href: "renders" }, "Renders"), h("h1", {}, name), state, h("span.gap"), cancel,
    twice("Delete", "Delete for good", () => deleteShown(place, "renders"))), part, slices, result, facts);

  function draw() {
    state.replaceChildren(chip(render.status));
    cancel.hidden = !RUNNING.includes(render.status);
    const frames = render.frames ? `${count(render.frames_done)} of ${counted(render.frames, "frame")}` : "";
    part.textContent = [frames, when(render.created_at), render.byte_size ? bytesText(render.byte_size) : ""]
      .filter(Boolean).join(" · ");
    slices.replaceChildren(...render.slices.map((one, n) => {
      const words = `Slice ${n + 1}: ${count(one.frames_done)} of ${counted(one.frames, "frame")}`
        + `${one.attempts > 1 ? `, attempt ${one.attempts}` : ""}${one.reused ? ", from the cache" : ""}`;
      const item = h("li", { title: words }, h("span.unseen", {}, words), h("i", { "aria-hidden": "true" }));
      item.lastChild.style.width = `${one.frames ? one.frames_done / one.frames * 100 : 0}%`;
      item.classList.toggle("again", one.attempts > 1);
      item.style.flexGrow = one.frames;
      return item;
    }));
    facts.replaceChildren(
      ...(render.problem ? [h("p.problem", {}, sentence(render.problem.detail))] : []),
      ...lines("Blocked requests", render.blocked.map((one) => `${one.url} — ${one.reason}`)),
      ...lines("Refused", render.refused), ...lines("Incomplete", render.incomplete),
      ...lines("Console of the page", render.console), ...lines("Log of the browser", render.browser),
      h("h2", {}, "Settings"), h("dl.facts", {}, settings(render)));
  }

  async function refresh() {
    render = await askJson(place, { signal });
    draw();
  }

  if (render.status === "complete") await present(render, result, signal);
  draw();
  if (render.status === "created") part.textContent += " · Waiting for its files.";
  if (["pending", "rendering"].includes(render.status)) {
    let soon = null;
    const told = () => { soon ??= setTimeout(() => { soon = null; refresh().catch(complain); }, 250); };
    try {
      await follow(`${place}/progress`, told, signal);
    } catch (error) {
      if (signal.aborted) return;
    }
    clearTimeout(soon);
    await refresh();
    if (render.status === "complete") await present(render, result, signal);
  }
}

async function present(render, result, signal) {
  const { container } = render.output;
  const end = { "animated-webp": "webp" }[container] ?? container;
  const place = `renders/${render.id}.${end}`;
  const url = await signed(place);
  const save = h("a.button.quiet", { href: url, download: `${nameOf(render)}.${end}` }, "Download");
  const kind = render.media_type.split("/")[0];
  const shown = kind === "image" ? h("img", { src: url, alt: "Result", width: render.width, height: render.height })
    : kind === "video" ? h("video", { src: url, controls: true, playsInline: true, preload: "metadata", "aria-label": "Result" })
      : kind === "audio" ? h("audio", { src: url, controls: true, "aria-label": "Result" }) : null;
  if (shown && kind === "video" && render.width) shown.style.aspectRatio = `${render.width} / ${render.height}`;
  shown?.addEventListener("error", () => shown.replaceWith(h("p", {}, `This browser does not show ${container}.`)));
  result.replaceChildren(h("h2", {}, "Result"), shown ?? "", h("p", {}, save));
  if (kind === "video") result.append(contactSheet(url, shown, render.width / render.height || 16 / 9, signal));
}

function lines(name, texts) {
  if (!texts.length) return [];
  return [h("h2", {}, `${name} (${count(texts.length)})`),
    h("pre.log", { tabIndex: 0, "aria-label": name }, texts.join("\n"))];
}

function settings(render) {
  const seconds = (value) => (value === null ? "" : `${clock(value / 1000)}`);
  const own = Object.entries(render.metadata).map(([name, value]) =>
    [sentence(name), typeof value === "object" ? JSON.stringify(value) : value]);
  const known = { Size: render.width && `${render.width} × ${render.height}`, "Frames a second": render.frame_rate,
    Duration: seconds(render.duration_ms), Container: render.output.container, Codec: render.output.video?.codec,
    Scale: render.scale, "Slice": `${render.work_slice_ms} ms`, Queued: when(render.queued_at), Started: when(render.started_at),
    Completed: when(render.completed_at), Failed: when(render.failed_at), ...Object.fromEntries(own) };
  return Object.entries(known).filter(([, value]) => value !== null && value !== "" && value !== undefined)
    .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, String(value))));
}
