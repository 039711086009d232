// A new render: a page, written or chosen, seen as it will begin, and how it becomes a video.

import { post } from "./api.js";
import { complain, h } from "./dom.js";
import { bytesText, counted } from "./format.js";
import { folder } from "./pages.js";
import { go, title } from "./router.js";
import { sendBytes } from "./upload.js";

const FIRST = `<!doctype html>
<meta charset="utf-8">
<style>
  body { margin: 0; height: 100vh; display: grid; place-items: center; background: #10132b; color: #fff; font: 700 12vw system-ui }
  h1 { animation: rise 2s ease-out both }
  @keyframes rise { from { transform: translateY(40%); opacity: 0 } }
</style>
<h1>Hello</h1>
`;
const STILLS = ["png", "jpeg", "webp"];
const CONTAINERS = { Film: ["mp4", "webm", "mov", "mkv", "gif", "animated-webp"], Picture: STILLS,
  "Each frame": ["zip"], Sound: ["m4a", "mp3", "ogg", "flac", "wav"] };

export async function show(view, { signal }) {
  title("New render");
  let site = null; // the files that were chosen; else the page is what is written
  const html = h("textarea#html", { rows: 14, spellcheck: false, value: FIRST });
  const number = (id, value, min, max) => h("input", { id, type: "number", value, min, max, step: "any", required: true });
  const wide = number("width", 1280, 2, 7680);
  const high = number("height", 720, 2, 7680);
  const fps = number("fps", 30, 1, 120);
  const seconds = number("seconds", 3, 0.1, 3600);
  const container = h("select#container", {}, Object.entries(CONTAINERS).map(([label, names]) =>
    h("optgroup", { label }, names.map((one) => h("option", {}, one)))));
  const named = h("input#name", { type: "text", maxLength: 100, placeholder: "Optional" });
  const chosen = h("p.soft", { role: "status" }, "Or choose a folder with an index.html, or a .zip or .tar.gz of it.");
  const frame = h("iframe", { title: "Preview of the page" });
  frame.setAttribute("sandbox", "allow-scripts");
  const box = h("div.preview", {}, frame);
  const send = h("button", { type: "submit" }, "Render");
  const label = (text, field) => h("label", {}, h("span", {}, text), field);
  const whole = h("input", { type: "file", hidden: true, webkitdirectory: true, "aria-label": "A folder with a page", onchange: () => choose([...whole.files], true) });
  const packed = h("input", { type: "file", hidden: true, "aria-label": "A file with a page", accept: ".zip,.gz,.tgz,.html,.htm", onchange: () => choose([...packed.files]) });
  const form = h("form.making", { onsubmit: (event) => { event.preventDefault(); render(); } },
    h("div.lines", {}, label("Page", html), h("div.row", {},
      h("button.quiet", { type: "button", onclick: () => whole.click() }, "Choose folder"),
      h("button.quiet", { type: "button", onclick: () => packed.click() }, "Choose file"), whole, packed), chosen),
    h("div.lines", {}, h("h2", {}, "Preview"), box, h("div.fields", {}, label("Width", wide), label("Height", high),
      label("Frames a second", fps), label("Seconds", seconds), label("Container", container), label("Name", named)),
    h("p", {}, send)));
  view.append(h("div.heading", {}, h("a.up", { href: "renders" }, "Renders"), h("h1", {}, "New render")), form);

  async function choose(files, wholeFolder = false) {
    if (!files.length) return;
    try {
      site = wholeFolder ? await folder(files) : null;
      if (!site && /\.html?$/i.test(files[0].name)) {
        html.value = await files[0].text();
      } else site ??= { archive: files[0], files: null, name: files[0].name };
    } catch (error) {
      complain(error);
      return;
    }
    html.disabled = Boolean(site);
    chosen.textContent = site ? `${site.name}: ${site.files ? `${counted(site.files.size, "file")}, ` : ""}${bytesText(site.archive.size)}`
      : `${files[0].name} is the page.`;
    if (site) named.value ||= site.name;
    preview();
  }

  // A page of an origin that has nothing, which is given what it shows.
  function preview() {
    const [across, down] = [Number(wide.value) || 1280, Number(high.value) || 720];
    const scale = box.clientWidth / across;
    Object.assign(frame.style, { width: `${across}px`, height: `${down}px`, transform: `scale(${scale})` });
    box.style.height = `${down * scale}px`;
    if (site && !site.files) {
      frame.removeAttribute("src");
      return;
    }
    frame.onload = () => frame.contentWindow?.postMessage(
      { html: site ? null : html.value, files: site ? site.files : new Map() }, "*");
    frame.src = new URL("console/preview", document.baseURI).href;
  }

  async function render() {
    send.disabled = true;
    const still = STILLS.includes(container.value);
    const values = {
      width: Number(wide.value), height: Number(high.value), output: { container: container.value },
      ...(still ? {} : { fps: Number(fps.value), duration_ms: Math.round(Number(seconds.value) * 1000) }),
      ...(named.value.trim() && { metadata: { name: named.value.trim() } }),
      ...(site ? {} : { html: html.value }),
    };
    try {
      const made = await post("renders", values, { signal });
      if (site) {
        const told = (sent) => { chosen.textContent = `${bytesText(sent)} of ${bytesText(site.archive.size)}`; };
        await sendBytes(`renders/${made.id}/upload`, site.archive, 0, told, signal);
      }
      await go(`renders/${made.id}`);
    } catch (error) {
      complain(error);
      send.disabled = false;
    }
  }

  let soon;
  for (const one of [html, wide, high]) {
    one.addEventListener("input", () => {
      clearTimeout(soon);
      soon = setTimeout(preview, 400);
    });
  }
  const sizes = new ResizeObserver(() => {
    const scale = box.clientWidth / (Number(wide.value) || 1280);
    frame.style.transform = `scale(${scale})`;
    box.style.height = `${(Number(high.value) || 720) * scale}px`;
  });
  sizes.observe(box);
  signal.addEventListener("abort", () => sizes.disconnect());
  const given = pending;
  pending = null;
  if (given) await choose(given.files, given.folder);
  else preview();
}

let pending = null; // what was dropped elsewhere

export function begin(files, wholeFolder) {
  pending = { files, folder: wholeFolder };
  return go("renders/new");
}
