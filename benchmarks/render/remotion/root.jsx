// The pages of ../pages as Remotion wants them: everything computed from the number of the frame.
import React, { useLayoutEffect, useRef } from "react";
import { Composition, registerRoot, useCurrentFrame, useVideoConfig } from "remotion";

const useSeconds = () => useCurrentFrame() / useVideoConfig().fps;
const sans = '"DejaVu Sans", sans-serif';

// cubic-bezier(0, 0, .58, 1) and (.42, 0, .58, 1), as browsers ease
function bezier(x1, y1, x2, y2) {
  const at = (t, a, b) => 3 * (1 - t) * (1 - t) * t * a + 3 * (1 - t) * t * t * b + t * t * t;
  return (x) => {
    let [low, high] = [0, 1];
    for (let i = 0; i < 24; i++) {
      const middle = (low + high) / 2;
      if (at(middle, x1, x2) < x) low = middle;
      else high = middle;
    }
    return at(low, y1, y2);
  };
}
const easeOut = bezier(0, 0, 0.58, 1);
const easeInOut = bezier(0.42, 0, 0.58, 1);

function Simple() {
  const frame = useCurrentFrame();
  const seconds = useSeconds();
  const canvas = useRef(null);
  useLayoutEffect(() => {
    const pen = canvas.current.getContext("2d");
    pen.clearRect(0, 0, 480, 420);
    for (let bar = 0; bar < 12; bar++) {
      const height = 200 + 150 * Math.sin(seconds * 1.7 + bar * 0.6);
      pen.fillStyle = `hsl(${bar * 24 + 180} 45% 45%)`;
      pen.fillRect(bar * 40, 410 - height, 28, height);
    }
    pen.strokeStyle = "#1d2433";
    pen.lineWidth = 3;
    pen.beginPath();
    for (let x = 0; x <= 480; x += 6) pen.lineTo(x, 120 + 60 * Math.cos(x / 50 - seconds * 3));
    pen.stroke();
  }, [seconds]);
  const slid = easeOut(Math.min(1, seconds / 1.2));
  const bounce = (seconds % 1.6) / 1.6;
  const up = -90 * (bounce < 0.5 ? easeInOut(bounce * 2) : 1 - easeInOut(bounce * 2 - 1));
  const placed = { position: "absolute" };
  const word = { display: "inline", margin: "0 20px 0 0" };
  return (
    <div style={{ width: 1280, height: 720, overflow: "hidden", background: "#f4f1ea", color: "#1d2433", fontFamily: sans }}>
      <h1 style={{ ...placed, left: 80, top: 60, margin: 0, fontSize: 56, opacity: slid, transform: `translateX(${-300 * (1 - slid)}px)` }}>Quarterly figures</h1>
      <div style={{ ...placed, left: 90, top: 260, width: 120, height: 120, background: "#c8553d", transform: `rotate(${(seconds % 3) * 120}deg)` }} />
      <div style={{ ...placed, left: 300, top: 260, width: 120, height: 120, borderRadius: "50%", background: "#2f6f73", transform: `translateY(${up}px)` }} />
      <div style={{ ...placed, left: 80, top: 640, width: (seconds * 112) % 1120, height: 12, background: "#e0a030" }} />
      <dl style={{ ...placed, left: 80, top: 440, margin: 0, font: '28px/1.5 "DejaVu Sans Mono", monospace' }}>
        <dt style={word}>frame</dt> <dd style={word}>{frame + 1}</dd>
        <dt style={word}>tick</dt> <dd style={word}>{Math.floor(seconds * 10)}</dd>
        <dt style={word}>time</dt> <dd style={word}>{seconds.toFixed(2)}</dd>
      </dl>
      <canvas ref={canvas} width="480" height="420" style={{ ...placed, left: 700, top: 180 }} />
    </div>
  );
}

let state = 20240229;
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
const glows = Array.from({ length: 100 }, () => ({
  left: random() * 1200, top: random() * 660, hue: 150 + random() * 150, delay: random() * 4,
}));
const particles = Array.from({ length: 1500 }, () => ({
  x: random() * 1280, y: random() * 720, vx: random() * 80 - 40, vy: random() * 80 - 40, r: 1 + random() * 3,
}));
const wrap = (value, limit) => ((value % limit) + limit) % limit;

function Heavy() {
  const seconds = useSeconds();
  const canvas = useRef(null);
  useLayoutEffect(() => {
    const pen = canvas.current.getContext("2d");
    pen.clearRect(0, 0, 1280, 720);
    for (const dot of particles) {
      pen.fillStyle = `rgb(255 255 255 / ${0.3 + dot.r / 6})`;
      pen.beginPath();
      pen.arc(wrap(dot.x + dot.vx * seconds, 1280), wrap(dot.y + dot.vy * seconds, 720), dot.r, 0, 7);
      pen.fill();
    }
  }, [seconds]);
  return (
    <div style={{ width: 1280, height: 720, overflow: "hidden", background: "#0b1020" }}>
      <canvas ref={canvas} width="1280" height="720" style={{ position: "absolute", inset: 0 }} />
      {glows.map((glow, number) => {
        const turn = ((seconds + glow.delay) / 4) % 2;
        const part = easeInOut(turn < 1 ? turn : 2 - turn);
        const colour = `hsl(${glow.hue} 80% 60%)`;
        return (
          <div key={number} style={{
            position: "absolute", width: 60, height: 60, borderRadius: "50%", left: glow.left, top: glow.top,
            boxShadow: `0 0 40px 12px ${colour}`, background: colour, opacity: 0.7,
            transform: `translate(${120 * part}px, ${-80 * part}px) scale(${1 + 0.4 * part})`,
          }} />
        );
      })}
      <div style={{
        position: "absolute", left: 320, top: 200, width: 640, height: 320, borderRadius: 24, background: "#ffffff22",
        backdropFilter: "blur(18px)", color: "white", display: "grid", placeItems: "center", font: `64px ${sans}`,
      }}>Northern lights</div>
    </div>
  );
}

const colours = ["#24435c", "#5c2e24", "#2d5c24", "#54245c", "#5c5124"];

function Slides() {
  const number = Math.floor(useSeconds());
  return (
    <div style={{ width: 1280, height: 720, overflow: "hidden", fontFamily: sans, color: "white" }}>
      <section style={{ position: "absolute", inset: 0, padding: "90px 110px", boxSizing: "border-box", background: colours[number % 5] }}>
        <h1 style={{ fontSize: 68, margin: "0 0 40px" }}>Slide {number + 1}</h1>
        <ul>
          {"first second third fourth fifth".split(" ").map((word, at) => (
            <li key={word} style={{ fontSize: 34, lineHeight: 1.8 }}>{`The ${word} point, worth ${(number + 1) * (at + 3)} percent`}</li>
          ))}
        </ul>
      </section>
    </div>
  );
}

const film = { durationInFrames: 300, fps: 30, width: 1280, height: 720 };
registerRoot(() => (
  <>
    <Composition id="simple" component={Simple} {...film} />
    <Composition id="heavy" component={Heavy} {...film} />
    <Composition id="slides" component={Slides} {...film} />
  </>
));
