// The library: every video and sound, newest first, as they are now.

import { askAll, askJson, signed } from "./api.js";
import { deleteMany } from "./collection.js";
import { $, attempt, h, icon, pause, repeated } from "./dom.js";
import { clock, count, counted, sizeText, when } from "./format.js";
import { note, title } from "./router.js";
import { arrived } from "./uploads.js";

const PAGE = 48;
const MOST = 200; // records that the service gives at once
const STATES = [["", "All states"], ["ready", "Ready"], ["processing", "Processing"],
  ["uploading", "Uploading"], ["failed", "Failed"]];
// Orders but the first are of all that there is, up to so many.
const MOST_SORTED = 2000;
const ORDERS = {
  newest: ["Newest first", null],
  oldest: ["Oldest first", (one, other) => (one.id < other.id ? -1 : 1)],
  name: ["By name", (one, other) => one.filename.localeCompare(other.filename, undefined, { numeric: true, sensitivity: "base" })],
  longest: ["Longest first", (one, other) => lengthOf(other) - lengthOf(one)],
  largest: ["Largest first", (one, other) => (other.byte_size ?? 0) - (one.byte_size ?? 0)],
};
const WORDS = { created: "Incomplete", uploading: "Uploading", processing: "Processing", failed: "Failed" };

export async function show(view, { query, signal }) {
  title("Library");
  const search = h("input", {
    type: "search", placeholder: "Search names", "aria-label": "Search names", value: query.get("q") ?? "",
  });
  const state = h("select", { "aria-label": "State" },
    STATES.map(([value, name]) => h("option", { value }, name)));
  state.value = STATES.some(([value]) => value === query.get("status")) ? query.get("status") ?? "" : "";
  const kind = h("select", { "aria-label": "Kind" },
    h("option", { value: "" }, "Video and sound"), h("option", { value: "video" }, "Videos"),
    h("option", { value: "audio" }, "Sound"));
  if (["video", "audio"].includes(query.get("kind"))) kind.value = query.get("kind");
  const order = h("select", { "aria-label": "Order" },
    Object.entries(ORDERS).map(([value, [name]]) => h("option", { value }, name)));
  if (query.get("order") in ORDERS) order.value = query.get("order");
  const pick = h("button.quiet.writes", { type: "button" }, "Select");
  const remove = h("button.quiet.writes.sure", { type: "button", hidden: true }, "Delete");
  const grid = h("ul#files", { "aria-label": "Files" });
  const none = h("div#no-files.empty", { hidden: true });
  const sum = h("p#sum.soft", { role: "status" });
  const more = h("button#more.quiet", { type: "button", hidden: true }, "Show older files");
  view.append(h("div.heading", {}, h("h1", {}, "Library"), sum),
    h("div.filters", {}, search, kind, state, order, h("span.gap"), remove, pick), grid, none, h("p.centre", {}, more));

  const library = new Library(grid, signal);
  const draw = () => {
    const { shown, all } = library.draw(search.value.trim().toLowerCase(), kind.value, ORDERS[order.value][1]);
    const picked = library.picked.size;
    remove.hidden = !picked;
    remove.textContent = `Delete ${count(picked)}`;
    const filtered = search.value.trim() || kind.value || state.value;
    more.hidden = !library.cursor;
    none.hidden = shown > 0 || !library.loaded;
    none.replaceChildren(...(filtered ? nothing(all, library.cursor) : welcome()));
    sum.textContent = !library.loaded || !all ? ""
      : (shown === all ? "" : `${count(shown)} of `)
        + (library.cursor ? `${count(all)}+ files` : counted(all, "file"));
  };
  const refresh = repeated(async () => {
    await library.refresh(state.value);
    while (order.value !== "newest" && library.cursor && library.files.length < MOST_SORTED) {
      await library.older(state.value, MOST);
    }
    draw();
  });
  order.addEventListener("change", () => {
    note({ order: order.value === "newest" ? "" : order.value });
    refresh();
  });
  pick.addEventListener("click", () => {
    library.pick(!library.picking);
    pick.textContent = library.picking ? "Done" : "Select";
    draw();
  });
  grid.addEventListener("change", draw);
  remove.addEventListener("click", () => {
    const ids = [...library.picked];
    pick.click();
    deleteMany(ids, (id) => `files/${id}`, library.hidden, draw, refresh, signal);
  });
  search.addEventListener("input", () => {
    note({ q: search.value.trim() });
    draw();
  });
  kind.addEventListener("change", () => {
    note({ kind: kind.value });
    draw();
  });
  state.addEventListener("change", () => {
    note({ status: state.value });
    library.forget();
    refresh();
  });
  more.addEventListener("click", () => attempt(() => library.older(state.value).then(draw)));
  arrived.addEventListener("change", refresh, { signal });
  document.addEventListener("visibilitychange", () => document.hidden || refresh(), { signal });
  await refresh();
  keep(library, refresh, signal);
}

// It refreshes by itself, more often while something is on its way.
async function keep(library, refresh, signal) {
  for (;;) {
    await pause(library.moving ? 1500 : 6000, signal);
    if (signal.aborted) return;
    if (!document.hidden) await refresh();
  }
}

function nothing(all, cursor) {
  const words = cursor ? `None of the ${count(all)} newest files matches.` : "No file matches.";
  return [h("p", {}, words)];
}

