/** Sync samples as evenly spaced runs: few rows, exact times (docs/index-format.md, `sync`). */
import { IndexingError } from "./boxes.js";
import { TABLES, after } from "./fidx.js";

const COLUMNS = Object.keys(TABLES.sync);
const MOST_OVERLAPPING = 2 ** 18;

export const emptyTable = (name) => Object.fromEntries(Object.keys(TABLES[name]).map((column) => [column, []]));
export const emptySync = () => emptyTable("sync");

/** Adds a row, in the order of the columns. */
export function push(table, ...values) {
  Object.values(table).forEach((column, at) => column.push(values[at]));
}

/** The rows of some runs in order of time: joined where they continue each other. */
export function joinedSync(tables, sampleStart) {
  let table = emptySync();
  for (const one of tables) for (const name of COLUMNS) for (const value of one[name]) table[name].push(value);
  if (table.cts.length < 2) return table;
  if (!inOrder(table)) table = oneByOne(table, sampleStart);
  if (table.count.includes(1)) table = progressions(table);
  return longest(table);
}

function inOrder({ cts, count, step }) {
  return cts.every((one, row) => !row || cts[row - 1] + (count[row - 1] - 1) * step[row - 1] <= one);
}

/** Every sync sample as a row of its own, by time. */
function oneByOne(table, sampleStart) {
  const total = table.count.reduce((sum, one) => sum + one, 0);
  if (total > MOST_OVERLAPPING) {
    throw new IndexingError(`${total} sync samples overlap in time`, "moof/traf/trun");
  }
  const rows = [];
  let fragment = 0;
  for (let row = 0; row < table.cts.length; row++) {
    for (let turn = 0; turn < table.count[row]; turn++) {
      const sample = table.sample[row] + turn * table.sample_step[row];
      fragment = sampleStart ? holding(sampleStart, sample) : table.fragment[row];
      const [cts, dts] = [table.cts[row], table.dts[row]].map((one) => one + turn * table.step[row]);
      rows.push([cts, dts, 0, 1, sample, 0, fragment]);
    }
  }
  rows.sort((a, b) => a[0] - b[0]);
  const found = emptySync();
  for (const row of rows) push(found, ...row);
  return found;
}

/** The row of the fragment that holds a sample. */
export function holding(sampleStart, sample) {
  return after(sampleStart, (start) => start <= sample) - 1;
}

/** Joins single samples that are evenly spaced in time and number. */
function progressions(table) {
  const { cts, dts, count, sample } = table;
  const isEven = (row) =>
    cts[row + 1] - cts[row] === dts[row + 1] - dts[row] && cts[row + 1] > cts[row] &&
    sample[row + 1] > sample[row] && count[row] === 1 && count[row + 1] === 1;
  const isSame = (row) =>
    cts[row + 1] - cts[row] === cts[row] - cts[row - 1] &&
    sample[row + 1] - sample[row] === sample[row] - sample[row - 1];
  const found = emptySync();
  for (let row = 0; row < cts.length; ) {
    // A stretch of equal distances belongs to the rows that end them; the first also to row 0.
    const from = row;
    const before = from ? from - 1 : 0;
    let last = from;
    if (isEven(before)) {
      last = before + 1;
      while (last + 1 < cts.length && isEven(last) && isSame(last)) last++;
    }
    const many = last > from;
    push(
      found, cts[from], dts[from], many ? cts[from + 1] - cts[from] : table.step[from],
      many ? last - from + 1 : count[from], sample[from],
      many ? sample[from + 1] - sample[from] : table.sample_step[from], table.fragment[from],
    );
    row = last + 1;
  }
  return found;
}

/** Runs as long as they can be, from the first sample on. */
function longest(table) {
  const found = emptySync();
  let at = -1;
  for (let row = 0; row < table.cts.length; row++) {
    const next = Object.fromEntries(COLUMNS.map((name) => [name, table[name][row]]));
    if (at >= 0) {
      const ahead = next.cts - found.cts[at];
      const samples = next.sample - found.sample[at];
      const count = found.count[at];
      const by = count === 1 ? ahead : found.step[at];
      const samplesBy = count === 1 ? samples : found.sample_step[at];
      if (
        by > 0 && samplesBy > 0 && ahead === next.dts - found.dts[at] && ahead === count * by &&
        samples === count * samplesBy &&
        (next.count === 1 || (next.step === by && next.sample_step === samplesBy))
      ) {
        [found.step[at], found.sample_step[at], found.count[at]] = [by, samplesBy, count + next.count];
        continue;
      }
    }
    push(found, ...COLUMNS.map((name) => next[name]));
    at++;
  }
  return found;
}
