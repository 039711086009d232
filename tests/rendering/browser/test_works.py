"""What takes the machine's time is waited for: all that the browser can promise is in a table."""

from fractions import Fraction

import pytest

from fragdex.rendering.browser.model import PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.site import Page

VIEW = PageView(64, 64, Fraction(30))

# Operations that promise something, as the browser itself has them: called with a wrong `this`,
# they give a rejected promise, where others throw. Those that we replaced are not native.
PROMISES = """(() => {
  const found = [];
  const native = (value) => /\\[native code\\]/.test(Function.prototype.toString.call(value));
  const look = (name, object, receiver) => {
    for (const [key, { value }] of Object.entries(Object.getOwnPropertyDescriptors(object))) {
      if (typeof value !== "function" || key === "constructor" || !native(value)) continue;
      let answer;
      try { answer = value.call(receiver); } catch { continue; }
      if (!(answer instanceof Promise)) continue;
      answer.catch(() => {});
      found.push(`${name}.${key}`);
    }
  };
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    const kind = globalThis[name];
    if (typeof kind !== "function" || !/^[A-Z]/.test(name) || name === "Promise") continue;
    if (kind.prototype) look(name, kind.prototype, {});
    look(name, kind, undefined);
  }
  return found.sort();
})()"""

# What is not waited for, and why.
PAGE = "as long as the page, or who looks at it, lets it"
TIME = "the page's time"
MEDIA = "page_media plays it"
NONE = "there is none of it in a rendered page: it answers at once"
OTHERS = {
    PAGE: """AsyncDisposableStack CustomElementRegistry LockManager Observable ReadableStream
        ReadableStreamBYOBReader ReadableStreamDefaultReader WritableStream
        WritableStreamDefaultWriter FileSystemObserver Array Profiler""",
    TIME: "Scheduler Element",
    MEDIA: """AudioContext BaseAudioContext OfflineAudioContext HTMLMediaElement HTMLVideoElement
        MediaStreamTrack BrowserCaptureMediaStreamTrack ImageCapture MediaDevices MediaKeys
        MediaKeySession MediaKeySystemAccess RemotePlayback""",
    NONE: """Credential CropTarget DeviceMotionEvent DeviceOrientationEvent RestrictionTarget
        SpeechRecognition BackgroundFetchManager BackgroundFetchRegistration
        BeforeInstallPromptEvent CaptureController Clipboard ClipboardItem
        CookieStoreManager CrashReportContext CredentialsContainer DataTransferItem
        Document DocumentPictureInPicture EyeDropper GamepadHapticActuator GPU
        GPUAdapter GPUBuffer GPUDevice GPUQueue GPUShaderModule HID HIDDevice
        IdentityCredential IdleDetector Ink Keyboard LanguageDetector LanguageModel
        MIDIPort NavigationPreloadManager Navigator NavigatorLogin NavigatorManagedData
        Notification PaymentManager PaymentRequest PaymentResponse PeriodicSyncManager
        PresentationRequest PublicKeyCredential PushManager PushSubscription
        RTCRtpReceiver RTCRtpSender ScreenOrientation Serial SerialPort
        ServiceWorkerContainer ServiceWorkerRegistration Summarizer SyncManager
        Translator USB USBDevice WakeLock WakeLockSentinel WebGLRenderingContext
        WebGL2RenderingContext XRFrame XRHitTestResult XRSession XRSystem
        IdentityProvider""",
}


def test_every_promise_of_the_browser_is_waited_for_or_has_a_reason_not_to_be():
    with Stage(Page("<p>"), VIEW) as stage:
        found = stage.evaluate(PROMISES)
    assert len(found) > 100
    others = {name for names in OTHERS.values() for name in names.split()}
    assert [one for one in found if one.partition(".")[0] not in others] == []