function welcome() {
  return [icon("film"), h("h2", {}, "Nothing here yet"),
    h("p", {}, "Drop a video or sound file anywhere on this page, or choose one."),
    h("button", { type: "button", onclick: () => $("file").click() }, "Choose files")];
}

class Library {
  constructor(grid, signal) {
    Object.assign(this, { grid, signal });
    this.cards = new Map();
    this.picking = false;
    this.picked = new Set(); // ids
    this.hidden = new Set(); // ids of what is about to be deleted
    this.forget();
  }

  forget() {
    this.files = [];
    this.cursor = null;
    this.loaded = false;
    this.progress = new Map();
  }

  get moving() {
    return this.files.some((file) => !["ready", "failed"].includes(file.status));
  }

  async page(status, limit, cursor = "") {
    const asked = new URLSearchParams({ type: "video", limit });
    if (status) asked.set("status", status);
    if (cursor) asked.set("cursor", cursor);
    return askJson(`files?${asked}`, { signal: this.signal });
  }

  // The newest that are shown, as they are now; older ones stay as they were.
  async refresh(status) {
    const limit = Math.min(Math.max(this.files.length, PAGE), MOST);
    const page = await this.page(status, limit);
    const older = this.files.length > limit ? this.files.slice(limit) : [];
    const known = new Set(page.files.map((file) => file.id));
    this.files = [...page.files, ...older.filter((file) => !known.has(file.id))];
    if (!older.length) this.cursor = page.next_cursor;
    this.loaded = true;
    if (page.files.some((file) => file.status === "processing")) {
      const running = await this.processes();
      this.progress = new Map(running.map((one) => [one.unprocessed_file_id, one.progress]));
    }
  }

  processes() {
    return askAll("process_isobmff?status=processing", "processes", { signal: this.signal });
  }

  // Choose several, or no more.
  pick(now) {
    this.picking = now;
    this.picked.clear();
    this.grid.classList.toggle("picking", now);
    for (const { box } of this.cards.values()) box.checked = false;
  }

  async older(status, limit = PAGE) {
    const page = await this.page(status, limit, this.cursor);
    this.files.push(...page.files);
    this.cursor = page.next_cursor;
  }

  draw(words, kind, order) {
    const there = this.files.filter(({ id }) => !this.hidden.has(id));
    const wanted = there.filter((file) => file.filename.toLowerCase().includes(words)
      && (!kind || kindOf(file) === kind));
    if (order) wanted.sort(order);
    const ids = new Set(wanted.map((file) => file.id));
    for (const [id, card] of this.cards) {
      if (!ids.has(id)) {
        card.node.remove();
        this.cards.delete(id);
        this.picked.delete(id);
      }
    }
    let before = null;
    for (const file of wanted) {
      const card = this.card(file);
      const place = before ? before.nextSibling : this.grid.firstChild;
      if (card.node !== place) this.grid.insertBefore(card.node, place);
      before = card.node;
    }
    return { shown: wanted.length, all: there.length };
  }

  // What has not changed keeps its element, and the focus in it.
  card(file) {
    const progress = this.progress.get(file.id);
    const state = JSON.stringify([file.filename, file.status, file.next_byte, file.tracks, progress]);
    let card = this.cards.get(file.id);
    if (!card) {
      const box = h("input.pick", { type: "checkbox", "aria-label": `Select ${file.filename}` });
      box.addEventListener("change", () => this.picked[box.checked ? "add" : "delete"](file.id));
      card = { node: h("li"), link: h("a", { href: `files/${file.id}` }), box };
      card.node.append(card.link, box);
      this.cards.set(file.id, card);
    }
    if (card.state !== state) {
      card.state = state;
      card.link.replaceChildren(...inside(file, progress));
    }
    return card;
  }
}

function lengthOf(file) {
  return Math.max(0, ...file.tracks.map((track) => track.duration_ms ?? 0)) / 1000;
}

function kindOf(file) {
  if (!file.tracks.length) return null;
  return file.tracks.some((track) => track.type === "video") ? "video" : "audio";
}

function inside(file, progress) {
  const length = lengthOf(file);
  const thumb = h("span.thumb", {}, icon(file.status === "failed" ? "warn" : kindOf(file) === "audio" ? "sound" : "film"));
  if (file.status === "ready" && kindOf(file) === "video") picture(file, length, thumb);
  if (length) thumb.append(h("span.badge", {}, clock(length, 0)));
  const part = file.status === "processing" ? progress ?? 0
    : file.status === "uploading" && file.byte_size ? file.next_byte / file.byte_size : null;
  if (part !== null) {
    thumb.append(h("progress", { max: 1, value: part, "aria-label": WORDS[file.status] }));
  }
  const facts = [sizeText(file), when(file.created_at)];
  const word = WORDS[file.status];
  return [thumb, h("span.name", { title: file.filename }, file.filename),
    h("span.soft", {}, word && h(`span.chip.${file.status}`, {}, word), facts.filter(Boolean).join(" · "))];
}

async function picture(file, length, thumb) {
  const time = Math.round(1000 * Math.min(length / 10, 10));
  const image = h("img", { alt: "", loading: "lazy", decoding: "async" });
  image.addEventListener("load", () => thumb.classList.add("there"));
  image.addEventListener("error", () => image.remove());
  image.src = await signed(`files/${file.id}/thumbnail.jpg?w=480&time_ms=${time}`, "files");
  thumb.prepend(image);
}
