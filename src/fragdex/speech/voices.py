"""Who of up to three voices speaks at each moment, and how a voice sounds.

The models are pyannote's community-1 (CC BY 4.0): segmentation, and WeSpeaker's embeddings. The
library of `moonshine-voice` carries both. They are read out of its file and run by onnxruntime:
nothing of the library itself runs, which gives no embeddings.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import permutations
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.errors import EngineUnavailable
from fragdex.speech.cutting import SAMPLE_RATE
from fragdex.speech.engines import Sound, floats_of, package_folders, required_package

Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Report = Callable[[int, int], None]

STEP: Final = 270
"""Samples from one frame of the segmentation to the next."""
OFFSET: Final = 360
"""Samples in front of the first frame: it judges what lies around its middle."""
COLUMNS: Final = 3
"""Voices that are told apart within a window."""
DIMENSIONS: Final = 256
"""Numbers that say how a voice sounds."""
_WINDOW: Final = 10 * SAMPLE_RATE
FRAMES: Final = 589
"""Of a window."""
HOP: Final = 296
"""Frames from one window to the next: half of one."""
_MARGIN: Final = (FRAMES - HOP) // 2
"""Frames at the edges of a window of which its neighbours know more."""
_FBANK: Final = 400
_FBANK_STEP: Final = 160
_POINTS: Final = 512
_FILTERS: Final = 80
_LOWEST: Final = 20.0
_EMPHASIS: Final = 0.97
_LEAST: Final = float(np.finfo(np.float32).eps)
_LIBRARIES: Final = (".so", ".dylib", ".dll")
_MARK: Final = b"ORTM"
_MARK_AT: Final = 4
"""Where the mark stands in a model."""
_ADVICE: Final = "pip install 'fragdex[speech]'"


class _Model(NamedTuple):
    """A model within a library: its bytes, known by their digest."""

    size: int
    digest: str


_SEGMENTATION: Final = _Model(
    1_594_080, "9715e3996ef181252aa1cc0c9398060f42b2c984c2fb65e3604262555e2efb1a"
)
_EMBEDDING: Final = _Model(
    6_975_920, "6e4af7d49562e6e7042672e444d6394935cb2c23c3a7dd4919da45922b91735b"
)


class Voices:
    """The two models, loaded."""

    def __init__(self) -> None:
        self._segmentation = _session(_SEGMENTATION)
        self._embedding = _session(_EMBEDDING)

    def activity(self, sound: Sound, report: Report = lambda done, of: None) -> Flags:
        """Who speaks when: shape (frames, 3).

        A voice may change its column where it pauses for seconds, and similar voices may share one.

        Args:
            report: called with how many samples are judged, and of how many; may raise to end it.
        """
        active = np.zeros((-(-len(sound) // STEP), COLUMNS), bool)
        before = None
        for first in range(0, max(1, len(active) - FRAMES + HOP), HOP):
            at = first * STEP
            report(at, len(sound))
            part = floats_of(sound[at : at + _WINDOW])
            part = np.pad(part, (0, _WINDOW - len(part)))
            (found,) = self._segmentation.run(None, {"waveforms": part[None, None]})
            here = found[0] > 0.5
            if before is not None:
                here = in_columns_of(before[HOP:], here)
            skipped = _MARGIN if first else 0
            place = active[first + skipped : first + FRAMES]
            place[:] = here[skipped : skipped + len(place)]
            before = here
        return active

    def embedding(self, features: Floats) -> Floats:
        """How a voice sounds: a vector of length 1.

        The product of two says how much they sound alike: about 0.7 for one voice, 0.1 for two.
        """
        given = (features - features.mean(axis=0))[None]
        weights = np.ones(given.shape[:2], np.float32)
        (found,) = self._embedding.run(None, {"fbank": given, "weights": weights})
        vector: Floats = found[0] / max(float(np.linalg.norm(found[0])), _LEAST)
        return vector


def ensure_voices() -> None:
    """Say what is missing before anything is heard.

    Raises:
        EngineUnavailable: a package is not installed, or carries no such model.
    """
    try:
        version = required_package("moonshine")
    except EngineUnavailable as error:
        raise EngineUnavailable(
            "speakers are told apart by models in moonshine-voice, which is not installed",
            advice=_ADVICE,
        ) from error
    if find_spec("onnxruntime") is None:
        raise EngineUnavailable(
            "speakers are told apart by onnxruntime, which is not installed", advice=_ADVICE
        )
    if _bytes_of(_EMBEDDING) is None:
        raise EngineUnavailable(
            "this moonshine-voice does not carry the models that tell speakers apart",
            expected="version 0.0.73", found=version, advice=_ADVICE,
        )  # fmt: skip


def _session(model: _Model) -> Any:
    """A model, loaded for one thread: several stretches are heard at once."""
    ensure_voices()
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # what it keeps for the next run is as much as the longest run took
    options.enable_cpu_mem_arena = False
    return onnxruntime.InferenceSession(
        _bytes_of(model), options, providers=["CPUExecutionProvider"]
    )


def _bytes_of(model: _Model) -> bytes | None:
    """A model out of the library that carries it; None where none does."""
    folders = package_folders("moonshine_voice")
    for path in (path for folder in folders for path in sorted(folder.iterdir())):
        if path.suffix not in _LIBRARIES or path.stat().st_size < model.size:
            continue
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at = data.find(_MARK)
            while at >= 0:
                found = data[at - _MARK_AT : at - _MARK_AT + model.size]
                if sha256(found).hexdigest() == model.digest:
                    return found
                at = data.find(_MARK, at + 1)
    return None


def in_columns_of(before: Flags, here: Flags) -> Flags:
    """Columns in the order in which they fit those of the window before."""
    both = here[: len(before)]
    fits = {order: int((before & both[:, order]).sum()) for order in permutations(range(COLUMNS))}
    return here[:, max(fits, key=lambda order: fits[order])]


def fbank(sound: Sound) -> Floats:
    """Log energies in 80 mel bands as Kaldi computes them: shape (frames of 10 ms, 80)."""
    if len(sound) < _FBANK:
        return np.zeros((0, _FILTERS), np.float32)
    rows = np.lib.stride_tricks.sliding_window_view(sound, _FBANK)[::_FBANK_STEP]
    frames = rows.astype(np.float32)
    frames = frames - frames.mean(axis=1, keepdims=True)
    before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    frames = frames - np.float32(_EMPHASIS) * before
    spectrum = np.fft.rfft(frames * np.hamming(_FBANK).astype(np.float32), _POINTS)
    power = (np.abs(spectrum) ** 2).astype(np.float32)
    return np.log(np.maximum(power @ _filters(), _LEAST))  # type: ignore[no-any-return]


@cache
def _filters() -> Floats:
    """Triangles, straight on the mel scale: shape (points of the spectrum, 80)."""

    def mel(hertz: Any) -> Any:
        return 1127 * np.log1p(hertz / 700)

    low, high = mel(_LOWEST), mel(SAMPLE_RATE / 2)
    width = (high - low) / (_FILTERS + 1)
    middles = low + width * np.arange(1, _FILTERS + 1)
    points = mel(np.arange(_POINTS // 2 + 1) * SAMPLE_RATE / _POINTS)[:, None]
    bank = np.clip(1 - np.abs(points - middles) / width, 0, None)
    filters: Floats = bank.astype(np.float32)
    return filters
