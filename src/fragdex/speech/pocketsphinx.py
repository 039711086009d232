"""pocketsphinx: small, English, lower case, without punctuation; the default without moonshine.

It carries state from utterance to utterance; `reinit_feat` before each makes what it hears
independent of their order. Its default settings are kept: faster ones cost words.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fragdex.errors import EngineUnavailable
from fragdex.speech.alignment import with_vocabulary
from fragdex.speech.engines import EngineChoice, Sound, model_files, required_package
from fragdex.speech.words import Word

_RATE = 16_000
_SHORTEST = 10
"""Frames; less gives it nothing to work on."""


class PocketSphinx:
    """The engine (`Engine`) of the package `pocketsphinx`, and the English model in it.

    A model of one's own is a folder with the acoustic model (`mdef`, `means`, …), a language model
    (`*.lm.bin` or `*.lm`) and a dictionary (`*.dict`).
    """

    name = "pocketsphinx"
    window_ms = 0
    deterministic = True
    own_vocabulary = False

    def __init__(self, choice: EngineChoice) -> None:
        self._model = choice.model
        self._decoder: Any = None
        self.version = self.model_id = ""
        self.languages = frozenset({"en"}) if choice.model is None else None

    def open(self) -> None:
        """Load the model."""
        self.version = required_package(self.name)
        import pocketsphinx

        pocketsphinx.set_loglevel("FATAL")
        settings: dict[str, Any] = {}
        self.model_id = f"en-us of {self.version}"
        if self._model is not None:
            settings = self._settings(self._model)
            self.model_id = Path(self._model).name
        try:
            self._decoder = pocketsphinx.Decoder(samprate=_RATE, **settings)
        except (RuntimeError, ValueError, KeyError) as error:
            raise EngineUnavailable(
                f"the model of {self.name} cannot be loaded", advice="unpack it again"
            ) from error

    @staticmethod
    def _settings(folder: str) -> dict[str, Any]:
        files = model_files(folder, "mdef", "*.lm.bin|*.lm", "*.dict|*.dic")
        if len(files) < 3:
            raise EngineUnavailable(
                f"{folder} holds no model of pocketsphinx",
                expected="mdef, *.lm.bin and *.dict",
                found=", ".join(path.name for path in files) or "none of them",
                advice="name the folder of a whole model, or none for the English one",
            )
        return {"hmm": str(files[0].parent), "lm": str(files[1]), "dict": str(files[2])}

    def detect(self, sounds: Sequence[Sound]) -> str | None:
        """It hears every language as that of its model."""
        return "en" if self.languages else None

    def transcribe(
        self, utterances: Sequence[Sound], language: str | None, vocabulary: Sequence[str] = ()
    ) -> list[list[Word]]:
        """The words of each utterance."""
        words = [self._words(sound) for sound in utterances]
        return with_vocabulary(utterances, words, vocabulary)

    def _words(self, sound: Sound) -> list[Word]:
        if len(sound) < _SHORTEST * _RATE // 100:
            return []
        decoder = self._decoder
        decoder.reinit_feat()
        decoder.start_utt()
        decoder.process_raw(sound.tobytes(), full_utt=True)
        decoder.end_utt()
        words = []
        for segment in decoder.seg() or ():
            # <s>, <sil>, [NOISE] and ++COUGH++ are not words; word(2) is another way to say it.
            if segment.word[0] in "<[+":
                continue
            text = segment.word.split("(")[0]
            confidence = round(min(1.0, max(0.0, float(segment.prob))), 3)
            start, end = segment.start_frame * 10, (segment.end_frame + 1) * 10
            words.append(Word(text, start, end, confidence))
        return words

    def close(self) -> None:
        """Give the model's memory back."""
        self._decoder = None
