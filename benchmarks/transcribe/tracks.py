"""What is heard: flite's voices with and without pauses, LibriVox clips, sounds that are no speech.

The voices and their truth are those of fixtures/make_speech.py. LibriVox clips are read where they
lie in the source package of pocketsphinx, which pip fetches into benchmarks/data once.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import wave
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "fixtures"))

import make_speech

RATE = make_speech.RATE
Sound = npt.NDArray[np.int16]
PAUSES, NONE = (0.35, 0.9), (0.02, 0.06)
SENTENCES = len(make_speech.SENTENCES)
_CODEC_FLAGS_BITEXACT = 1 << 23


def speech(path: Path, voice: str, pauses: tuple[float, float], **options: str) -> list[Any]:
    """Every sentence by one voice as AAC in fragments; gives the truth."""
    sound, truth = make_speech.track(SENTENCES, pauses, voices=(voice,), seed=7)
    encode(path, sound, options)
    return [tuple(word) for word in truth]


def both(
    path: Path,
    pauses: tuple[float, float],
    voices: tuple[str, ...] = ("rms", "slt"),
    **options: str,
) -> list[Any]:
    """Every sentence by voices in turn."""
    sound, truth = make_speech.track(SENTENCES, pauses, voices=voices, seed=7)
    encode(path, sound, options)
    return [tuple(word) for word in truth]


def encode(path: Path, sound: Sound, options: dict[str, str] | None = None) -> None:
    """AAC at 48 kHz in fragments of two seconds."""
    recipe = make_speech.Speech(
        path.name, "", 0, PAUSES, "aac", 48_000, {"b": "48k", **(options or {})}, fragments=True
    )
    make_speech.encode(path, sound, recipe)


def clips(data: Path) -> tuple[Sound, list[str]] | None:
    """The LibriVox clips one after the other, and their words; None where they cannot be had."""
    parts, words = [], []
    hiss = np.random.default_rng(0).normal(0, make_speech.NOISE, RATE // 2).astype(np.int16)
    for sound, text in librivox(data):
        parts += [sound, hiss]
        words += text.split()
    return (np.concatenate(parts), words) if parts else None


def librivox(data: Path) -> list[tuple[Sound, str]]:
    """The LibriVox clips and what is said in each; none where they cannot be had."""
    package = next(iter(sorted(data.glob("pocketsphinx-*.tar.gz"))), None)
    if package is None:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary",
             "pocketsphinx", "-d", str(data), "pocketsphinx"],
            check=False, timeout=900, capture_output=True,
        )  # fmt: skip
        package = next(iter(sorted(data.glob("pocketsphinx-*.tar.gz"))), None)
    if package is None:
        return []
    pairs = []
    with tarfile.open(package) as archive:
        names = sorted(n for n in archive.getnames() if "/librivox/" in n and n.endswith(".wav"))
        for name in names:
            sound = archive.extractfile(name)
            text = archive.extractfile(name.removesuffix(".wav") + ".txt")
            if sound is None or text is None:
                continue
            with wave.open(io.BytesIO(sound.read())) as file:
                samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
            pairs.append((samples, text.read().decode()))
    return pairs


def read_aloud(path: Path, parts: Sequence[Sound], seconds: float) -> None:
    """Recordings in ever another order, with ever other pauses and hiss, as AAC."""
    rng = np.random.default_rng(11)
    sounds, total = [], 0
    while total < seconds * RATE:
        part = parts[int(rng.integers(len(parts)))]
        pause = rng.normal(0, 6, int(rng.uniform(0.2, 1.5) * RATE)).astype(np.int16)
        sounds += [part, pause]
        total += len(part) + len(pause)
    encode(path, np.concatenate(sounds), {"aac_pns": "0"})


def no_speech() -> dict[str, Sound]:
    """Ten seconds each of what should have no words, and of music."""
    rng = np.random.default_rng(5)
    t = np.arange(10 * RATE) / RATE
    beeps = np.sin(2 * np.pi * 1000 * t) * (t % 1 < 0.3)
    return {
        "silence": np.zeros(len(t), np.int16),
        "noise": rng.normal(0, 1500, len(t)).astype(np.int16),
        "beeps": (8000 * beeps).astype(np.int16),
        "music": _music(t, rng),
    }


def hour(seed: int = 5) -> dict[str, Sound]:
    """45 minutes of music, no two halves of a minute alike, and 5 each of the others."""
    rng = np.random.default_rng(seed)
    t = np.arange(30 * RATE) / RATE
    music = [
        _music(t, rng, beats=rng.uniform(1.2, 3.0), key=2 ** rng.uniform(-1, 1)) for _ in range(90)
    ]
    others = {name: np.tile(sound, 30) for name, sound in no_speech().items() if name != "music"}
    return others | {"music": np.concatenate(music)}


def _music(t: Any, rng: Any, beats: float = 2, key: float = 1) -> Sound:
    """Chords, a melody and a drum: so many beats a second, so far above A minor."""
    t = t * beats / 2
    beat = (t * 2).astype(int)
    roots = key * np.array([220, 174.6, 261.6, 196])[beat // 4 % 4]
    melody = roots * 2 ** (np.array([0, 4, 7, 12, 7, 4, 11, 9])[beat % 8] / 12)
    wave_ = np.zeros(len(t))
    for pitch, level in ((roots, 0.3), (roots * 1.26, 0.25), (roots * 1.5, 0.25), (melody, 0.5)):
        phase = 2 * np.pi * np.cumsum(pitch) / RATE
        wave_ += level * (np.sin(phase) + 0.4 * np.sin(2 * phase) + 0.2 * np.sin(3 * phase))
    drum = np.exp(-(t * 2 % 1) * 25) * rng.normal(0, 1, len(t))
    return (5000 * (wave_ * (0.6 + 0.4 * np.exp(-(t * 2 % 1) * 3)) + 0.6 * drum)).astype(np.int16)


def long_file(path: Path, source: Path, hours: float) -> None:
    """Speech again and again for hours: packets are copied, nothing is encoded again."""
    import av

    if path.exists():
        return
    unfinished = path.with_suffix(".part")
    with av.open(str(source)) as given:
        stream = given.streams.audio[0]
        packets = [(bytes(p), p.duration) for p in given.demux(stream) if p.size and p.pts >= 0]
        options = {"movflags": "empty_moov+default_base_moof", "frag_duration": "2000000"}
        with av.open(str(unfinished), "w", format="mp4", options=options) as out:
            copy: Any = out.add_stream_from_template(stream)
            at, base = 0, Fraction(1, 48_000)
            while at < hours * 3600 * 48_000:
                for data, duration in packets:
                    packet = av.Packet(data)
                    packet.stream, packet.time_base = copy, base
                    packet.pts = packet.dts = at
                    packet.duration = duration
                    out.mux(packet)
                    at += duration
    unfinished.rename(path)
