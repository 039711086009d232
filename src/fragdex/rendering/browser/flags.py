"""How a Chromium is started, and why each flag is there."""

from __future__ import annotations

from typing import Final

from fragdex.rendering.browser.timing import View

__all__ = ["flags"]

# The same pixels on every machine and every run.
_SAME_PIXELS: Final = (
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--disable-lcd-text",
    "--hide-scrollbars",
    "--lang=en-US",
)
# Frames on request; deterministic-mode also keeps images from being decoded behind the frame's
# back, and animations from running on a thread of their own.
_FRAMES_ON_REQUEST: Final = (
    "--enable-begin-frame-control",
    "--run-all-compositor-stages-before-draw",
    "--deterministic-mode",
)
# Software alone: composited by the CPU, WebGL by SwiftShader. A process for the GPU would be one
# more to pass each picture through.
_SOFTWARE: Final = (
    "--in-process-gpu",
    "--disable-gpu-compositing",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
# Frames of other origins stay in the page's own process: its clock and its walls hold for them.
# No translation, no dialogs of passwords, no prefetching.
_FEATURES_OFF: Final = (
    "IsolateOrigins,site-per-process,IsolateSandboxedIframes,Translate,AutofillServerCommunication,"
    "MediaRouter,OptimizationHints,PaintHolding,BackForwardCache,InterestFeedContentSuggestions,"
    "SpareRendererForSitePerProcess,NetworkTimeServiceQuerying,WebBluetooth,DialMediaRouteProvider"
)
_QUIET: Final = (
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--disable-site-isolation-trials",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-hang-monitor",
    "--disable-ipc-flooding-protection",
    "--disable-back-forward-cache",
    "--metrics-recording-only",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
    "--password-store=basic",
    "--use-mock-keychain",
    "--log-level=3",
    f"--disable-features={_FEATURES_OFF}",
)
# The first wall: no name resolves, and all that would go out goes to a proxy that is not there,
# loopback too. Found by trying: without these `window.open` reached a server on loopback.
_NO_NETWORK: Final = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:1",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--disable-quic",
    "--block-new-web-contents",
)
_SCRIPT_MEGABYTES: Final = 512
_LEAST_WINDOW: Final = (800, 600)


def flags(view: View, *, is_shell: bool, begin_frames: bool, sandbox: bool) -> list[str]:
    """All flags but those that name files."""
    width, height = view.pixels
    if not begin_frames:
        # A window has a frame there; one whose page has no height is never drawn. The page's own
        # size is set apart from it.
        width, height = max(width, _LEAST_WINDOW[0]), max(height, _LEAST_WINDOW[1])
    return [
        *(() if is_shell else ("--headless=new",)),
        *(() if sandbox else ("--no-sandbox", "--no-zygote")),
        *_SAME_PIXELS,
        f"--force-device-scale-factor={view.scale:g}",
        *(_FRAMES_ON_REQUEST if begin_frames else ()),
        *_SOFTWARE,
        *_QUIET,
        *_NO_NETWORK,
        f"--js-flags=--random-seed=42 --max-old-space-size={_SCRIPT_MEGABYTES}",
        f"--window-size={width},{height}",
    ]
