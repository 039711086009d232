// A video's page: its state while it is made playable, then its player and what belongs to it.

import { askJson, line, send, signed } from "./api.js";
import { complain, empty, h, pause, renaming, twice } from "./dom.js";
import { controls } from "./controls.js";
import { follow } from "./events.js";
import { fileLinks } from "./file_link.js";
import { secondsOf, sizeText, when } from "./format.js";
import { indexTab } from "./index_tab.js";
import { Lane, Player } from "./player.js";
import { reasonOf, repair } from "./repair.js";
import { deleteShown, go, note, title } from "./router.js";
import { clipTab, linksTab } from "./share.js";
import { storyboard } from "./storyboard.js";
import { tabs } from "./tabs.js";
import { transcript } from "./transcript.js";
import { recordOf } from "./upload.js";
import { download } from "./transcriptions.js";
import { captionsGoTo, stemOf } from "./uploads.js";
import { waveform } from "./waveform.js";

const SCRUB = -1;

export async function show(view, { id, query, signal }) {
  const place = `files/${encodeURIComponent(id)}`;
  let file = await recordOf(id, { signal });
  if (file.type !== "video") {
    await go(`${file.type}s`, { replace: true });
    return;
  }
  title(file.filename);
  captionsGoTo(file, signal);
  const state = h("p#film-state.soft", { role: "status" });
  const bar = h("progress#film-progress", { max: 1, value: 0, "aria-label": "Processing", hidden: true });
  const remove = twice("Delete", "Delete for good", () => deleteShown(place, "files"));
  const save = download(`${place}/faststart.mp4`, "Download", `${stemOf(file.filename)}.mp4`, "quiet");
  save.hidden = true;
  const name = h("h1#film-title", {}, file.filename);
  const rename = renaming(file.filename, name, async (filename) => {
    await send("PATCH", place, { filename });
    await go(location.href, { replace: true });
  });
  const film = h("section#film", { "aria-labelledby": "film-title", "data-id": id, "data-state": "opening" });
  const facts = [sizeText(file), when(file.created_at)];
  film.append(h("div.heading", {}, h("a.up", { href: "files" }, "Library"),
    name, h("span.soft", {}, facts.filter(Boolean).join(" · ")), h("span.gap"), h("div.actions", {}, save, rename, remove)),
  state, bar);
  if (file.isobmff_file_id && file.isobmff_file_id !== file.id) {
    film.append(h("p.soft.note", {}, "The same bytes as ", fileLinks(signal)(file.isobmff_file_id), ", which both play."));
  }
  view.append(film);
  try {
    if (file.status === "processing") {
      file = await processed(file, place, { state, bar }, signal);
    }
    if (file.status === "failed") {
      film.append(await repair(file, signal));
      throw new Error(reasonOf(file.problem) || "The file cannot be used.");
    }
    save.hidden = file.status !== "ready";
    if (file.status === "ready") await open(film, file, place, query, state, signal);
    else {
      film.append(empty("film", "Incomplete", "Bytes of this file are missing. Drop it again to resume its upload."));
      comes(file, signal);
    }
  } catch (error) {
    film.dataset.state = "failed";
    throw error;
  }
}

// Somebody else may be sending it.
async function comes(file, signal) {
  for (;;) {
    await pause(3000, signal);
    if (signal.aborted) return;
    const { status } = await recordOf(file.id, { signal }).catch(() => file);
    if (status !== file.status && !signal.aborted) {
      await go(location.href, { replace: true });
      return;
    }
  }
}

async function processed(file, place, { state, bar }, signal) {
  bar.hidden = false;
  const told = (part) => {
    bar.value = part;
    state.textContent = `Processing: ${Math.round(part * 100)} %.`;
  };
  told(0);
  try {
    await follow(`${place}/progress`, (name, data) => name === "progress" && told(data.progress), signal);
  } finally {
    bar.hidden = true;
    state.textContent = "";
  }
  return recordOf(file.id, { signal });
}

