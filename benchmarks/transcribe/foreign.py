"""Stretches of ten seconds in other languages, and in English with accents.

Prompts of a telephone exchange in Debian's asterisk-core-sounds-* (CC BY-SA 3.0), voices of flite
and of espeak-ng, and the recordings of `recorded`. None of it is kept with fragdex.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import conversations
import numpy as np
import recorded
import tracks

Sound = tracks.Sound

_PROMPTED = {"fr": "June", "it": "Carlo", "ru": "Irina", "en": "Allison"}
_SPANISH = ("core-sounds-es-g722", "es_MX_f_Allison", "g722")
_GERMAN = (
    "Der Rat hat am Donnerstag beschlossen, die Brücke zwei Wochen lang zu sperren.",
    "Wer am Abend noch über den Fluss will, nimmt die Fähre oder geht zu Fuß.",
    "Die Ingenieure fanden Risse, die größer sind, als alle angenommen hatten.",
    "Im Sommer kommen viele Leute aus der Stadt hierher, um zu schwimmen.",
    "Ihr Großvater hatte das Haus gebaut, lange bevor es dort eine Straße gab.",
    "Wir haben den ganzen Nachmittag gewartet, aber niemand hat die Tür geöffnet.",
)
_ENGLISH = (
    "The council decided on Thursday to close the bridge for two whole weeks.",
    "Whoever wants to cross the river at night has to take the ferry or walk.",
    "The engineers found cracks that are larger than anybody had assumed.",
    "In summer many people come here from the city in order to swim.",
    "Her grandfather had built the house long before there was a road.",
    "We waited all afternoon, but nobody came to open the door.",
)
_SPEEDS = (130, 150, 170)
_MOST = 16
"""Stretches of each voice."""
_SECONDS = 10


def voices(data: Path) -> Iterator[tuple[str, str, list[Sound]]]:
    """A language (ISO 639-1), a voice, and what it says in stretches of about ten seconds."""
    for language, voice in _PROMPTED.items():
        yield language, voice, _stretches(conversations._recordings(data, voice))
    yield "es", "Allison", _stretches(conversations._prompts(data, *_SPANISH))
    yield "de", "espeak-ng", _stretches(_espeak(data, "de", _GERMAN))
    for voice in ("en-gb", "en-gb-scotland"):
        yield "en", f"espeak-ng, {voice}", _stretches(_espeak(data, voice, _ENGLISH))
    for voice in ("Austen", "Dickens", *conversations._FLITE):
        yield "en", voice, _stretches(conversations._recordings(data, voice))


def _espeak(data: Path, voice: str, texts: Sequence[str]) -> list[Sound]:
    sounds = []
    for number, text in enumerate(texts):
        for speed in _SPEEDS:
            path = data / f"espeak-{voice}-{number}-{speed}.wav"
            command = ["espeak-ng", "-v", voice, "-s", str(speed), "-w", str(path), text]
            subprocess.run(command, check=True)
            sounds.append(recorded._decoded(path))
    return sounds


def _stretches(sounds: Sequence[Sound]) -> list[Sound]:
    """Sounds one after the other, with a third of a second between, in parts of ten seconds."""
    hiss = np.random.default_rng(0).normal(0, 6, tracks.RATE // 3).astype(np.int16)
    parts: list[list[Sound]] = [[]]
    for sound in sounds:
        for at in range(0, len(sound), _SECONDS * tracks.RATE):
            if sum(map(len, parts[-1])) >= _SECONDS * tracks.RATE:
                parts.append([])
            parts[-1] += [sound[at : at + _SECONDS * tracks.RATE], hiss]
    return [np.concatenate(part) for part in parts[:_MOST] if part]
