"""What lanes show at known times, and which frames of a film show something else."""

from fractions import Fraction

import av
import numpy as np

from fragdex.rendering.outputs import Film
from fragdex.rendering.spec import RenderSpec
from rendering.libraries.lanes import HEIGHT

FPS = 10  # 20 frames; slices begin at 7 and 14


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


def back(t):
    return 100 - from_half(t)


def drawn_later(t):
    """Konva draws what a frame changed in the next one; so does the ticker of CreateJS."""
    return even(max(0, t - 0.1))


def begun_later(t):
    """Mo.js shows its start in the first three frames."""
    return even(t) if t > 0.25 else 0


def not_at_once(t):
    """Pts draws after 100 ms."""
    return even(t) if t > 0.05 else None


def at_most_40_ms(t):
    """Popmotion takes a frame for 40 ms at most, and the first for a sixtieth of a second."""
    return 1 + 24 * t


def at_most_64_ms(t):
    """So does React Spring, for 64 ms."""
    return 1 + 38.4 * t


# What the left edge does in each lane, of a file that may have several.
LEFT = {
    "gsap-timeline": [timeline],
    "anime": [at_once],
    "react": [from_half, even],
    "vue": [from_half, entering],
    "view-transition": [from_half],
    "preact": [from_half, even],
    "lit": [from_half],
    "konva": [drawn_later, drawn_later],
    "popmotion": [at_most_40_ms],
    "react-spring": [at_most_64_ms],
    "mojs": [begun_later],
    "createjs": [drawn_later],
    "pts": [not_at_once],
    "plotly": [from_half],
    "leaflet": [from_half],
    "maplibre": [from_half],
    "auto-animate": [back],
    "swiper": [back],
}
# What grows from the left.
WIDTH = {
    "chart": lambda t: 80 * t,
    "echarts": lambda t: 80 * t,
    "font": lambda t: 54 * t,
    "uplot": even,
    "curtains": even,
    "wavesurfer": lambda t: 160 / 3 * t,
    "vivus": lambda t: min(120, 60 * t + 12),
    "splitting": lambda t: 60 * t + 6,
}
# What moves by chance, or in too many ways: another picture in more than half of the frames.
FREE = ("typed", "rough-ellipse", "hydra", "tsparticles", "proton", "confetti")

BATCHES = {
    "tweens": (
        "gsap", "gsap-timeline", "anime", "anime-waapi", "motion", "motion-waapi", "motion-value",
        "d3", "lottie", "tween", "popmotion", "svgjs", "snap", "velocity", "kute", "mojs", "rxjs",
        "countup", "vivus",
    ),
    "components": (
        "react", "react-spring", "vue", "svelte", "preact", "lit", "alpine", "mithril", "jquery",
        "solid", "auto-animate",
    ),
    "canvases": (
        "three", "pixi", "p5", "chart", "konva", "zdog", "two", "paper", "fabric", "createjs",
        "pts", "rough", "rough-ellipse", "uplot", "echarts",
    ),
    "scenes": (
        "matter", "cannon", "planck", "rapier", "tsparticles", "proton", "confetti", "regl", "ogl",
        "curtains", "hydra", "maplibre",
    ),
    "interfaces": (
        "lottie", "dotlottie", "typed", "splitting", "swiper", "leaflet", "plotly",
        "wavesurfer",
    ),
    "own": ("waapi", "smil", "scroll-timeline", "wasm", "indexeddb", "codec", "font"),
}  # fmt: skip
# Lanes that use what another one has loaded.
AFTER = {
    "gsap-timeline": "gsap",
    "anime-waapi": "anime",
    "motion-waapi": "motion",
    "motion-value": "motion",
    "react-spring": "react",
    "rough-ellipse": "rough",
    "dotlottie": "lottie",
}


def edges(line):
    """Where the red of a line of pixels begins and ends; None where there is none."""
    (red,) = np.nonzero((line[:, 0] > 128) & (line[:, 1] < 128))
    return (int(red[0]), int(red[-1]) + 1) if len(red) else None


def pictures(path):
    """The pictures of a film."""
    with av.open(str(path)) as film:
        return [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]


def wrong_frames(names, shown, lefts=LEFT):
    """(lane, number, wanted edges, found edges) of what pictures show wrongly."""
    lanes = [(name, lane) for name in names for lane in lanes_of(name, lefts)]
    wrong = [("all", "frames", 20, len(shown))] if len(shown) != 20 else []
    for number, (name, left) in enumerate(lanes):
        if name in FREE:
            rows = slice(HEIGHT * number, HEIGHT * (number + 1))
            count = len({picture[rows].tobytes() for picture in shown})
            wrong += [(name, "pictures", 11, count)] if count <= 10 else []
            continue
        for i, picture in enumerate(shown):
            found = edges(picture[HEIGHT * number + HEIGHT // 2].astype(int))
            x = left(i / FPS) if left else WIDTH[name](i / FPS)
            wanted = None if x is None else (x, x + HEIGHT) if left else (0, x)
            if wanted is None or found is None:
                right = wanted == found or (found is None and wanted[1] - wanted[0] <= 1)
            else:
                right = np.abs(np.subtract(found, wanted)).max() <= 1
            if not right:
                wrong.append((name, i, wanted, found))
    return wrong


def lanes_of(name, lefts=LEFT):
    """What the left edge does in the lanes of a file; None: nothing moves it."""
    return [None] if name in WIDTH or name in FREE else lefts.get(name, [even])


def wanted(names):
    """A film of the lanes."""
    height = HEIGHT * sum(len(lanes_of(name)) for name in names)
    return RenderSpec(160, height + height % 2, Fraction(FPS), 2000, film=Film("mkv", codec="ffv1"))
