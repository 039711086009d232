// All renders, newest first.

import { ask } from "./api.js";
import { bar, chip, collection } from "./collection.js";
import { h, twice } from "./dom.js";
import { bytesText, clock, when } from "./format.js";

export const RUNNING = ["created", "pending", "rendering"];

export function show(view, { signal }) {
  return collection(view, {
    name: "Renders", path: "renders", field: "renders", heads: ["Render", "State", "Frames", "Result", ""],
    empty: ["film", "No renders yet", "A render turns a web page into a video or a picture. Drop an .html file or a folder, or write a page."],
    tools: [h("a.button.writes", { href: "renders/new" }, "New render")],
    moving: (one) => RUNNING.includes(one.status),
    row: (one, refresh) => [
      [h("a", { href: `renders/${one.id}` }, nameOf(one)), h("div.soft", {}, when(one.created_at))],
      chip(one.status),
      one.status === "rendering" ? bar(one.frames_done, one.frames, "Frames") : one.frames ?? "",
      [one.output.container, one.duration_ms ? clock(one.duration_ms / 1000, 1) : "",
        one.byte_size ? bytesText(one.byte_size) : ""].filter(Boolean).join(" · "),
      twice("Delete", "Delete for good", async () => {
        await ask(`renders/${one.id}`, { method: "DELETE" });
        await refresh();
      }),
    ],
  }, signal);
}

export function nameOf(render) {
  const size = render.width && render.height ? `${render.width} × ${render.height}` : "Page’s own size";
  return render.metadata?.name ?? `${size}, ${render.fps} fps`;
}
