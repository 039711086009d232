// The page itself: key, files, uploads.

const STATUS = { created: "incomplete", uploading: "incomplete" };
const WHEN = { dateStyle: "medium", timeStyle: "short" };
let cursor = null;

// ---- the key

function lock() {
  sessionStorage.removeItem(KEY);
  closeFilm();
  $("work").hidden = $("forget").hidden = true;
  $("key-form").hidden = false;
  $("key").focus();
}

async function unlock() {
  try {
    await list();
  } catch (error) {
    complain(error);
    // a service that does not answer says nothing about the key
    if (!$("key-form").hidden || error.status === 0) return;
    lock();
    return;
  }
  clean();
  $("key").value = "";
  $("key-form").hidden = true;
  $("work").hidden = $("forget").hidden = false;
}

$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, $("key").value.trim());
  unlock();
});
$("forget").addEventListener("click", () => {
  clean();
  lock();
});

// ---- files

async function list(older = false) {
  const path = `files?type=video&limit=20${older ? `&cursor=${encodeURIComponent(cursor)}` : ""}`;
  const page = await askJson(path);
  if (!older) $("files").replaceChildren();
  $("files").append(...page.files.map(row));
  cursor = page.next_cursor;
  $("more").hidden = !cursor;
  $("no-files").hidden = $("files").childElementCount > 0;
}

function row(file) {
  const button = make("button", "", { type: "button" });
  const size = file.byte_size === null ? "" : bytesText(file.byte_size);
  const date = file.created_at ? new Date(file.created_at).toLocaleString([], WHEN) : "";
  button.append(make("span", file.filename, { className: "name" }),
    make("span", STATUS[file.status] ?? file.status, { className: `chip ${file.status}` }),
    make("span", [size, date].filter(Boolean).join(" · "), { className: "soft" }));
  button.dataset.id = file.id;
  button.addEventListener("click", async () => {
    await openFilm(file.id);
    // on a narrow screen the film stands below the list
    if ($("film").dataset.id === file.id && $("problem").hidden) $("film-title").focus();
  });
  if (file.id === $("film").dataset.id) button.setAttribute("aria-current", "true");
  const item = make("li");
  item.append(button);
  return item;
}

$("refresh").addEventListener("click", () => list().then(clean, complain));
$("more").addEventListener("click", () => list(true).catch(complain));

// ---- uploads

let queue = Promise.resolve();

function take(files) {
  for (const file of files) {
    const item = make("li");
    const bar = make("progress", "", { max: Math.max(file.size, 1), value: 0 });
    const words = make("span", "waits", { className: "soft" });
    const stop = make("button", "Stop", { type: "button", className: "quiet" });
    const ended = new AbortController();
    stop.addEventListener("click", () => ended.abort());
    bar.setAttribute("aria-label", `Upload of ${file.name}`);
    item.append(make("span", file.name, { className: "name" }), stop, bar, words);
    $("uploads").append(item);
    queue = queue.then(() => send(file, item, bar, words, ended.signal));
  }
}

async function send(file, item, bar, words, signal) {
  try {
    signal.throwIfAborted();
    const record = await upload(file, (sent, problem) => {
      bar.value = sent;
      const lost = problem ? ` · Trying again: ${problem.message}` : "";
      words.textContent = `${bytesText(sent)} of ${bytesText(file.size)}${lost}`;
    }, signal);
    item.remove();
    await list();
    openFilm(record.id);
  } catch (error) {
    bar.remove();
    const why = signal.aborted ? "Stopped. Drop it again to go on." : error.message;
    words.textContent = why;
    words.className = signal.aborted ? "soft" : "wrong";
    item.querySelector("button").replaceWith(dismissing(item));
    if (error instanceof Problem && error.status === 401) complain(error);
  }
}

function dismissing(item) {
  const button = make("button", "Dismiss", { type: "button", className: "quiet" });
  button.addEventListener("click", () => item.remove());
  return button;
}

$("file").addEventListener("change", (event) => {
  take(event.target.files);
  event.target.value = "";
});
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    $("drop").classList.toggle("over", name === "dragover");
    if (name === "drop" && !$("work").hidden) take(event.dataTransfer.files);
  });
}

if (sessionStorage.getItem(KEY)) unlock();
else lock();
