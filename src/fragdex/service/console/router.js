// Which view an address shows. Going somewhere is one thing: a link, `go(address)`, or the browser.

import { answers, ask, line } from "./api.js";
import { $, clean, complain, h, icon, say, sentence } from "./dom.js";

const ROUTES = [
  ["", "library"], ["files", "library"], ["files/:id", "film"],
  ["renders", "renders"], ["renders/new", "new_render"], ["renders/:id", "render"],
  ["transcriptions", "transcriptions"], ["images", "images"], ["captions", "images"], ["jobs", "jobs"],
  ["webhooks", "webhooks"], ["webhooks/:id", "webhooks"], ["keys", "keys"], ["storage", "storage"],
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
  // a picture that is still being fetched would keep a connection from the next view
  for (const image of $("view").querySelectorAll("img")) image.removeAttribute("src");
  $("view").replaceChildren();
}

// Deletes what the view shows, and goes elsewhere. The view is closed first, which aborts its requests:
// they would be answered 404.
export async function deleteShown(place, next) {
  close();
  try {
    await ask(place, { method: "DELETE" });
  } catch (error) {
    await show();
    throw error;
  }
  await go(next);
}

export async function show() {
  close();
  clean();
  const turn = shown;
  const { signal } = leave;
  const [name, id] = match(here());
  mark(here());
  $("view").ariaBusy = "true";
  try {
    if (!name) throw Object.assign(new Error(), { status: 404 });
    const view = await import(`./${name}.js`).catch(lost);
    if (turn !== shown) return;
    await view.show($("view"), { id, section: here(), query: new URLSearchParams(location.search), signal });
  } catch (error) {
    if (!signal.aborted) fail(error, signal);
  }
  if (turn !== shown) return;
  $("view").ariaBusy = "false";
  const heading = $("view").querySelector("h1");
  if (heading) {
    heading.tabIndex = -1;
    say(heading.textContent);
  }
}

// Not every browser requests a module again that failed to load in the same document. The answer
// about the service may be to an older request: a page that is loaded offline is lost.
function lost() {
  line.dispatchEvent(new Event("silent"));
  const again = async () => (await answers() ? location.reload() : show());
  throw Object.assign(new Error(), { status: 0, again });
}

// In the place of a view that could not be shown.
function fail(error, signal) {
  if (error?.status === 401) return;
  if ($("view").querySelector("h1") && error?.status !== 0) {
    complain(error);
    return;
  }
  const [heading, words] = error?.status === 404 ? ["Not found", "There is nothing at this address; it may have been deleted."]
    : error?.status === 0 ? ["No answer", "The service does not answer. This page loads as soon as it does."]
      : error?.status === 403 ? ["Not allowed", sentence(error.message)]
        : ["Something went wrong", sentence(error?.message ?? String(error))];
  title(heading);
  const again = error?.again ?? show;
  $("view").replaceChildren(h("div.empty", {}, icon("warn"), h("h1", {}, heading), h("p", {}, words),
    error?.status === 404 ? h("a.button", { href: "files" }, "Library")
      : h("button", { type: "button", onclick: () => again() }, "Try again")));
  if (error?.status === 0) line.addEventListener("answered", () => again(), { once: true, signal });
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
    if (link.dataset.section === section) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
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
