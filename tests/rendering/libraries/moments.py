"""What lanes show at known times, and which frames of a film show something else."""

from fractions import Fraction

import av
import numpy as np

from fragdex.rendering.outputs import Film
from fragdex.rendering.spec import RenderSpec
from rendering.libraries.lanes import HEIGHT

FPS = 10
# 20 frames; slices begin at 7 and 14
WANTED = RenderSpec(160, 90, Fraction(FPS), 2000, film=Film("mkv", codec="ffv1"))


def even(t):
    return 60 * t


def from_half(t):
    return min(100, max(0, 100 * (t - 0.5)))


def timeline(t):
    """Faster with the third power of time, a pause, and back."""
    return 80 * t**3 if t < 1 else 80 - 80 * min(0.5, max(0, t - 1.3))


def at_once(t):
    """Anime takes time 0 for 12 ms before an animation is made."""
    return 60 * (t + 0.012 * (t > 0))


def entering(t):
    """Vue begins the transition of what it puts in with the second frame."""
    return None if t < 0.45 else from_half(t - 0.1)


# What the left edge does in each lane, of a file that may have several.
LEFT = {
    "gsap": [even],
    "gsap-timeline": [timeline],
    "anime": [at_once],
    "anime-waapi": [even],
    "motion": [even],
    "motion-waapi": [even],
    "motion-value": [even],
    "d3": [even],
    "lottie": [even],
    "react": [from_half, even],
    "vue": [from_half, entering],
    "svelte": [even],
    "three": [even],
    "pixi": [even],
    "p5": [even],
    "waapi": [even],
    "smil": [even],
    "scroll-timeline": [even],
    "wasm": [even],
    "indexeddb": [even],
    "view-transition": [from_half],
}
# What grows from the left.
WIDTH = {"chart": lambda t: 80 * t, "font": lambda t: 54 * t}

TWEENS = ("gsap", "gsap-timeline", "anime", "anime-waapi", "motion", "motion-waapi", "motion-value",
          "d3", "lottie")  # fmt: skip
COMPONENTS = ("react", "vue", "svelte")
CANVASES = ("three", "pixi", "p5", "chart")
OWN = ("waapi", "smil", "scroll-timeline", "wasm", "indexeddb", "font")


def edges(line):
    """Where the red of a line of pixels begins and ends; None where there is none."""
    (red,) = np.nonzero((line[:, 0] > 128) & (line[:, 1] < 128))
    return (int(red[0]), int(red[-1]) + 1) if len(red) else None


def wrong_frames(names, path, lefts=LEFT):
    """(lane, number, wanted edges, found edges) of what a film shows wrongly."""
    with av.open(str(path)) as film:
        pictures = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    lanes = [(name, lane) for name in names for lane in lefts.get(name, [None])]
    wrong = [("all", "frames", 20, len(pictures))] if len(pictures) != 20 else []
    for number, (name, left) in enumerate(lanes):
        for i, picture in enumerate(pictures):
            shown_edges = edges(picture[HEIGHT * number + HEIGHT // 2].astype(int))
            x = left(i / FPS) if left else WIDTH[name](i / FPS)
            wanted = None if x is None else (x, x + HEIGHT) if left else (0, x)
            if wanted is None or shown_edges is None:
                right = wanted == shown_edges or (
                    shown_edges is None and wanted[1] - wanted[0] <= 1
                )
            else:
                right = np.abs(np.subtract(shown_edges, wanted)).max() <= 1
            if not right:
                wrong.append((name, i, wanted, shown_edges))
    return wrong
