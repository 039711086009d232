"""faster-whisper: Whisper models, on the processor or a GPU (extra `whisper`).

A wrong path is taken for the name of a model on a hub, and a missing `tokenizer.json` is looked
for there: so the folder is looked at first, and the network never asked. It is not let to try again
with dice where it is unsure (`temperature`): a slice that is heard twice must say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from fragdex.errors import EngineUnavailable
from fragdex.speech.engines import EngineChoice, Sound, floats_of, required_package
from fragdex.speech.vocabulary import agreed
from fragdex.speech.words import Word

_RATE = 16_000
_FILES: Final = ("model.bin", "config.json", "tokenizer.json")
_HOW: Final = (
    "give the folder of a Whisper model in CTranslate2's form (model.bin, config.json, "
    "tokenizer.json), for example faster-whisper-small"
)


class FasterWhisper:
    """The engine (`Engine`) of the package `faster-whisper`."""

    name = "faster-whisper"
    window_ms = 28_000
    own_vocabulary = True

    def __init__(self, choice: EngineChoice) -> None:
        self._choice = choice
        # In a batch, times of a word at an edge look at the utterance before it.
        self.deterministic = choice.batch_size == 1
        self._model: Any = None
        self.version = self.model_id = ""
        self.languages: frozenset[str] | None = None

    def open(self) -> None:
        """Load the model."""
        self.version = required_package(self.name)
        choice = self._choice
        path = choice.model
        if path is None:
            raise EngineUnavailable("faster-whisper needs a model", advice=_HOW)
        missing = [name for name in _FILES if not Path(path, name).is_file()]
        if missing:
            raise EngineUnavailable(
                "the model of faster-whisper is not complete",
                expected=f"{', '.join(_FILES)} in the model's folder",
                found=f"no {', no '.join(missing)}",
                advice=_HOW,
            )
        from faster_whisper import WhisperModel

        self.model_id = Path(path).name
        try:
            self._model = WhisperModel(
                path,
                device=choice.device,
                compute_type=choice.compute_type,
                cpu_threads=choice.threads,
                local_files_only=True,
            )
        except (RuntimeError, ValueError, OSError, KeyError) as error:
            raise EngineUnavailable(
                f"the model of faster-whisper cannot be loaded: {str(error)[:200]}",
                advice="unpack it again, or choose another device or compute type",
            ) from error
        self.languages = frozenset(self._model.supported_languages)

    def detect(self, sounds: Sequence[Sound]) -> str | None:
        """The language that most of it is in, by the model."""
        if not self._model.model.is_multilingual:
            return "en"
        sound = np.concatenate([floats_of(sound) for sound in sounds]) if sounds else np.zeros(0)
        if not sound.any():
            return None
        language, _, _ = self._model.detect_language(
            audio=sound[: 60 * _RATE], language_detection_segments=2
        )
        return str(language)

    def transcribe(
        self, utterances: Sequence[Sound], language: str | None, vocabulary: Sequence[str] = ()
    ) -> list[list[Word]]:
        """The words of each utterance; what its voice detector takes for no speech is left out.

        With a vocabulary each is heard twice: the model repeats words of its prompt where nobody
        said them, so that they count only where it hears something like them by itself.
        """
        words = self._heard(utterances, language, None)
        if not vocabulary:
            return words
        prompted = self._heard(utterances, language, ", ".join(vocabulary))
        pairs = zip(words, prompted, strict=True)
        return [agreed(alone, hinted, vocabulary) for alone, hinted in pairs]

    def _heard(
        self, utterances: Sequence[Sound], language: str | None, hints: str | None
    ) -> list[list[Word]]:
        if self._choice.batch_size > 1 and len(utterances) > 1:
            return self._together(utterances, language, hints)
        words = []
        for sound in utterances:
            segments, _ = self._model.transcribe(
                floats_of(sound), language=language, word_timestamps=True, vad_filter=True,
                condition_on_previous_text=False, temperature=0.0, hotwords=hints,
            )  # fmt: skip
            words.append(_words(segments, 0.0, len(sound) / _RATE))
        return words

    def _together(
        self, utterances: Sequence[Sound], language: str | None, hints: str | None
    ) -> list[list[Word]]:
        """Several at once: one strip of sound, and where each of them lies."""
        from faster_whisper import BatchedInferencePipeline

        clips, at = [], 0
        for sound in utterances:
            clips.append({"start": at / _RATE, "end": (at + len(sound)) / _RATE})
            at += len(sound)
        segments, _ = BatchedInferencePipeline(self._model).transcribe(
            np.concatenate([floats_of(sound) for sound in utterances]), language=language,
            word_timestamps=True, vad_filter=False, clip_timestamps=clips,
            batch_size=self._choice.batch_size, temperature=0.0, hotwords=hints,
        )  # fmt: skip
        words: list[list[Word]] = [[] for _ in utterances]
        starts = [clip["start"] for clip in clips]
        for segment in segments:
            place = max(0, int(np.searchsorted(starts, segment.start + 1e-6, side="right")) - 1)
            span = clips[place]
            words[place] += _words([segment], span["start"], span["end"])
        return words

    def close(self) -> None:
        """Give the model's memory back."""
        self._model = None


def _words(segments: Iterable[Any], start: float, end: float) -> list[Word]:
    """Words of segments; times are numpy's scalars, and may lie outside of what was given."""
    words = []
    for segment in segments:
        for word in segment.words or ():
            text = word.word.strip()
            first, last = (
                round((min(max(float(at), start), end) - start) * 1000)
                for at in (word.start, word.end)
            )
            if text:
                words.append(Word(text, first, max(first, last), round(float(word.probability), 3)))
    return words
