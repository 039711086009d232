"""How well each moment of sound fits each phone of English, by the model that pocketsphinx carries.

That model (CMU Sphinx en-us, phonetically tied mixtures) is read as files: nothing of its decoder
runs. Frames are 10 ms. Sounds of speech are named as in the CMU pronouncing dictionary.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fragdex.errors import EngineUnavailable
from fragdex.speech.cutting import FRAME, SAMPLE_RATE
from fragdex.speech.engines import Sound, package_folders

Floats = npt.NDArray[np.float32]

SILENCE: Final = "SIL"
STATES: Final = 3
"""Of each phone: how it begins, holds and ends."""
_WINDOW: Final = 410
_POINTS: Final = 512
_FILTERS: Final = 25
_LOWEST, _HIGHEST = 130.0, 6800.0
_CEPSTRA: Final = 13
_LIFTER: Final = 22
_EMPHASIS: Final = 0.97
_MIXTURE_STEP: Final = 1024 * np.log(1.0001)
"""Weights of mixtures are kept as multiples of that, in natural logarithms."""
_LEAST_VARIANCE: Final = 1e-4
_NOISE_PERCENT: Final = 10
"""Of the frames are taken for those without speech, in each band."""
_NOISE_TIMES: Final = 1.5
_NOISE_LEFT: Final = 0.1
_FRAMES_AT_ONCE: Final = 200
"""Frames that are scored in one step: 200 are 4 MB for each phone."""


def model_folder() -> Path | None:
    """Where the English model is; None where pocketsphinx is not installed."""
    folders = (place / "model" / "en-us" for place in package_folders("pocketsphinx"))
    return next((one for one in folders if (one / "en-us" / "means").is_file()), None)


class Acoustics:
    """The model.

    Attributes:
        phones: their names, in the order of `scores`.

    Raises:
        EngineUnavailable: the files are not those of such a model.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self.phones = _phones((folder / "mdef").read_bytes())
            self._means = _gaussians((folder / "means").read_bytes())
            variances = _gaussians((folder / "variances").read_bytes())
            count = len(self.phones)
            if self._means.shape[0] != count or variances.shape != self._means.shape:
                raise ValueError("one set of mixtures for each phone is needed")
            self._weights = _weights((folder / "sendump").read_bytes(), count * STATES)
        except (OSError, ValueError, struct.error, IndexError) as error:
            raise EngineUnavailable(
                "the acoustic model of pocketsphinx cannot be read",
                found=str(error)[:200],
                advice="reinstall pocketsphinx",
            ) from error
        self._precision = 1 / np.maximum(variances, _LEAST_VARIANCE)
        self._constant = 0.5 * np.log(self._precision / (2 * np.pi)).sum(axis=3)

    def scores(self, sound: Sound, *, clean: bool = True) -> Floats:
        """Logarithms of the likelihood of each frame in each state of each phone.

        Args:
            sound: of at least one frame.
            clean: take off what sounds all the time.

        Returns: float32, shape (frames, phones, `STATES`).
        """
        streams = _streams(_cepstra(sound, clean=clean))
        parts = [
            self._score(streams[at : at + _FRAMES_AT_ONCE])
            for at in range(0, len(streams), _FRAMES_AT_ONCE)
        ]
        return np.concatenate(parts)

    def _score(self, streams: Floats) -> Floats:
        count = len(self.phones)
        total = np.zeros((len(streams), count, STATES), np.float32)
        for stream in range(streams.shape[1]):
            seen = streams[:, stream]
            precision, means = self._precision[:, stream], self._means[:, stream]
            for phone in range(count):
                # (x - m)² p, expanded: two products of matrices instead of a large difference
                fit = (seen * seen) @ precision[phone].T
                fit -= 2 * (seen @ (precision[phone] * means[phone]).T)
                fit += (precision[phone] * means[phone] ** 2).sum(axis=1)
                density = self._constant[phone, stream] - 0.5 * fit
                best = density.max(axis=1, keepdims=True)
                likely = np.exp(density - best) @ self._weights[stream, :, phone]
                total[:, phone] += np.log(likely + 1e-30) + best
        return total


def _phones(data: bytes) -> list[str]:
    """Names of the phones of a model definition, whose states are the first ones."""
    if data[:4] not in (b"BMDF", b"FDMB"):
        raise ValueError("mdef is not a binary model definition")
    order = "<" if data[:4] == b"BMDF" else ">"
    (length,) = struct.unpack_from(f"{order}i", data, 8)
    at = 12 + length
    count, _, states, own, *_ = struct.unpack_from(f"{order}10i", data, at)
    if states != STATES or own != count * STATES or not 0 < count < 1000:
        raise ValueError(f"{count} phones with {own} states, {STATES} for each are needed")
    names = data[at + 40 :].split(b"\0", count)[:count]
    return [name.decode("ascii") for name in names]


