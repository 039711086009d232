// The shell: sections, the key, the colours, whether the service answers, what is dropped.

import { line } from "./api.js";
import { $, h, say } from "./dom.js";
import { close, go, here, show } from "./router.js";
import { found, key, onChange, signOut } from "./session.js";
import { signInForm } from "./sign_in.js";
import { take } from "./uploads.js";

const SECTIONS = [["files", "Library"]];

$("nav").append(...SECTIONS.map(([section, name]) =>
  h("a", { href: section, "data-section": section }, name)),
h("a", { href: "docs" }, "Interface"));

// ---- the key

function open() {
  for (const id of ["nav", "add", "sign-out"]) $(id).hidden = false;
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
    ? "Offline: the service does not answer. What is shown may be old; it is tried again." : "";
}

line.addEventListener("silent", () => reachable(false));
line.addEventListener("answered", () => reachable(true));
addEventListener("offline", () => reachable(false));
addEventListener("online", () => reachable(true));

// ---- the colours: those of the system, or the ones chosen here

const THEMES = ["system", "light", "dark"];

function theme(wanted) {
  if (wanted === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = wanted;
  $("theme").textContent = { system: "Auto", light: "Light", dark: "Dark" }[wanted];
  $("theme").setAttribute("aria-label", `Colours: ${$("theme").textContent}`);
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
  take([...$("file").files]);
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
      ? "Drop films, pictures, or captions of this film" : "Drop films, pictures or captions";
    if (name === "drop" && key()) take([...event.dataTransfer.files]);
  });
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
