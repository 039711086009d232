// Which view an address shows. Going somewhere is one thing: a link, `go(address)`, or the browser.

import { $, clean, complain, say } from "./dom.js";

const ROUTES = [
  ["", "library"], ["files", "library"], ["files/:id", "film"],
];

let leave = new AbortController();
let shown = 0;

export function here() {
  const base = new URL(document.baseURI).pathname;
  return location.pathname.slice(base.length).replace(/\/+$/, "");
}

export function go(address, { replace = false } = {}) {
  const url = new URL(address, document.baseURI);
  history[replace ? "replaceState" : "pushState"](null, "", url);
  return show();
}

// Other words in the address of what is shown already.
export function note(values) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(values)) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  history.replaceState(null, "", url);
}

export function title(words) {
  document.title = words ? `${words} · fragdex` : "fragdex";
}

export function close() {
  leave.abort();
  leave = new AbortController();
  shown++;
  $("view").replaceChildren();
}

export async function show() {
  close();
  clean();
  const turn = shown;
  const { signal } = leave;
  const [name, id] = match(here());
  mark(here());
  if (!name) {
    title("Not found");
    complain(new Error("There is nothing at this address."));
    return;
  }
  const view = await import(`./${name}.js`);
  if (turn !== shown) return;
  try {
    await view.show($("view"), { id, query: new URLSearchParams(location.search), signal });
  } catch (error) {
    if (!signal.aborted) complain(error);
  }
  if (turn !== shown) return;
  const heading = $("view").querySelector("h1");
  if (heading) {
    heading.tabIndex = -1;
    say(heading.textContent);
  }
}

function match(address) {
  const parts = address ? address.split("/") : [""];
  for (const [pattern, name] of ROUTES) {
    const wanted = pattern.split("/");
    if (wanted.length !== parts.length) continue;
    if (!wanted.every((one, n) => one === parts[n] || (one.startsWith(":") && parts[n]))) continue;
    return [name, wanted.length > 1 ? decodeURIComponent(parts[1]) : undefined];
  }
  return [];
}

function mark(address) {
  const section = address.split("/")[0] || "files";
  for (const link of $("nav").children) {
    if (link.dataset.section === section) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  if (link.id === "skip") {
    event.preventDefault();
    $("main").focus();
    return;
  }
  const base = new URL(document.baseURI);
  const path = new URL(link.href).pathname;
  if (link.target || link.hasAttribute("download") || !link.href.startsWith(base.href)) return;
  const [name] = match(path.slice(base.pathname.length).replace(/\/+$/, ""));
  if (!name) return;
  event.preventDefault();
  go(link.href).then(() => {
    scrollTo(0, 0);
    $("view").querySelector("h1")?.focus({ preventScroll: true });
  });
});
addEventListener("popstate", () => show());
