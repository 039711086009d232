// What the tests ask of a page with one player: start, seek, play, and what was put where.

const wrong = [];
const appended = [];
let video, player;

const appendBuffer = SourceBuffer.prototype.appendBuffer;
SourceBuffer.prototype.appendBuffer = function (data) {
  this.name ??= `buffer ${(SourceBuffer.made = (SourceBuffer.made ?? 0) + 1)}`;
  const bytes = new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0, data.byteLength);
  appended.push({ buffer: this.name, offset: this.timestampOffset, bytes: bytes.slice() });
  this.addEventListener("error", () => wrong.push("a source buffer refused what was appended"));
  return appendBuffer.call(this, data);
};

const PLAYERS = {
  "hls.js": async (address) => {
    player = new Hls();
    player.on(Hls.Events.ERROR, (_, told) => {
      // it stops at what is fatal; all else it says of its own way over gaps and aborted requests
      if (told.fatal) wrong.push(`${told.details}: ${told.error}`);
    });
    player.loadSource(address);
    player.attachMedia(video);
  },
  shaka: async (address) => {
    shaka.polyfill.installAll();
    player = new shaka.Player();
    player.addEventListener("error", (event) => wrong.push(`${event.detail}`));
    await player.attach(video);
    player.configure({ drm: { clearKeys } });
    await player.load(address);
  },
  "dash.js": async (address) => {
    player = dashjs.MediaPlayer().create();
    player.updateSettings({ debug: { logLevel: dashjs.Debug.LOG_LEVEL_NONE } });
    player.on(dashjs.MediaPlayer.events.ERROR, (event) => wrong.push(event.error.message));
    player.initialize(video, address, false);
  },
  "video.js": async (address) => {
    player = videojs(video);
    player.on("error", () => wrong.push(player.error().message));
    player.src({ src: address, type: "application/vnd.apple.mpegurl" });
  },
};

// A state counts, also one that a browser comes to without telling so: dash.js was at the end of a
// film at times, and nobody had been told.
const until = (event, ready) =>
  new Promise((resolve) => {
    const look = () => {
      if (!ready()) return;
      clearInterval(looking);
      video.removeEventListener(event, look);
      resolve();
    };
    const looking = setInterval(look, 250);
    video.addEventListener(event, look);
    look();
  });

// Keys, in hexadecimal digits, of what Shaka will load.
let clearKeys = {};

const decrypt = async (kid, key) => (clearKeys = { [kid]: key });

async function start(name, address) {
  video = document.querySelector("video");
  video.muted = true;
  video.addEventListener("error", () => wrong.push(video.error.message));
  await PLAYERS[name](address);
  await until("loadedmetadata", () => video.readyState >= 1);
}

async function seek(time) {
  for (let left = 5; ; left--) {
    const shown = new Promise((resolve) =>
      video.requestVideoFrameCallback((_, { mediaTime }) => resolve(mediaTime)),
    );
    video.currentTime = time;
    await until("seeked", () => !video.seeking);
    await until("canplay", () => video.readyState >= 2);
    // a player that fills its buffer anew meanwhile may leave a later picture, whose time says so
    if ((await shown) <= time || !left) return number();
  }
}

// Of pictures that were seen: the time that the browser says, and the number.
async function play(rate) {
  const seen = [];
  const note = (_, { mediaTime }) => {
    seen.push([mediaTime, number()]);
    video.requestVideoFrameCallback(note);
  };
  video.requestVideoFrameCallback(note);
  video.playbackRate = rate;
  // that it ended counts also where a player has changed the duration by then, as dash.js may
  const told = new Promise((resolve) => video.addEventListener("ended", resolve, { once: true }));
  const over = Promise.race([until("ended", () => video.ended), told]);
  // dash.js pauses and plays to break what it takes for a stall; on a slow machine it stayed paused
  video.addEventListener("pause", () => video.ended || video.play().catch(() => {}));
  // on a slow machine a film that plays already may be over
  if (!video.ended) await Promise.race([video.play(), over]);
  await over;
  return [seen, ranges()];
}

const pen = new OffscreenCanvas(320, 120).getContext("2d", { willReadFrequently: true });