async function open(film, file, place, query, state, signal) {
  const index = await askJson(`${place}/index`, { headers: { Accept: "application/json" }, signal });
  const order = (lane) => (lane.id === SCRUB ? 1e12 : lane.kind === "video" ? 0 : 1e9) + lane.id;
  const lanes = Object.entries(index).map(([id, told]) => new Lane(id, told))
    .sort((one, other) => order(one) - order(other));
  const full = lanes.filter((lane) => lane.id >= 0 && lane.count);
  const picture = full.find((lane) => lane.kind === "video");
  const played = full.filter((lane) => lane.kind === "audio" || lane === picture);
  const able = "MediaSource" in window ? played.filter((lane) => MediaSource.isTypeSupported(lane.mime)) : [];
  const unable = played.filter((lane) => !able.includes(lane)).map((lane) => lane.mime);
  const sounds = able.filter((lane) => lane.kind === "audio");
  if (sounds.length > 1) await nameLanguages(place, sounds, signal);

  const video = h("video#video", { playsInline: true, preload: "auto", "aria-label": file.filename });
  const screen = h("div#screen", {}, video);
  screen.classList.toggle("sound", !picture);
  if (picture) screen.style.setProperty("--shape", `${picture.told.width} / ${picture.told.height}`);
  const stored = { player: null };
  const seek = (time) => (stored.player ? stored.player.seek(time) : (video.currentTime = time));
  const does = {
    seek,
    step: (by) => (stored.player ? stored.player.step(by) : roughly(video, by, picture)),
    captions: () => said.turn(),
    mark: (which) => {
      below.choose("clip");
      clip.mark(which);
    },
  };
  const tools = controls(video, screen, does, signal);
  const at = indexTab(video, seek, signal);
  const range = h("div.range", { "aria-hidden": "true", hidden: true });
  const clip = clipTab(video, file, place, range, signal);
  const below = tabs("About this video", [["clip", "Clip", clip.element],
    ["links", "Links", linksTab(video, file, place).element], ["index", "Index", at.element]]);
  const said = transcript(video, file, { select: tools.captions, seek, sounds: sounds.length > 0 }, signal);
  const bar = h("div.line", {}, range, tools.line, picture && storyboard(tools.line, video, place, signal));
  film.append(h("div.beside", {}, h("div", {}, h("div.stage", {}, screen, bar, tools.bar, tools.help), below.element),
    said.element));
  said.refresh().catch(complain);
  // sound that is not decoded here is played all the same
  if (!picture && sounds.length) waveform(screen, place, sounds[0], signal).catch(() => {});
  if (!lanes.some((lane) => lane.count)) throw new Error("The index has no segments.");
  at.show(lanes);
  keepMoment(video, signal);

  const start = Number.isNaN(secondsOf(query.get("t") ?? "")) ? 0 : secondsOf(query.get("t"));
  if (!able.length) {
    await natively(film, video, place, start, signal);
    return;
  }
  if (unable.length) state.textContent = `This browser does not play ${unable.join(", ")}.`;
  const tell = at.report(able, (word) => { film.dataset.state = word; });
  tell.failed = (error) => {
    film.dataset.state = "failed";
    complain(error);
    // it continues as soon as the service answers
    if (error.status === 0) line.addEventListener("answered", () => player.load(video.currentTime), { once: true, signal });
  };
  const player = new Player(video, (lane) => `${place}/tracks/${lane.id}`, tell);
  stored.player = player;
  signal.addEventListener("abort", () => player.close());
  offer(tools.sound, sounds, player, video);
  await player.open(able.filter((lane) => lane.kind === "video" || lane === sounds[0]), start);
}

// Where a browser has no Media Source Extensions, or none for this codec, the stored file itself.
async function natively(film, video, place, start, signal) {
  video.src = await signed(`${place}/fragmented.mp4`, place);
  signal.addEventListener("abort", () => {
    video.removeAttribute("src");
    video.load();
  });
  video.addEventListener("error", () => {
    film.dataset.state = "failed";
    if (!signal.aborted) complain(new Error("There is no track that this browser can play."));
  }, { signal });
  video.addEventListener("loadeddata", () => {
    film.dataset.state = "ready";
    if (start) video.currentTime = start;
  }, { signal, once: true });
}

function roughly(video, by, picture) {
  if (!picture) return;
  const { told } = picture;
  video.pause();
  video.currentTime += by * told.duration / told.timescale / Math.max(told.sample_count, 1);
}

async function nameLanguages(place, lanes, signal) {
  const told = await askJson(`${place}/tracks`, { signal });
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
function offer(select, sounds, player, video) {
  select.hidden = sounds.length < 2;
  select.replaceChildren(...sounds.map((lane) => h("option", { value: lane.id }, lane.title)));
  select.onchange = () => {
    player.choose(sounds[select.selectedIndex]);
    video.muted = false;
  };
}

// The address tells the moment that is shown, once it stands.
function keepMoment(video, signal) {
  let timer;
  const soon = () => {
    clearTimeout(timer);
    if (!video.paused) return;
    timer = setTimeout(() => {
      const time = video.currentTime;
      if (!signal.aborted) note({ t: time ? String(Math.round(time * 1000) / 1000) : "" });
    }, 400);
  };
  for (const name of ["seeked", "pause"]) video.addEventListener(name, soon, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
}
