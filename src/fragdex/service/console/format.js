// Numbers, sizes and times as people read them.

export function clock(time, digits = 3) {
  const factor = 10 ** digits;
  const all = Math.round(Math.abs(time) * factor) / factor;
  const hours = Math.floor(all / 3600);
  const minutes = Math.floor(all / 60) % 60;
  const seconds = (all % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  const sign = time < 0 && all ? "−" : "";
  const front = hours ? `${hours}:${String(minutes).padStart(2, "0")}` : minutes;
  return `${sign}${front}:${seconds}`;
}

// 12.5, 1:02.5 and 1:00:00 in seconds; NaN for anything else.
export function secondsOf(text) {
  if (!/^\d+(:\d+){0,2}([.,]\d+)?$/.test(text)) return NaN;
  return text.replace(",", ".").split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
}

export function count(number) {
  return number.toLocaleString("en");
}

// "1 file", "2,000 files".
export function counted(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

export function bytesText(size) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; size >= 1024 && unit < units.length - 1; unit++) size /= 1024;
  return `${unit && size < 100 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** What a file has, or will have; of one that nobody measured, what is here of it. */
export function sizeText({ byte_size: size, next_byte: here }) {
  return size === null && !here ? "" : bytesText(size ?? here);
}

const TIME = { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" };
const FORM = new Intl.DateTimeFormat("en", TIME);
const WITH_YEAR = new Intl.DateTimeFormat("en", { ...TIME, year: "numeric" });

export function when(instant) {
  if (!instant) return "";
  const then = new Date(instant);
  return (then.getFullYear() === new Date().getFullYear() ? FORM : WITH_YEAR).format(then);
}
