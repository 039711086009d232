// The film that is open: its state, its player, its tracks, and what a seek fetched.

const SCRUB = -1;
let player = null;
let leave = new AbortController(); // ends what belongs to the film that is open

function closeFilm() {
  leave.abort();
  leave = new AbortController();
  player?.close();
  player = null;
  $("film").hidden = $("stage").hidden = $("film-progress").hidden = $("sounds").hidden = true;
  $("moment").value = "";
  doubt();
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
    complain(error, $("film").hidden ? null : $("film-title").parentElement);
    if (error instanceof Problem) list().catch(complain);
  }
}

async function show(file, signal) {
  const index = await askJson(`files/${file.id}/index`,
    { headers: { Accept: "application/json" }, signal });
  const order = (lane) => (lane.id === SCRUB ? 1e12 : lane.kind === "video" ? 0 : 1e9) + lane.id;
  const lanes = Object.entries(index).map(([id, told]) => new Lane(id, told))
    .sort((one, other) => order(one) - order(other));
  const full = lanes.filter((lane) => lane.id >= 0 && lane.count);
  const picture = full.find((lane) => lane.kind === "video");
  const played = full.filter((lane) => lane.kind === "audio" || lane === picture);
  const plays = "MediaSource" in window;
  const able = played.filter((lane) => plays && MediaSource.isTypeSupported(lane.mime));
  const unable = played.filter((lane) => !able.includes(lane)).map((lane) => lane.mime);
  const sounds = able.filter((lane) => lane.kind === "audio");
  if (sounds.length > 1) await nameLanguages(file, sounds, signal);
  $("tracks").replaceChildren(...lanes.map(card));
  $("stage").hidden = false;
  $("video").classList.toggle("sound", !able.some((lane) => lane.kind === "video"));
  $("fetched-all").textContent = "";
  if (unable.length) $("film-state").textContent = `This browser does not play ${unable.join(", ")}.`;
  if (!lanes.some((lane) => lane.count)) throw new Error("The index tells of no segments.");
  timeline.show(lanes);
  if (!able.length) throw new Error("There is no track that this browser can play.");
  player = new Player($("video"), (lane) => `files/${file.id}/tracks/${lane.id}`, report(able));
  offer(sounds);
  await player.open(able.filter((lane) => lane.kind === "video" || lane === sounds[0]));
}

async function nameLanguages(file, lanes, signal) {
  const told = await askJson(`files/${file.id}/tracks`, { signal });
  const names = new Intl.DisplayNames(["en"], { type: "language" });
  for (const lane of lanes) {
    const track = told.isobmff_tracks.find((one) => one.track_id === lane.id);
    const language = track?.probe_info?.language;
    try {
      lane.language = language && names.of(language);
    } catch {
      lane.language = language; // no code of a language
    }
  }
}

// Which sound is played, where there are several.
function offer(sounds) {
  $("sounds").hidden = sounds.length < 2;
  $("sound").replaceChildren(...sounds.map((lane) => make("option", lane.title, { value: lane.id })));
  $("sound").onchange = () => {
    player.choose(sounds[$("sound").selectedIndex]);
    $("video").muted = false;
  };
}

function card(lane) {
  const { told } = lane;
  const item = make("li", "", { className: `card ${lane.id < 0 ? "scrub" : lane.kind}` });
  const what = lane.kind === "video" ? `${told.width} × ${told.height}`
    : `${count(told.sample_rate)} Hz, ${told.channel_count} ch`;
  const length = clock(lane.end - lane.start);
  const parts = [told.codec, what, `${count(lane.count)} segments`, length, bytesText(lane.bytes)];
  item.append(make("strong", lane.title), make("span", parts.join(" · "), { className: "soft" }));
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
      complain(error, $("film-title").parentElement);
    },
  };
}

const timeline = new Timeline($("timeline"), $("bars"), $("playhead"), $("readout"),
  (time) => player?.seek(time));
for (const name of ["timeupdate", "seeking"]) {
  $("video").addEventListener(name, () => player && timeline.place($("video").currentTime));
}

// A file goes at the second click, once the first one has said so.
function doubt(sure = false) {
  $("delete").classList.toggle("sure", sure);
  $("delete").textContent = sure ? "Delete for good" : "Delete";
}

$("delete").addEventListener("click", async () => {
  if (!$("delete").classList.contains("sure")) return doubt(true);
  try {
    await ask(`files/${$("film").dataset.id}`, { method: "DELETE" });
    clean();
    closeFilm();
    await list();
  } catch (error) {
    doubt();
    complain(error, $("film-title").parentElement);
  }
});
$("delete").addEventListener("blur", () => doubt());

$("go").addEventListener("submit", (event) => {
  event.preventDefault();
  const time = secondsOf($("moment").value.trim());
  $("moment").setCustomValidity(Number.isNaN(time) ? "Seconds, or minutes:seconds" : "");
  if ($("moment").reportValidity()) player?.seek(time);
});
$("moment").addEventListener("input", () => $("moment").setCustomValidity(""));