# Each is work that is under way when it was begun, and done when it has answered.
WORK = {
    "a file": "fetch('')",
    "its bytes": "(await fetch('')).text()",
    "a bitmap": "createImageBitmap(new ImageData(9, 9))",
    "a body": "new Request('', { method: 'POST', body: 'x' }).text()",
    "a sheet": "new CSSStyleSheet().replace('p {}')",
    "a module": "WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]))",
    "a digest": "crypto.subtle.digest('SHA-256', new Uint8Array(9))",
    "a key": "crypto.subtle.generateKey({ name: 'AES-GCM', length: 128 }, true, ['encrypt'])",
    "a cache": "caches.open('a')",
    "what it has": "(await caches.open('a')).match('b')",
    "a folder": "navigator.storage.getDirectory()",
    "a file of it": "(await navigator.storage.getDirectory()).getFileHandle('a', { create: true })",
    "a database": "of(indexedDB.open('a'))",
    "an upgrade": """(async () => { const asked = indexedDB.open('b', 1);
        asked.onupgradeneeded = () => asked.result.createObjectStore('s'); return of(asked) })()""",
    "a transaction": """(async () => { const asked = indexedDB.open('c', 1);
        asked.onupgradeneeded = () => asked.result.createObjectStore('s').put(1, 2);
        const all = (await of(asked)).transaction('s').objectStore('s');
        await new Promise((done) => { all.openCursor().onsuccess = ({ target }) => {
          if (target.result) target.result.continue(); else done() } });
        await new Promise((done) => { all.transaction.oncomplete = done }) })()""",
    "a codec": "VideoEncoder.isConfigSupported({ codec: 'vp8', width: 64, height: 64 })",
    "pictures of a codec": """(async () => {
        const canvas = new OffscreenCanvas(64, 64);
        canvas.getContext('2d').fillRect(0, 0, 9, 9);
        const encoder = new VideoEncoder({ output() { window.coded = true }, error() {} });
        encoder.configure({ codec: 'vp8', width: 64, height: 64 });
        const frame = new VideoFrame(canvas, { timestamp: 0 });
        encoder.encode(frame); frame.close();
        await encoder.flush(); encoder.close(); if (!coded) throw new Error('nothing') })()""",
}


@pytest.mark.parametrize("name", WORK)
def test_work_is_known_from_its_beginning_to_its_end(name):
    html = f"""<script>
        const of = (asked) => new Promise((done, fail) => {{
          asked.onsuccess = () => done(asked.result); asked.onerror = fail;
        }});
        const told = [];
        const open = () => {{ const [begun, done] = __fragdexWorks(); told.push(begun - done) }};
        window.fragdex = {{ ready: (async () => {{
          open();
          const before = __fragdexWorks()[0], promise = {WORK[name]};
          told.push(__fragdexWorks()[0] > before);
          await promise;
          await new Promise((done) => setTimeout(done));
          open();
        }})() }};</script>"""
    with Stage(Page(html), VIEW) as stage:
        assert stage.evaluate("told") == [0, True, 0]
        assert stage.notes.console == []


LOADING = """<canvas id=c width=1280 height=720></canvas><script>
let frames = 0;
requestAnimationFrame(function each() { frames += 1; requestAnimationFrame(each) });
const coded = async () => {
  const draw = c.getContext("2d"), chunks = [], shown = [];
  let found;
  const error = (why) => console.error(String(why));
  const output = (chunk, { decoderConfig }) => { chunks.push(chunk); found ??= decoderConfig };
  const encoder = new VideoEncoder({ output, error });
  encoder.configure({ codec: "vp09.00.31.08", width: 1280, height: 720 });
  for (let i = 0; i < 30; i += 1) {
    for (let k = 0; k < 400; k += 1) {
      draw.fillStyle = `hsl(${i * k % 360} 80% 50%)`;
      draw.fillRect(k * 37 % 1280, (k * 91 + i * 9) % 720, 40, 40);
    }
    const frame = new VideoFrame(c, { timestamp: i * 33333 });
    encoder.encode(frame);
    frame.close();
  }
  await encoder.flush();
  const decoder = new VideoDecoder({ output(frame) { shown.push(frame); frame.close() }, error });
  decoder.configure(found);
  chunks.forEach((chunk) => decoder.decode(chunk));
  await decoder.flush();
  if (shown.length !== 30) throw new Error(shown.length);
};
const key = () =>
  crypto.subtle.importKey("raw", new Uint8Array(8), "PBKDF2", false, ["deriveBits"]);
const derived = async () => crypto.subtle.deriveBits(
  { name: "PBKDF2", hash: "SHA-512", salt: new Uint8Array(8), iterations: 2e6 }, await key(), 256);
window.fragdex = { ready: WAIT() };
</script>"""


@pytest.mark.parametrize("wait", ["coded", "derived"])
def test_loops_count_no_frame_while_ready_waits_for_the_machine(wait):
    """A second or more, which the machine needs; counted from time 0 on."""
    with Stage(Page(LOADING.replace("WAIT", wait)), VIEW) as stage:
        counts = [stage.evaluate("frames")]
        for i in range(3):
            stage.frame(i)
            counts.append(stage.evaluate("frames"))
        assert stage.notes.console == []
    assert counts == [0, 1, 2, 3]
