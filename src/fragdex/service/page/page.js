// The page itself: key, uploads, files, and the film that is open.

const $ = (id) => document.getElementById(id);
const SCRUB = -1;
let player = null;
let leave = new AbortController(); // ends what belongs to the film that is open
let cursor = null;

function make(name, text = "", values = {}) {
  const element = Object.assign(document.createElement(name), values);
  element.textContent = text;
  return element;
}

function complain(error) {
  $("problem").textContent = error?.message ?? String(error);
  $("problem").hidden = false;
  $("problem").scrollIntoView({ block: "nearest" });
  if (error instanceof Problem && error.status === 401) lock();
}

function clean() {
  $("problem").hidden = true;
  $("problem").textContent = "";
}

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
  const date = file.created_at ? new Date(file.created_at).toLocaleString() : "";
  button.append(make("span", file.filename, { className: "name" }),
    make("span", file.status, { className: `chip ${file.status}` }),
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

// ---- the film

function closeFilm() {
  leave.abort();
  leave = new AbortController();
  player?.close();
  player = null;
  $("film").hidden = $("stage").hidden = $("film-progress").hidden = true;
  $("film").dataset.id = "";
}

async function openFilm(id) {
  clean();
  closeFilm();
  const { signal } = leave;
  $("film").dataset.id = id;
  $("film").dataset.state = "opening";
  for (const button of $("files").querySelectorAll("button")) {
    if (button.dataset.id === id) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
  try {
    let file = await askJson(`files/${id}`, { signal });
    $("film-title").textContent = file.filename;
    $("film").hidden = false;
    const text = (words) => { $("film-state").textContent = words; };
    if (file.status === "processing") {
      text("Being processed.");
      $("film-progress").hidden = false;
      $("film-progress").value = 0;
      await follow(`files/${id}/progress`, (name, data) => {
        if (name !== "progress") return;
        $("film-progress").value = data.progress;
        text(`Being processed: ${Math.round(data.progress * 100)} %.`);
      }, signal);
      file = await askJson(`files/${id}`, { signal });
      list().catch(complain);
    }
    $("film-progress").hidden = true;
    text("");
    if (file.status === "failed") throw new Error(file.problem?.detail ?? "The file cannot be used.");
    if (file.status === "ready") await show(file, signal);
    else text("Bytes of this file are missing. Drop it again to go on with its upload.");
  } catch (error) {
    if (signal.aborted) return;
    $("film-progress").hidden = true;
    $("film-state").textContent = "";
    $("film").dataset.state = "failed";
    complain(error);
    if (error instanceof Problem) list().catch(complain);
  }
}

async function show(file, signal) {
  const index = await askJson(`files/${file.id}/index`,
    { headers: { Accept: "application/json" }, signal });
  const order = (lane) => (lane.id === SCRUB ? 1e12 : lane.kind === "video" ? 0 : 1e9) + lane.id;
  const lanes = Object.entries(index).map(([id, told]) => new Lane(id, told))
    .sort((one, other) => order(one) - order(other));
  const played = ["video", "audio"]
    .map((kind) => lanes.find((lane) => lane.kind === kind && lane.id >= 0 && lane.count))
    .filter(Boolean);
  const plays = "MediaSource" in window;
  const able = played.filter((lane) => plays && MediaSource.isTypeSupported(lane.mime));
  const unable = played.filter((lane) => !able.includes(lane)).map((lane) => lane.mime);
  $("tracks").replaceChildren(...lanes.map(card));
  $("stage").hidden = false;
  $("video").classList.toggle("sound", !able.some((lane) => lane.kind === "video"));
  $("fetched-all").textContent = "";
  if (unable.length) $("film-state").textContent = `This browser does not play ${unable.join(", ")}.`;
  if (!lanes.some((lane) => lane.count)) throw new Error("The index tells of no segments.");
  timeline.show(lanes);
  if (!able.length) throw new Error("There is no track that this browser can play.");
  player = new Player($("video"), (lane) => `files/${file.id}/tracks/${lane.id}`, report(able));
  await player.open(able);
}

function card(lane) {
  const { told } = lane;
  const item = make("li", "", { className: `card ${lane.id < 0 ? "scrub" : lane.kind}` });
  const what = lane.kind === "video" ? `${told.width} × ${told.height}`
    : `${count(told.sample_rate)} Hz, ${told.channel_count} ch`;
  const length = clock(lane.end - lane.start);
  const parts = [told.codec, what, `${count(lane.count)} segments`, length, bytesText(lane.bytes)];
  item.append(make("strong", lane.name), make("span", parts.join(" · "), { className: "soft" }));
  return item;
}

// What a seek needed, and what was read ahead of need.
function report(lanes) {
  const all = lanes.reduce((sum, lane) => sum + lane.init.size + lane.bytes, 0);
  let total = 0;
  let needed;
  const sums = () => {
    const part = (total / all * 100).toFixed(1);
    $("fetched-all").textContent = `With what was read ahead, ${bytesText(total)} of`
      + ` ${bytesText(all)} were fetched since the file was opened (${part} %).`;
  };
  return {
    began(time) {
      needed = { time, size: 0, ranges: 0 };
      $("film").dataset.state = "seeking";
      $("fetched").replaceChildren();
      $("fetched-sum").textContent = `To ${clock(time)} …`;
    },
    fetched(lane, n, ahead) {
      const { offset, size } = lane.place(n);
      total += size;
      timeline.drawSoon();
      sums();
      if (ahead) return;
      needed.size += size;
      needed.ranges++;
      const line = make("tr");
      line.append(make("td", lane.name), make("td", n < 0 ? "initialization" : `segment ${n + 1}`),
        make("td", n < 0 ? "" : clock(lane.starts[n])),
        make("td", `${count(offset)}–${count(offset + size - 1)}`), make("td", bytesText(size)));
      $("fetched").append(line);
    },
    reached(time) {
      $("fetched-sum").textContent = needed.ranges
        ? `To ${clock(time)}: ${needed.ranges} ${needed.ranges === 1 ? "range" : "ranges"}, ${bytesText(needed.size)}.`
        : `To ${clock(time)}: nothing, the bytes were here already.`;
      $("film").dataset.state = "ready";
    },
    failed(error) {
      $("film").dataset.state = "failed";
      complain(error);
    },
  };
}

const timeline = new Timeline($("timeline"), $("bars"), $("playhead"), $("readout"),
  (time) => player?.seek(time));
for (const name of ["timeupdate", "seeking"]) {
  $("video").addEventListener(name, () => player && timeline.place($("video").currentTime));
}

$("go").addEventListener("submit", (event) => {
  event.preventDefault();
  const time = secondsOf($("moment").value.trim());
  $("moment").setCustomValidity(Number.isNaN(time) ? "Seconds, or minutes:seconds" : "");
  if ($("moment").reportValidity()) player?.seek(time);
});
$("moment").addEventListener("input", () => $("moment").setCustomValidity(""));

if (sessionStorage.getItem(KEY)) unlock();
else lock();