function number() {
  pen.drawImage(video, 0, 0, 320, 180);
  const { data } = pen.getImageData(0, 0, 320, 120);
  let found = 0;
  for (let n = 0; n < 10; n++) {
    const [bit, other] = [30, 90].map((y) => data[4 * (y * 320 + n * 32 + 16) + 1] > 127);
    if (bit === other) return `not readable at block ${n}`;
    found = found * 2 + bit;
  }
  return found;
}

const PATIENCE = 90000;

// A function of these, or an error that says how far the player came.
const patient = (name, given) =>
  Promise.race([
    { start, seek, play, captions, speak, decrypt }[name](...given),
    new Promise((_, reject) =>
      setTimeout(() => {
        const { appended, ...rest } = state();
        reject(new Error(`${name} hangs: ${JSON.stringify(rest)}`));
      }, PATIENCE),
    ),
  ]);

const text = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));

function ranges() {
  const { buffered } = video;
  return Array.from({ length: buffered.length }, (_, n) => [buffered.start(n), buffered.end(n)]);
}

const state = () => ({
  wrong,
  ranges: ranges(),
  time: video.currentTime,
  duration: video.duration,
  ended: video.ended,
  paused: video.paused,
  ready: video.readyState,
  appended: appended.map((one) => ({ ...one, bytes: text(one.bytes) })),
});

// Chooses the first subtitles; the cues that the browser has then.
const CAPTIONS = {
  "hls.js": () => (player.subtitleTrack = 0),
  // On a busy machine it has at times fetched all of the text and shows none of it, ever: it loads
  // the film again.
  shaka: async () => {
    if (player.getTextTracks().some((one) => one.active)) await player.load(player.getAssetUri());
    player.selectTextTrack(player.getTextTracks()[0]);
    video.playbackRate = 0.25;
    await video.play();
  },
  "dash.js": () => player.setTextTrack(0),
};

async function captions(name, count) {
  // slowly: at the end of the film Shaka fetches no more text
  video.playbackRate = 0.25;
  // dash.js knows its text once it plays
  await video.play();
  const cues = () => Array.from(video.textTracks).flatMap((one) => Array.from(one.cues ?? []));
  // A player may know its text later than its pictures, and Shaka at times never until it seeks.
  // Each time it is asked again it begins its fetches anew, so it is given twice as long each time.
  for (let turn = 1, again = 10; cues().length < count; turn++) {
    if (turn === again && video.textTracks.length) {
      await CAPTIONS[name]?.();
      again *= 2;
    }
    if (turn % 160 === 0) {
      video.currentTime = 0;
      // on a slow machine the film has ended by now, which pauses it
      await video.play();
    }
    await new Promise((go) => setTimeout(go, 50));
  }
  return cues().map((one) => [one.startTime, one.endTime, one.text]);
}

// Has the sound in a language from here on.
const LANGUAGES = {
  "hls.js": (language) => {
    player.audioTrack = player.audioTracks.findIndex((one) => one.lang.startsWith(language));
  },
  shaka: (language) => {
    const tracks = player.getAudioTracks();
    player.selectAudioTrack(tracks.find((one) => one.language.startsWith(language)));
  },
  "dash.js": (language) => {
    const tracks = player.getTracksFor("audio");
    player.setCurrentTrack(tracks.find((one) => one.lang.startsWith(language)));
  },
};

// Has the sound in another language than `before`, until its last segment is here.
// Slowly, and half of the film: one that is over before the other sound has come does not end in
// every player.
async function speak(name, language, before, last) {
  video.ontimeupdate = () => {
    if (video.currentTime > 1.2) video.pause();
  };
  video.playbackRate = 0.1;
  const has = () =>
    performance.getEntriesByType("resource").some((one) => one.name.endsWith(last));
  // On a busy machine dash.js has at times forgotten a choice, for ever: it is made again, and each
  // time waited for twice as long.
  for (let turn = 0, again = 0; !has(); turn++) {
    if (turn === again) {
      if (turn) LANGUAGES[name](before);
      LANGUAGES[name](language);
      // asked for, but not waited for: a player that fetches may hold it back
      video.play().catch(() => {});
      again = 2 * again + 200;
    }
    await new Promise((go) => setTimeout(go, 50));
  }
  video.ontimeupdate = null;
}
