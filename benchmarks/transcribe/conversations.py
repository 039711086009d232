"""Conversations with a known truth, made of voices that take turns; and the diarization error.

Voices are those of `recorded`, of Debian's telephone prompts in several languages and of flite.
None of it is kept with fragdex.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import recorded
import tracks

RATE = tracks.RATE
Sound = tracks.Sound
Turn = tuple[int, int, str]
"""Milliseconds [start, end) in which somebody speaks, and who."""

_PROMPTS = {
    "Allison": ("core-sounds-en-g722", "en_US_f_Allison", "g722"),
    "June": ("core-sounds-fr-g722", "fr_CA_f_June", "g722"),
    "Carlo": ("core-sounds-it-g722", "it_IT_m_Carlo", "g722"),
    "Irina": ("core-sounds-ru-g722", "ru_RU_f_IvrvoiceRU", "g722"),
    "Armelle": ("prompt-fr-armelle", "sounds/fr", "gsm"),
    "Menardi": ("prompt-it-menardi-wav", "it_IT_f_Menardi", "wav"),
    "Colombia": ("prompt-es-co", "sounds/es", "gsm"),
}
_FLITE = ("rms", "slt", "awb", "kal16")
_STEP = 10
"""Milliseconds in which errors are counted."""
_LEVEL = 2500.0
_SHORT, _LONG = 0.35, 9.0
"""Seconds of an utterance."""


@dataclass(slots=True)
class Conversation:
    """What is heard, and who speaks when."""

    sound: Sound
    turns: list[Turn] = field(default_factory=list)


def conversation(
    data: Path, voices: Sequence[str], seconds: float, *, overlaps: float = 0.1,
    short: float = 0.3, seed: int = 1,
) -> Conversation:  # fmt: skip
    """Voices in turn, never the same twice in a row.

    Args:
        overlaps: share of turns that begin before the one before has ended.
        short: share of turns of less than a second.
    """
    rng = np.random.default_rng(seed)
    pools = {voice: utterances(data, voice) for voice in voices}
    total = round(seconds * RATE)
    mixed = rng.normal(0, 6, total)
    turns: list[Turn] = []
    at, last = RATE // 2, ""
    while True:
        voice = str(rng.choice([one for one in voices if one != last]))
        brief = [one for one in pools[voice] if len(one) < RATE]
        longer = [one for one in pools[voice] if len(one) >= RATE]
        pool = brief if brief and rng.random() < short else longer or brief
        sound = pool[int(rng.integers(len(pool)))]
        if turns and rng.random() < overlaps:
            at -= round(min(rng.uniform(0.3, 1.0) * RATE, len(sound) / 2))
        else:
            at += round(rng.uniform(0.1, 0.9) * RATE)
        if at + len(sound) > total:
            break
        mixed[at : at + len(sound)] += sound
        turns.append((at * 1000 // RATE, (at + len(sound)) * 1000 // RATE, voice))
        at, last = max(at, 0) + len(sound), voice
    return Conversation(np.clip(np.rint(mixed), -32768, 32767).astype(np.int16), turns)


@cache
def utterances(data: Path, voice: str) -> list[Sound]:
    """What a voice says: parts of its recordings between pauses, all as loud."""
    parts: list[Sound] = []
    for sound in _recordings(data, voice):
        parts += [part for part in _spoken(sound) if _SHORT * RATE <= len(part) <= _LONG * RATE]
    return parts


def _recordings(data: Path, voice: str) -> list[Sound]:
    if voice in _PROMPTS:
        return _prompts(data, *_PROMPTS[voice])
    if voice in _FLITE:
        return _flite(data, voice)
    read = {"Austen": recorded._austen, "Dickens": recorded._dickens}[voice]
    return [sound for sound, _ in read(data)]


def _prompts(data: Path, package: str, name: str, form: str) -> list[Sound]:
    folder = data / "prompts"
    if not next(folder.rglob(name), None):
        package = f"asterisk-{package}"
        subprocess.run(["apt-get", "download", package], cwd=data, check=True, capture_output=True)
        for file in data.glob(f"{package}_*.deb"):
            subprocess.run(["dpkg-deb", "-x", file, folder], check=True)
    home = next(folder.rglob(name))
    files = sorted(home.glob(f"*.{form}"))
    return [recorded._decoded(path, form) for path in files[::3]]


def _flite(data: Path, voice: str) -> list[Sound]:
    import make_speech

    sounds = []
    for number, sentence in enumerate([*make_speech.SENTENCES, "Yes.", "No, not at all.", "Why?"]):
        path = data / f"flite-{voice}-{number}.wav"
        if not path.exists():
            text = sentence if isinstance(sentence, str) else " ".join(sentence)
            subprocess.run(["flite", "-voice", voice, "-t", text, "-o", str(path)], check=True)
        sounds.append(recorded._decoded(path))
    return sounds


def _spoken(sound: Sound) -> list[Sound]:
    """Parts of a recording between pauses of 200 ms, and no quiet at their edges."""
    from fragdex.speech.cutting import FRAME, loudness, smooth, threshold

    levels = smooth(loudness(sound))
    if not len(levels):
        return []
    loud = np.flatnonzero(levels >= threshold([sound]))
    parts = []
    for run in np.split(loud, np.flatnonzero(np.diff(loud) > 20) + 1):
        if len(run):
            part = sound[run[0] * FRAME : (run[-1] + 1) * FRAME].astype(np.float64)
            parts.append(part * _LEVEL / max(1.0, float(part.std())))
    return parts


def error(truth: Iterable[Turn], heard: Iterable[Turn], *, collar_ms: int = 0) -> dict[str, float]:
    """The diarization error rate, in percent of the time in which voices speak.

    Args:
        collar_ms: on both sides of each edge of a turn, not counted.

    Returns: `missed`, `false alarm`, `confusion`, and their sum `DER`; names are matched as they
        fit best. As NIST's md-eval.
    """
    truth, heard = list(truth), list(heard)
    end = max(stop for _, stop, _ in [*truth, *heard]) // _STEP + 1
    real, found = _grid(truth, end), _grid(heard, end)
    counted = np.ones(end, bool)
    for start, stop, _ in truth if collar_ms else ():
        for edge in (start, stop):
            counted[max(0, (edge - collar_ms) // _STEP) : (edge + collar_ms) // _STEP] = False
    names = [*found, *(f"nobody {n}" for n in range(len(real)))]
    empty = np.zeros(end, bool)
    both = {
        (one, other): int((real[one] & found.get(other, empty) & counted).sum())
        for one in real for other in names
    }  # fmt: skip
    right = _best(list(real), names, both)
    spoken = sum(row[counted].astype(int) for row in real.values())
    said = sum((row[counted].astype(int) for row in found.values()), np.zeros(counted.sum(), int))
    total = float(spoken.sum())
    parts = {
        "missed": float(np.maximum(0, spoken - said).sum()),
        "false alarm": float(np.maximum(0, said - spoken).sum()),
        "confusion": float(np.minimum(spoken, said).sum() - right),
    }
    parts = {name: 100 * value / total for name, value in parts.items()}
    return parts | {"DER": sum(parts.values()), "voices": float(len(found))}


def _best(real: list[str], names: list[str], both: dict[Any, int]) -> int:
    """The most that any assignment of names to voices gets right."""
    most = sorted(names, key=lambda name: -max(both[one, name] for one in real))[: len(real) + 3]
    return max(
        sum(both[pair] for pair in zip(real, order, strict=True))
        for order in permutations(most, len(real))
    )


def _grid(turns: Iterable[Turn], end: int) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for start, stop, name in turns:
        row = rows.setdefault(name, np.zeros(end, bool))
        row[start // _STEP : stop // _STEP] = True
    return rows
