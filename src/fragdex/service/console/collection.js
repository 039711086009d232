// A list that keeps itself as the service has it: rows of a table, older ones on demand.

import { ask, askJson } from "./api.js";
import { attempt, complain, empty, h, pause, repeated, undoable } from "./dom.js";
import { count, counted } from "./format.js";
import { note, title } from "./router.js";
import { arrived } from "./uploads.js";

const PAGE = 50;
const MOST = 200;

// A table whose rows are cards where there is no room for columns. A column without a name is of
// what can be done.
export function table(name, heads) {
  const body = h("tbody");
  const element = h("table", { "aria-label": name },
    h("thead", {}, h("tr", {}, heads.map((one) =>
      h("th", { scope: "col" }, one || h("span.unseen", {}, "Actions"))))), body);
  const row = (id, cells) => h("tr", { "data-id": id }, cells.map((cell, n) =>
    h(n ? "td" : "td.words", { "data-label": heads[n] }, cell)));
  return { element, body, row };
}

// `heads`: names of columns; `row(record)`: what is in them; `moving(record)`: whether it changes;
// `empty`: picture, heading and words for nothing, and what may be done then; `place(id)`: the address
// of a file, by whose names one searches, and of which many go at once.
export async function collection(view, about, signal) {
  const { name, path, field, heads, row, moving = () => false, tools = [] } = about;
  title(name);
  let records = [];
  let cursor = null;
  let drawn = "";
  const hidden = new Set(); // ids of what is about to be deleted
  const picks = picker(about.place, hidden, () => draw(), () => refresh(), signal);
  const rows = table(name, heads);
  const { body } = rows;
  const more = h("button.quiet", { type: "button", hidden: true }, "Show older");
  const none = empty(...about.empty);
  none.hidden = true;
  const parts = [h("div.heading", {}, h("h1", {}, name), h("span.gap"), tools),
    ...(about.above ?? []), about.place && picks.filters, h("div.wide.rows", { tabIndex: 0, role: "region", "aria-label": name }, rows.element), none,
    picks.nothing, h("p.centre", {}, more)].filter(Boolean);
  const page = (limit, from) => askJson(
    `${path}${path.includes("?") ? "&" : "?"}limit=${limit}${from ? `&cursor=${encodeURIComponent(from)}` : ""}`, { signal });
  const draw = () => {
    const shown = records.filter((one) => !hidden.has(one.id) && picks.matches(one));
    picks.show(shown, records.length);
    const state = JSON.stringify([shown, picks.on]);
    more.hidden = !cursor;
    none.hidden = records.length > 0;
    rows.element.hidden = !shown.length;
    // what one is about to press stays
    if (state === drawn || body.querySelector(".sure")) return;
    drawn = state;
    keepFocus(body, () => body.replaceChildren(...shown.map((record) =>
      rows.row(record.id, picks.boxed(record, row(record, refresh))))));
  };
  async function refresh() {
    const limit = Math.min(Math.max(records.length, PAGE), MOST);
    const told = await page(limit);
    const older = records.slice(limit);
    records = [...told[field], ...older];
    if (!older.length) cursor = told.next_cursor;
    draw();
  }
  more.addEventListener("click", () => attempt(async () => {
    const told = await page(PAGE, cursor);
    records.push(...told[field]);
    cursor = told.next_cursor;
    draw();
  }));
  arrived.addEventListener("change", () => refresh().catch(complain), { signal });
  await refresh();
  view.append(...parts);
  keep(() => records.some(moving), refresh, signal);
  return { refresh };
}

// Finding files by their names, and choosing several.
function picker(place, hidden, draw, refresh, signal) {
  const picked = new Set(); // ids
  const search = h("input", { type: "search", placeholder: "Search names", "aria-label": "Search names",
    value: new URLSearchParams(location.search).get("q") ?? "" });
  const pick = h("button.quiet.writes", { type: "button" }, "Select");
  const remove = h("button.quiet.writes.sure", { type: "button", hidden: true }, "Delete");
  const picks = {
    on: false,
    filters: h("div.filters", {}, search, h("span.gap"), remove, pick),
    nothing: h("p.empty", { role: "status", hidden: true }, "No name of those that are loaded matches."),
    matches: (one) => !place || one.filename.toLowerCase().includes(search.value.trim().toLowerCase()),
    show(shown, all) {
      const there = new Set(shown.map(({ id }) => id));
      for (const id of picked) if (!there.has(id)) picked.delete(id);
      picks.filters.hidden = !all;
      picks.nothing.hidden = !all || shown.length > 0;
      tellPicked();
    },
    boxed(one, [first, ...others]) {
      if (!picks.on) return [first, ...others];
      const box = h("input.pick", { type: "checkbox", "aria-label": `Select ${one.filename}`, checked: picked.has(one.id) });
      box.addEventListener("change", () => {
        picked[box.checked ? "add" : "delete"](one.id);
        tellPicked();
      });
      return [[box, first].flat(), ...others];
    },
  };
  function tellPicked() {
    remove.hidden = !picked.size;
    remove.textContent = `Delete ${count(picked.size)}`;
  }
  pick.addEventListener("click", () => {
    picks.on = !picks.on;
    picked.clear();
    pick.textContent = picks.on ? "Done" : "Select";
    draw();
  });
  remove.addEventListener("click", () => {
    const ids = [...picked];
    pick.click();
    deleteMany(ids, place, hidden, draw, refresh, signal);
  });
  search.addEventListener("input", () => {
    note({ q: search.value.trim() });
    draw();
  });
  return picks;
}

// Files go in a while, unless it is undone; `hidden` has those that are not shown any more.
export function deleteMany(ids, place, hidden, draw, refresh, signal) {
  for (const id of ids) hidden.add(id);
  draw();
  const gone = () => Promise.all(ids.map((id) =>
    ask(place(id), { method: "DELETE", keepalive: true }).catch((error) => {
      hidden.delete(id);
      if (error.status !== 404) complain(error);
    }))).then(() => signal.aborted || refresh());
  undoable(`${counted(ids.length, "file")} deleted.`, gone, () => {
    for (const id of ids) hidden.delete(id);
    if (!signal.aborted) draw();
  });
}

// A new element keeps the focus where it was: in the same record's same button.
export function keepFocus(body, draw) {
  const before = document.activeElement;
  const row = before.closest?.("tr[data-id]");
  const nth = row && body.contains(row) ? [...row.querySelectorAll("a, button, input")].indexOf(before) : -1;
  draw();
  if (nth < 0) return;
  const same = [...body.children].find((one) => one.dataset.id === row.dataset.id);
  same?.querySelectorAll("a, button, input")[nth]?.focus();
}

async function keep(busy, refresh, signal) {
  const quietly = repeated(refresh);
  for (;;) {
    await pause(busy() ? 1500 : 6000, signal);
    if (signal.aborted) return;
    if (!document.hidden) await quietly();
  }
}

export function chip(status) {
  return h(`span.chip.${status}`, {}, status.charAt(0).toUpperCase() + status.slice(1));
}

export function bar(done, all, label) {
  return h("progress", { max: all || 1, value: done, "aria-label": label });
}