def _gaussians(data: bytes) -> Floats:
    """Means or variances: float32, shape (phones, streams, densities, cepstra)."""
    at = data.index(b"endhdr\n") + len(b"endhdr\n")
    order = "<" if data[at : at + 4] == struct.pack("<I", 0x11223344) else ">"
    phones, streams, densities = struct.unpack_from(f"{order}3i", data, at + 4)
    at += 16
    lengths = struct.unpack_from(f"{order}{streams}i", data, at)
    if set(lengths) != {_CEPSTRA}:
        raise ValueError(f"features of {lengths}, {_CEPSTRA} in each are needed")
    at += 4 * streams + 4
    count = phones * streams * densities * _CEPSTRA
    values = np.frombuffer(data, f"{order}f4", count, at).astype(np.float32)
    return values.reshape(phones, streams, densities, _CEPSTRA)


def _weights(data: bytes, states: int) -> Floats:
    """Weights of mixtures: float32, shape (streams, densities, phones, `STATES`)."""
    at, order = 0, "<"
    if struct.unpack_from("<i", data)[0] > 1 << 16:
        order = ">"
    header: dict[str, str] = {}
    while True:
        (length,) = struct.unpack_from(f"{order}i", data, at)
        at += 4
        if length == 0:
            break
        line = data[at : at + length].rstrip(b"\0").decode("ascii", "replace").split()
        header |= {line[0]: line[1]} if len(line) == 2 else {}
        at += length
    streams = int(header.get("feature_count", "3"))
    if int(header.get("cluster_count", "0")):
        raise ValueError("weights in clusters are not read")
    densities, all_states = struct.unpack_from(f"{order}2i", data, at)
    values = np.frombuffer(data, np.uint8, streams * densities * all_states, at + 8)
    chosen = values.reshape(streams, densities, all_states)[:, :, :states].astype(np.float32)
    weights: Floats = np.exp(-chosen * np.float32(_MIXTURE_STEP))
    return weights.reshape(streams, densities, -1, STATES)


def _filters() -> Floats:
    """Triangles on the mel scale: shape (points of the spectrum, filters)."""

    def mel(hertz: Any) -> Any:
        return 2595 * np.log10(1 + hertz / 700)

    step = SAMPLE_RATE / _POINTS
    edges = np.linspace(mel(_LOWEST), mel(_HIGHEST), _FILTERS + 2)
    hertz = np.rint(700 * (10 ** (edges / 2595) - 1) / step) * step
    points = np.arange(_POINTS // 2 + 1)[:, None] * step
    left, middle, right = hertz[:-2], hertz[1:-1], hertz[2:]
    rising = (points - left) / (middle - left)
    falling = (right - points) / (right - middle)
    bank = np.clip(np.minimum(rising, falling), 0, None) * 2 / (right - left)
    filters: Floats = bank.astype(np.float32)
    return filters


def _cepstra(sound: Sound, *, clean: bool) -> Floats:
    """Cepstra of each frame, the mean of all taken off: shape (frames, 13)."""
    count = len(sound) // FRAME
    wave = np.pad(sound.astype(np.float32), (1, _WINDOW))
    wave = wave[1:] - np.float32(_EMPHASIS) * wave[:-1]
    # The window of a frame lies around its middle.
    wave = np.pad(wave, ((_WINDOW - FRAME) // 2, 0))
    frames = np.lib.stride_tricks.sliding_window_view(wave, _WINDOW)[::FRAME][:count]
    spectrum = np.abs(np.fft.rfft(frames * np.hamming(_WINDOW).astype(np.float32), _POINTS)) ** 2
    power = spectrum.astype(np.float32) @ _filters()
    if clean:
        noise = np.percentile(power, _NOISE_PERCENT, axis=0)
        power = np.maximum(power - _NOISE_TIMES * noise, _NOISE_LEFT * power)
    levels = np.log(power + 1e-4)
    at = np.arange(_FILTERS) + 0.5
    turns = np.cos(np.pi / _FILTERS * np.arange(_CEPSTRA)[:, None] * at) * np.sqrt(2 / _FILTERS)
    turns[0] = np.sqrt(1 / _FILTERS)
    lifter = 1 + _LIFTER / 2 * np.sin(np.arange(_CEPSTRA) * np.pi / _LIFTER)
    cepstra = levels @ (turns * lifter[:, None]).T.astype(np.float32)
    return cepstra - cepstra.mean(axis=0)  # type: ignore[no-any-return]


def _streams(cepstra: Floats) -> Floats:
    """Cepstra, how they change and how that changes: shape (frames, 3, 13)."""
    around = np.pad(cepstra, ((3, 3), (0, 0)), mode="edge")

    def at(moved: int) -> Floats:
        return around[3 + moved : len(around) - 3 + moved]

    change = at(2) - at(-2)
    bend = (at(3) - at(-1)) - (at(1) - at(-3))
    return np.stack([cepstra, change, bend], axis=1)
