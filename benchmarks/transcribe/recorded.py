"""Recorded speech with its text: what engines make of it, also noisy and narrow.

Nothing of it is kept with fragdex; packages that carry it are fetched into benchmarks/data once:

- Jane Austen, read for LibriVox (public domain), in the source package of pocketsphinx (BSD)
- Charles Dickens, read, in the package moonshine-voice 0.0.73 (MIT)
- prompts of a telephone exchange, spoken by Allison Smith, in Debian's asterisk-core-sounds-en-g722
  (CC BY-SA 3.0)
"""

from __future__ import annotations

import gzip
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import tracks

from fragdex.speech.alignment import Aligner, spoken_words
from fragdex.speech.words import Word

RATE = tracks.RATE
Sound = tracks.Sound
_TALE = (
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age "
    "of foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the "
    "season of Light, it was the season of Darkness, it was the spring of hope, it was the winter "
    "of despair, we had everything before us, we had nothing before us, we were all going direct "
    "to Heaven, we were all going direct the other way in short, the period was so far like the "
    "present period, that some of its noisiest authorities insisted on its being received, for "
    "good or for evil, in the superlative degree of comparison only."
)
_PROMPTS = ("asterisk-core-sounds-en-g722", "asterisk-core-sounds-en")
_EVERY = 6
"""Of the prompts, so that all of it takes minutes."""
_LEAST_WORDS = 6
_BETWEEN = RATE * 6 // 10


@dataclass(slots=True)
class Recording:
    """Speech of one voice, one after the other.

    Attributes:
        said: its words, lower case, numbers in letters.
        onsets: when each begins, in milliseconds, by laying the true text over the clean sound.
    """

    name: str
    sound: Sound
    said: list[str]
    onsets: list[int]


def recordings(data: Path) -> list[Recording]:
    """Those that can be had here."""
    joined = []
    for name, read in (("Austen", _austen), ("Dickens", _dickens), ("prompts", _prompts)):
        parts = read(data)
        if parts:
            joined.append(_together(name, parts))
    return joined


def parts_of(data: Path) -> list[Sound]:
    """The recordings by themselves: sentences, prompts and a page."""
    return [sound for read in (_austen, _dickens, _prompts) for sound, _ in read(data)]


def conditions() -> dict[str, Callable[[Sound], Sound]]:
    """As it is, as by telephone, and with noise of 12 dB."""
    return {"clean": lambda sound: sound, "8 kHz": narrow, "pink noise": noisy}


def narrow(sound: Sound) -> Sound:
    """300 to 3,400 Hz."""
    spectrum = np.fft.rfft(sound.astype(np.float64))
    hertz = np.fft.rfftfreq(len(sound), 1 / RATE)
    spectrum[(hertz < 300) | (hertz > 3400)] = 0
    return _ints(np.fft.irfft(spectrum, len(sound)))


def noisy(sound: Sound) -> Sound:
    """Pink noise, 12 dB below the speech."""
    spectrum = np.fft.rfft(np.random.default_rng(7).normal(0, 1, len(sound)))
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    spectrum[0] = 0
    noise = np.fft.irfft(spectrum, len(sound))
    loud = np.sqrt((sound.astype(np.float64) ** 2).mean())
    return _ints(sound + noise / noise.std() * loud / 10 ** (12 / 20))


def bare(words: list[Word]) -> tuple[list[str], list[int]]:
    """Words as they are compared, and when each begins; parts of one begin with it."""
    texts, starts = [], []
    for word in words:
        for text in spoken_words(word.text):
            texts.append(text)
            starts.append(word.start_ms)
    return texts, starts


def _together(name: str, parts: list[tuple[Sound, str]]) -> Recording:
    aligner = Aligner()
    hiss = np.random.default_rng(0).normal(0, 6, _BETWEEN).astype(np.int16)
    sounds, spoken, onsets, at = [], [], [], 0
    for sound, text in parts:
        words = spoken_text(text)
        onsets += [at * 1000 // RATE + word.start_ms for word in aligner.words(sound, words)]
        spoken += words
        sounds += [sound, hiss]
        at += len(sound) + len(hiss)
    return Recording(name, np.concatenate(sounds), spoken, onsets)


def spoken_text(text: str) -> list[str]:
    return [word for part in text.split() for word in spoken_words(part)]


def _austen(data: Path) -> list[tuple[Sound, str]]:
    return tracks.librivox(data)


def _dickens(data: Path) -> list[tuple[Sound, str]]:
    spec = find_spec("moonshine_voice")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place, "assets", "two_cities.wav")
        if path.is_file():
            return [(_decoded(path), _TALE)]
    return []


def _prompts(data: Path) -> list[tuple[Sound, str]]:
    folder = data / "prompts"
    if not folder.is_dir():
        for package in _PROMPTS:
            subprocess.run(
                ["apt-get", "download", package], cwd=data, check=False, capture_output=True
            )
            for file in data.glob(f"{package}_*.deb"):
                subprocess.run(["dpkg-deb", "-x", file, folder], check=True)
    texts = next(folder.rglob("core-sounds-en.txt.gz"), None)
    if texts is None:
        return []
    prompts = []
    with gzip.open(texts, "rt", encoding="utf-8") as lines:
        for line in lines:
            name, _, text = line.strip().partition(": ")
            plain = not set("[];0123456789") & set(text)
            path = next(folder.rglob(f"{name}.g722"), None) if plain and text else None
            if path is not None and len(spoken_text(text)) >= _LEAST_WORDS:
                prompts.append((path, text))
    return [(_decoded(path, "g722"), text) for path, text in prompts[::_EVERY]]


def _decoded(path: Path, form: str | None = None) -> Sound:
    import av

    parts: list[Any] = []
    with av.open(str(path), format=form) as file:
        resampler = av.AudioResampler("s16", "mono", RATE)
        for frame in file.decode(audio=0):
            parts += [block.to_ndarray()[0] for block in resampler.resample(frame)]
        parts += [block.to_ndarray()[0] for block in resampler.resample(None)]
    return np.concatenate(parts)


def _ints(sound: Any) -> Sound:
    return np.clip(np.rint(sound), -32768, 32767).astype(np.int16)
