// Elements, made without markup: what a name says is text, whatever is in it.

export const $ = (id) => document.getElementById(id);

// h("button.quiet#go", { onclick }, "Go"): an element, its properties, and what is in it.
export function h(what, values = {}, ...inside) {
  const [, name, rest] = what.match(/^(\w+)(.*)$/);
  const element = document.createElement(name);
  for (const [, kind, word] of rest.matchAll(/([.#])([\w-]+)/g)) {
    if (kind === "#") element.id = word;
    else element.classList.add(word);
  }
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key.startsWith("data-") || key.startsWith("aria-") || key === "role" || key === "for") {
      element.setAttribute(key, value);
    } else element[key] = value;
  }
  element.append(...inside.flat().filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

const PATHS = {
  film: "M3 4h18v16H3zM7 4v16M17 4v16M3 9h4M3 15h4M17 9h4M17 15h4",
  sound: "M9 18V6l10-2v12M9 18a3 3 0 1 1-3-3h3zM19 16a3 3 0 1 1-3-3h3z",
  play: "M7 4l13 8-13 8z",
  pause: "M7 4v16M17 4v16",
  warn: "M12 3l10 18H2zM12 10v5M12 18v.5",
  speaker: "M4 9v6h4l5 4V5L8 9zM16 9a4 4 0 0 1 0 6M18.5 6.5a8 8 0 0 1 0 11",
  mute: "M4 9v6h4l5 4V5L8 9zM17 9l5 6M22 9l-5 6",
  whole: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  next: "M6 5l8 7-8 7zM18 5v14",
  back: "M18 5l-8 7 8 7zM6 5v14",
  picture: "M3 5h18v14H3zM3 16l5-5 4 4 3-3 6 6M15.5 9v.5",
  words: "M3 5h18v12h-9l-5 4v-4H3zM7 9h10M7 13h6",
  clock: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3 3",
  key: "M15 4a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM11.5 12.5L4 20M6 18l2 2",
  send: "M4 12l16-8-6 16-3-7zM11 13l9-9",
};

export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const path = document.createElementNS(space, "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("icon");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

// For who listens instead of looking.
export function say(text) {
  $("live").textContent = "";
  requestAnimationFrame(() => { $("live").textContent = text; });
}

let told;

// For everybody, and soon gone.
export function tell(text) {
  $("toast").textContent = text;
  clearTimeout(told);
  told = setTimeout(() => { $("toast").textContent = ""; }, 5000);
}

export function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function complain(error) {
  // an unknown key, and a service that does not answer, are reported elsewhere
  if (error?.name === "AbortError" || error?.status === 401 || error?.status === 0) return;
  $("problem").textContent = sentence(error?.message ?? String(error));
  $("problem").hidden = false;
  $("problem").scrollIntoView({ block: "nearest" });
}

export function clean() {
  $("problem").hidden = true;
  $("problem").textContent = "";
}

// What is done again and again by itself: what it complained of is over once it succeeds.
export function repeated(deed) {
  let failed = false;
  return async () => {
    try {
      await deed();
      if (failed) clean();
      failed = false;
    } catch (error) {
      failed = true;
      complain(error);
    }
  };
}

// A request of the user: earlier errors are over, and new ones are shown.
export async function attempt(deed) {
  clean();
  try {
    return await deed();
  } catch (error) {
    complain(error);
    return undefined;
  }
}

// Into the clipboard, or, at an address without https, which has none, by what is selected.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = h("textarea", { value: text, readOnly: true });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  tell("Copied.");
}

// What is shown once, and can be copied.
export function once(words, secret) {
  return [`${words}, shown once: `, h("code", {}, secret), " ",
    h("button.quiet", { type: "button", onclick: () => copy(secret) }, "Copy")];
}

// A button that makes a field of a name, until it is kept or given up. `rename(name)` keeps it.
export function renaming(name, place, rename) {
  const button = h("button.quiet.writes", { type: "button", "aria-label": `Rename ${name}` }, "Rename");
  button.addEventListener("click", () => {
    const field = h("input.name", { type: "text", value: name, required: true, maxLength: 255, "aria-label": "New name" });
    const shown = [...place.childNodes];
    const end = () => place.replaceChildren(...shown);
    const keep = async (event) => {
      event.preventDefault();
      const wanted = field.value.trim();
      if (wanted && wanted !== name) await attempt(() => rename(wanted));
      if (form.isConnected) end();
      button.focus();
    };
    const form = h("form.rename", { onsubmit: keep }, field, h("button", { type: "submit" }, "Keep"));
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      end();
      button.focus();
    });
    place.replaceChildren(form);
    field.focus();
    field.setSelectionRange(0, Math.max(name.lastIndexOf("."), 0) || name.length);
  });
  return button;
}

const UNDO = 10000; // milliseconds
let waiting = null;

// A deed that is done in a while, unless it is undone; also where the page is left before.
export function undoable(words, deed, undone) {
  waiting?.();
  const over = () => {
    clearTimeout(timer);
    removeEventListener("pagehide", now);
    if (waiting === now) waiting = null;
    bar.remove();
  };
  const now = () => {
    over();
    deed();
  };
  const undo = h("button.quiet", { type: "button", onclick: () => { over(); undone(); } }, "Undo");
  const bar = h("div#undo", { role: "status" }, words, " ", undo);
  const timer = setTimeout(now, UNDO);
  addEventListener("pagehide", now);
  waiting = now;
  document.body.append(bar);
}

// A button whose deed cannot be undone asks first: it is done at the second click.
export function twice(label, sure, deed) {
  const button = h("button.quiet.writes", { type: "button" }, label);
  const doubt = (now) => {
    button.classList.toggle("sure", now);
    button.textContent = now ? sure : label;
  };
  button.addEventListener("click", async () => {
    if (!button.classList.contains("sure")) return doubt(true);
    button.disabled = true;
    await attempt(deed);
    button.disabled = false;
    doubt(false);
  });
  button.addEventListener("blur", () => doubt(false));
  return button;
}

// What a view shows where it has nothing else to show.
export function empty(picture, heading, words, ...more) {
  return h("div.empty", {}, icon(picture), h("h2", {}, heading), h("p", {}, words), more);
}

export function pause(milliseconds, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
  });
}
