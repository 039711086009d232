"""Stretches of ten seconds in English and in other languages: prompts, and espeak-ng."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import conversations
import numpy as np
import recorded
import tracks

Sound = tracks.Sound

_PROMPTS = (("en", "Allison"), ("fr", "June"), ("it", "Carlo"), ("ru", "Irina"), ("es", "Allison"))
_MOST = 24
"""Stretches of each voice."""
_SPOKEN = {
    "de": (
        "Der Rat hat am Donnerstag beschlossen, die Brücke zwei Wochen lang zu sperren.",
        "Wer am Abend noch über den Fluss will, nimmt die Fähre oder geht zu Fuß.",
        "Die Ingenieure fanden Risse, die größer sind, als alle angenommen hatten.",
        "Im Sommer kommen viele Leute aus der Stadt hierher, um zu schwimmen.",
    ),
    "en-gb-scotland": (
        "The council decided on Thursday to close the bridge for two whole weeks.",
        "Whoever wants to cross the river at night has to take the ferry or walk.",
        "The engineers found cracks that are larger than anybody had assumed.",
        "In summer many people come here from the city in order to swim.",
    ),
}
_SPEEDS = (130, 150, 170)


def stretches(data: Path) -> Iterator[tuple[str, str, list[Sound]]]:
    """A language (ISO 639-1), a voice, and what it says in stretches of about ten seconds."""
    for language, voice in _PROMPTS:
        name = {"es": "es_MX_f_Allison"}.get(language) or conversations._PROMPTS[voice][1]
        yield language, voice, _joined(conversations._prompts(data, language, name))
    yield (
        "en",
        "Austen and Dickens",
        _joined(
            [
                *conversations._recordings(data, "Austen"),
                *conversations._recordings(data, "Dickens"),
            ]
        ),
    )
    for voice in conversations._FLITE:
        yield "en", voice, _joined(conversations._flite(data, voice))
    for voice, texts in _SPOKEN.items():
        yield voice[:2], f"espeak-ng {voice}", _joined(_espeak(data, voice, texts))


def _espeak(data: Path, voice: str, texts: tuple[str, ...]) -> list[Sound]:
    sounds = []
    for number, text in enumerate(texts):
        for speed in _SPEEDS:
            path = data / f"espeak-{voice}-{number}-{speed}.wav"
            command = ["espeak-ng", "-v", voice, "-s", str(speed), "-w", str(path), text]
            subprocess.run(command, check=True)
            sounds.append(recorded._decoded(path))
    return sounds


def _joined(sounds: list[Sound]) -> list[Sound]:
    """Sounds one after the other, cut between them into stretches of at least ten seconds."""
    hiss = np.random.default_rng(0).normal(0, 6, tracks.RATE // 3).astype(np.int16)
    result: list[list[Sound]] = [[]]
    for sound in sounds:
        for at in range(0, len(sound), 10 * tracks.RATE):
            if sum(map(len, result[-1])) >= 10 * tracks.RATE:
                result.append([])
            result[-1] += [sound[at : at + 10 * tracks.RATE], hiss]
    return [np.concatenate(parts) for parts in result[:_MOST] if parts]
