// The preview of a film: frames as they are drawn, one at a time, and its sound.
"use strict";
const part = (id) => document.getElementById(id);
const POLL_MS = 700;
let state = { version: 0, frames: 0, first: 0, fps: 30 };
let at = 0; // number of the frame that is wanted, counted from the first
let shown = -1;
let drawing = false;
let playing = false;
let audio = null;

const clock = (seconds) => {
  const rest = (seconds % 60).toFixed(3).padStart(6, "0");
  return `${Math.floor(seconds / 60)}:${rest}`;
};

const tell = () => {
  const frame = state.first + at;
  const time = clock(frame / state.fps);
  part("time").textContent = `${time} · frame ${frame}`;
  part("line").value = at;
  part("line").setAttribute("aria-valuetext", `frame ${frame}, ${time}`);
};

// Draw the wanted frame; the one wanted meanwhile comes next, so that nobody waits for old frames.
const draw = async () => {
  if (drawing || state.status !== "ready") return;
  drawing = true;
  const slow = setTimeout(() => wait("Drawing …"), 400);
  while (shown !== at && state.status === "ready") {
    const [wanted, version] = [at, state.version];
    const answer = await fetch(`frames/${state.first + wanted}.png?version=${version}`);
    if (!answer.ok) {
      if (version === state.version) await look();
      if (version === state.version && state.status === "ready") fail(await answer.text());
      break;
    }
    const url = URL.createObjectURL(await answer.blob());
    const image = part("frame");
    image.src = url;
    await image.decode().catch(() => {});
    URL.revokeObjectURL(url);
    image.hidden = false;
    image.alt = `Frame ${state.first + wanted} of ${state.name}`;
    if (version === state.version) shown = wanted;
  }
  clearTimeout(slow);
  wait("");
  drawing = false;
};

const wait = (text) => {
  if (part("wait").textContent !== text) part("wait").textContent = text;
  part("wait").hidden = !text;
};

const fail = (text) => {
  if (part("error").textContent !== (text ?? "")) part("error").textContent = text ?? "";
  part("error").hidden = !text;
};

const go = (frame) => {
  at = Math.max(0, Math.min(state.frames - 1, Math.round(frame)));
  tell();
  draw();
};

// What is heard leads; without sound the wall clock does. Frames that take too long are left out.
const play = () => {
  if (at >= state.frames - 1) go(0);
  playing = true;
  const [began, from] = [performance.now(), at];
  const sound = audio && part("heard").checked ? audio : null;
  if (sound) {
    sound.currentTime = from / state.fps;
    sound.play().catch(() => {});
  }
  const step = async () => {
    if (!playing) return;
    const seconds = sound && !sound.ended && !sound.paused
      ? sound.currentTime : from / state.fps + (performance.now() - began) / 1000;
    go(seconds * state.fps);
    if (at >= state.frames - 1) pause();
    else setTimeout(() => requestAnimationFrame(step), 500 / state.fps);
  };
  step();
  label();
};

const pause = () => {
  playing = false;
  audio?.pause();
  label();
};

const label = () => {
  part("play").textContent = playing ? "Pause" : "Play";
};

const jump = (frame) => {
  pause();
  go(frame);
};

const listen = async () => {
  const texts = { loading: " (being made)", none: " (none)", failed: " (failed)", ready: "" };
  part("sound-state").textContent = texts[state.sound];
  part("heard").disabled = state.sound !== "ready";
  if (state.sound !== "ready" || audio) return;
  const { version } = state;
  const answer = await fetch("sound.wav");
  const url = URL.createObjectURL(await answer.blob());
  if (version === state.version) audio = new Audio(url);
};

const look = async () => {
  let next;
  try {
    next = await (await fetch("state")).json();
  } catch {
    fail("The preview has ended; start it again with fragdex render --preview.");
    return;
  }
  const isNew = next.version !== state.version;
  const wasReady = state.status === "ready" && !isNew;
  state = next;
  if (isNew) {
    shown = -1;
    pause();
    audio = null;
  }
  document.title = `${state.name} – preview`;
  part("name").textContent = state.name;
  const seconds = (state.frames / state.fps).toFixed(3);
  const length = state.endless ? `the first ${seconds} s of a page that does not say how long it lasts` : `${seconds} s`;
  const is = state.frames ? `${state.width}×${state.height}, ${length}, ${state.frames} frames, ${+state.fps.toFixed(3)} a second` : "";
  part("facts").textContent = is;
  fail(state.error);
  if (state.status === "loading") wait("Loading the page …");
  if (state.status === "failed") wait("");
  const isReady = state.status === "ready";
  for (const id of ["first", "back", "play", "on", "last", "line"]) part(id).disabled = !isReady;
  part("line").max = Math.max(0, state.frames - 1);
  const notes = state.notes.map(({ kind, text }) => {
    const [line, what] = [document.createElement("li"), document.createElement("b")];
    what.textContent = kind;
    line.append(what, text);
    return line;
  });
  if (!notes.length) {
    const none = document.createElement("li");
    none.textContent = "None so far.";
    notes.push(none);
  }
  const told = JSON.stringify(state.notes);
  if (part("notes").dataset.told !== told) {
    part("notes").replaceChildren(...notes);
    part("notes").dataset.told = told;
  }
  if (isReady && !wasReady) go(at);
  listen();
};

part("play").onclick = () => (playing ? pause() : play());
part("first").onclick = () => jump(0);
part("last").onclick = () => jump(state.frames - 1);
part("back").onclick = () => jump(at - 1);
part("on").onclick = () => jump(at + 1);
part("line").oninput = () => jump(Number(part("line").value));
part("heard").onchange = () => {
  if (playing) {
    pause();
    play();
  }
};
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || state.status !== "ready") return;
  const onButton = event.target.closest?.("button, input[type=checkbox]");
  const step = event.shiftKey ? Math.round(state.fps) : 1;
  const keys = {
    ArrowLeft: () => jump(at - step),
    ArrowRight: () => jump(at + step),
    Home: () => jump(0),
    End: () => jump(state.frames - 1),
    ...(onButton ? {} : { " ": () => (playing ? pause() : play()) }),
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

const poll = async () => {
  await look();
  setTimeout(poll, state.status === "loading" ? POLL_MS / 4 : POLL_MS);
};
poll();
