// A list that keeps itself as the service has it: rows of a table, older ones on demand.

import { askJson } from "./api.js";
import { attempt, complain, empty, h, pause, repeated } from "./dom.js";
import { title } from "./router.js";
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
// `empty`: picture, heading and words for nothing, and what may be done then.
export async function collection(view, about, signal) {
  const { name, path, field, heads, row, moving = () => false, tools = [] } = about;
  title(name);
  let records = [];
  let cursor = null;
  let drawn = "";
  const rows = table(name, heads);
  const { body } = rows;
  const more = h("button.quiet", { type: "button", hidden: true }, "Show older");
  const none = empty(...about.empty);
  none.hidden = true;
  const parts = [h("div.heading", {}, h("h1", {}, name), h("span.gap"), tools),
    ...(about.above ?? []), h("div.wide.rows", { tabIndex: 0, role: "region", "aria-label": name }, rows.element), none,
    h("p.centre", {}, more)];
  const page = (limit, from) => askJson(
    `${path}${path.includes("?") ? "&" : "?"}limit=${limit}${from ? `&cursor=${encodeURIComponent(from)}` : ""}`, { signal });
  const draw = () => {
    const state = JSON.stringify(records);
    more.hidden = !cursor;
    none.hidden = records.length > 0;
    rows.element.hidden = !records.length;
    // what one is about to press stays
    if (state === drawn || body.querySelector(".sure")) return;
    drawn = state;
    keepFocus(body, () => body.replaceChildren(...records.map((record) => rows.row(record.id, row(record, refresh)))));
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

// A new element keeps the focus where it was: in the same record's same button.
export function keepFocus(body, draw) {
  const before = document.activeElement;
  const row = before.closest?.("tr[data-id]");
  const nth = row && body.contains(row) ? [...row.querySelectorAll("a, button")].indexOf(before) : -1;
  draw();
  if (nth < 0) return;
  const same = [...body.children].find((one) => one.dataset.id === row.dataset.id);
  same?.querySelectorAll("a, button")[nth]?.focus();
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
