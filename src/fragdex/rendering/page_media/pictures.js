// The pictures of video elements: on the page, where each is the poster of its element, and in
// canvases and textures, where the page reads them at the moment it wants them.
(() => {
  "use strict";
  const room = window[Symbol.for("fragdex.media")];
  const key = (player) => `${player.source}@${player.position()}`;
  const shows = (player) => player.video && player.readyState >= 2 && Boolean(player.facts?.video)
    && !(player.showPoster && player.userPoster !== null);
  const visible = (element) => element.isConnected
    && element.checkVisibility({ opacityProperty: true, visibilityProperty: true });

  // -- on the page

  const stale = () => room.players.filter((player) =>
    shows(player) && player.drawn !== key(player) && visible(player.element));
  // Without a picture it holds the right one already.
  const drawn = (player, { name, picture }, at) => {
    player.drawn = at;
    if (!picture || !shows(player)) return;
    player.show(picture);
    player.held = name;
  };
  const question = (player) => ({
    id: player.id, source: player.source, time: player.position(), held: player.held,
  });
  room.videos = () => room.players.some((player) => player.facts?.video);
  // What has to be drawn now, and whose next frame the page waits for.
  room.wanted = (drawing) => {
    const found = new Map();
    const ask = (player, how) => {
      found.set(player, { ...(found.get(player) ?? question(player)), ...how });
    };
    if (drawing) for (const player of stale()) ask(player, { draw: true });
    for (const player of room.players) {
      if (player.callbacks.size && shows(player)) ask(player, { present: true });
    }
    looked = !drawing;
    return [...found.values()];
  };
  room.draw = (pictures) => {
    for (const { id, presented, ...told } of pictures) {
      const player = room.players[id];
      if (told.name !== undefined) drawn(player, told, key(player));
      if (presented !== undefined && presented !== player.presented) present(player, presented);
    }
  };
  // What the page changes while the frame is made: it is drawn again with the pictures of that.
  let looked = false;
  room.look = () => {
    if (looked || !room.begun() || !room.videos()) return;
    for (const player of stale()) {
      room.loads();
      const at = key(player);
      const told = room.ask("picture", question(player));
      if (told !== null) drawn(player, JSON.parse(told), at);
      room.loaded();
    }
  };
  const present = (player, mediaTime) => {
    player.presented = mediaTime;
    player.shown += 1;
    const calls = [...player.callbacks.values()];
    player.callbacks.clear();
    const { width, height } = player.facts.video;
    const time = performance.now();
    for (const call of calls) {
      try {
        call(time, {
          presentationTime: time, expectedDisplayTime: time, width, height, mediaTime,
          presentedFrames: player.shown, processingDuration: 0,
        });
      } catch (error) {
        reportError(error);
      }
    }
  };

  // -- in canvases

  const sheets = new WeakMap();
  // A canvas that holds the picture an element shows now; null where it shows none.
  const sheetOf = (element) => {
    const player = room.adopt(element);
    if (!player.video || player.readyState < 2 || !player.facts.video) return null;
    let sheet = sheets.get(element);
    if (sheet === undefined) {
      sheet = { canvas: document.createElement("canvas"), holds: "" };
      sheets.set(element, sheet);
    }
    const at = key(player);
    if (sheet.holds === at) return sheet.canvas;
    const answer = room.ask("pixels", { ...question(player), held: sheet.frame });
    if (answer === null) return sheet.holds === "" ? null : sheet.canvas;
    sheet.holds = at;
    const { frame: number, pixels, ...form } = JSON.parse(answer);
    if (number === sheet.frame) return sheet.canvas;
    sheet.frame = number;
    const { width, height } = player.facts.video;
    if (sheet.canvas.width !== width || sheet.canvas.height !== height) {
      [sheet.canvas.width, sheet.canvas.height] = [width, height];
    }
    const picture = new NativeFrame(Uint8Array.fromBase64(pixels), { ...form, timestamp: 0 });
    const context = sheet.canvas.getContext("2d", { willReadFrequently: false });
    context.clearRect(0, 0, width, height);
    draw.call(context, picture, 0, 0, width, height);
    picture.close();
    return sheet.canvas;
  };
  const NativeFrame = window.VideoFrame;
  const draw = CanvasRenderingContext2D.prototype.drawImage;
  const isVideo = (thing) => thing instanceof HTMLVideoElement;

  // A video that has no picture yet draws nothing, as in the browser.
  const replaced = (proto, name, otherwise) => {
    const native = proto?.[name];
    if (!native) return;
    proto[name] = function (...given) {
      const place = given.findIndex(isVideo);
      if (place < 0) return native.apply(this, given);
      const canvas = sheetOf(given[place]);
      if (canvas === null) return otherwise;
      given[place] = canvas;
      return native.apply(this, given);
    };
  };
  for (const context of [window.CanvasRenderingContext2D, window.OffscreenCanvasRenderingContext2D]) {
    replaced(context?.prototype, "drawImage", undefined);
    replaced(context?.prototype, "createPattern", null);
  }
  for (const context of [window.WebGLRenderingContext, window.WebGL2RenderingContext]) {
    for (const name of ["texImage2D", "texSubImage2D", "texImage3D", "texSubImage3D"]) {
      replaced(context?.prototype, name, undefined);
    }
  }
  const bitmap = window.createImageBitmap;
  window.createImageBitmap = function (image, ...rest) {
    if (!isVideo(image)) return bitmap.call(window, image, ...rest);
    const canvas = sheetOf(image);
    if (canvas === null) {
      return Promise.reject(new DOMException("the video has no picture yet", "InvalidStateError"));
    }
    return bitmap.call(window, canvas, ...rest);
  };
  if (NativeFrame) {
    window.VideoFrame = class VideoFrame extends NativeFrame {
      constructor(image, init) {
        if (!isVideo(image)) return new NativeFrame(image, init);
        const canvas = sheetOf(image);
        if (canvas === null) throw new DOMException("the video has no picture yet", "InvalidStateError");
        const timestamp = Math.round(image.currentTime * 1e6);
        return new NativeFrame(canvas, { timestamp, ...init });
      }

      static [Symbol.hasInstance](thing) {
        return thing instanceof NativeFrame;
      }
    };
  }
})
