// The shell: sections, the key, the colours, whether the service answers, what is dropped.

import { answers, askJson, line } from "./api.js";
import { $, complain, h, pause, say } from "./dom.js";
import { close, go, here, show } from "./router.js";
import { found, keepScope, key, onChange, scope, signOut } from "./session.js";
import { signInForm } from "./sign_in.js";
import { take } from "./uploads.js";

const SECTIONS = [["files", "Library"], ["renders", "Renders"], ["transcriptions", "Transcriptions"], ["images", "Images"],
  ["captions", "Captions"], ["jobs", "Jobs"], ["storage", "Storage"], ["webhooks", "Webhooks"], ["keys", "Keys"]];

$("nav").append(...SECTIONS.map(([section, name]) =>
  h(section === "keys" ? "a.admin" : "a", { href: section, "data-section": section }, name)),
h("a", { href: "docs" }, "Interface"));

// ---- the key

function open() {
  for (const id of ["nav", "add", "sign-out"]) $(id).hidden = false;
  document.body.dataset.scope = scope();
  askJson("usage").then(({ scope: now }) => {
    keepScope(now);
    document.body.dataset.scope = now;
  }, () => {});
  return show();
}

function lock(problem = null) {
  close();
  for (const id of ["nav", "add", "sign-out", "problem"]) $(id).hidden = true;
  $("view").replaceChildren(signInForm(problem, open));
  $("view").querySelector("input").focus();
}

line.addEventListener("locked", ({ detail }) => {
  if ($("nav").hidden) return; // a key that is being tried
  signOut();
  lock(detail);
});
onChange(() => (key() ? open() : lock()));
$("sign-out").addEventListener("click", () => {
  signOut();
  lock();
});

// ---- whether the service answers

let silent = false;

function reachable(now) {
  if (silent === !now) return;
  silent = !now;
  document.body.classList.toggle("offline", silent);
  $("offline").textContent = silent
    ? "Offline: the service does not answer. This view may be out of date; retrying." : "";
  if (silent) knock();
}

// Views that ask for nothing by themselves would never notice that it answers again.
async function knock() {
  for (let n = 0; silent; n++) {
    await pause(Math.min(1000 * 1.5 ** n, 10000));
    if (silent && await answers()) line.dispatchEvent(new Event("answered"));
  }
}

line.addEventListener("silent", () => reachable(false));
line.addEventListener("answered", () => reachable(true));
addEventListener("offline", () => reachable(false));
addEventListener("online", () => line.dispatchEvent(new Event("answered")));

// ---- the colours: those of the system, or the ones chosen here

const THEMES = ["system", "light", "dark"];

function theme(wanted) {
  if (wanted === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = wanted;
  $("theme").textContent = { system: "Auto", light: "Light", dark: "Dark" }[wanted];
  $("theme").title = `Colours: ${$("theme").textContent}`;
  $("theme").setAttribute("aria-label", $("theme").title);
  dispatchEvent(new Event("fragdex.theme"));
}

$("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme ?? "system";
  const wanted = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
  localStorage.setItem("fragdex.theme", wanted);
  theme(wanted);
  say($("theme").getAttribute("aria-label"));
});
theme(document.documentElement.dataset.theme ?? "system");

// ---- files, chosen or dropped anywhere

$("add").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", () => {
  dropped({ items: [], files: $("file").files });
  $("file").value = "";
});

let depth = 0; // enter and leave come for every element on the way

for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    if (name === "dragenter") depth++;
    if (name === "dragleave") depth--;
    if (name === "drop") depth = 0;
    $("drop").hidden = depth <= 0 || !key();
    $("drop").firstElementChild.textContent = here().startsWith("files/")
      ? "Drop videos, images, or captions of this video" : "Drop videos, images, captions, or a page to render";
    if (name === "drop" && key()) dropped(event.dataTransfer);
  });
}

// A page, or a folder of one, is what a render begins with; all else is stored.
async function dropped(data) {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.());
  const files = [...data.files];
  try {
    const whole = entries.find((entry) => entry?.isDirectory);
    if (whole) {
      const { walked } = await import("./pages.js");
      await (await import("./new_render.js")).begin(await walked(whole), true);
    } else if (files.length === 1 && /\.(html?|zip|tgz|tar\.gz)$/i.test(files[0].name)) {
      await (await import("./new_render.js")).begin(files, false);
    } else take(files);
  } catch (error) {
    complain(error);
  }
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, textarea, select, [contenteditable]")) return;
  const search = document.querySelector("input[type=search]");
  event.preventDefault();
  if (search) search.focus();
  else if (key()) go("files").then(() => document.querySelector("input[type=search]")?.focus());
});

if (await found()) await open();
else lock();
