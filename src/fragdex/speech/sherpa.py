"""sherpa-onnx: transducer and CTC models, NVIDIA's parakeet among them (extra `sherpa`).

Which kind of model a folder holds follows from its files: `encoder`, `decoder` and `joiner` make a
transducer, a single `model` CTC; `tokens.txt` belongs to both.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from fragdex.errors import EngineUnavailable
from fragdex.speech.alignment import with_vocabulary
from fragdex.speech.engines import (
    EngineChoice,
    Sound,
    floats_of,
    model_files,
    required_package,
)
from fragdex.speech.words import Word

_RATE = 16_000
_LAST_TOKEN: Final = 0.2
"""Seconds that the last token of a word lasts where the model does not say."""
_HOW: Final = (
    "give the folder of a model for sherpa-onnx: tokens.txt with encoder*.onnx, decoder*.onnx and "
    "joiner*.onnx, or with model*.onnx"
)


class Sherpa:
    """The engine (`Engine`) of the package `sherpa-onnx`."""

    name = "sherpa-onnx"
    window_ms = 0
    deterministic = True
    own_vocabulary = False
    languages: frozenset[str] | None = None

    def __init__(self, choice: EngineChoice) -> None:
        self._choice = choice
        self._recognizer: Any = None
        self.version = self.model_id = ""

    def open(self) -> None:
        """Load the model."""
        self.version = required_package(self.name)
        folder = self._choice.model
        if folder is None:
            raise EngineUnavailable("sherpa-onnx needs a model", advice=_HOW)
        transducer = model_files(folder, "tokens.txt", "*encoder*.onnx", "*decoder*.onnx",
                                 "*joiner*.onnx")  # fmt: skip
        ctc = model_files(folder, "tokens.txt", "*model*.onnx")
        if len(transducer) < 4 and len(ctc) < 2:
            raise EngineUnavailable(
                "the model of sherpa-onnx is not complete",
                found=", ".join(path.name for path in transducer or ctc) or "none of its files",
                expected="tokens.txt and .onnx files in the model's folder",
                advice=_HOW,
            )
        import sherpa_onnx

        self.model_id = Path(folder).name
        threads = self._choice.threads or 1
        provider = "cuda" if self._choice.device == "cuda" else "cpu"
        more: dict[str, Any] = {"num_threads": threads, "provider": provider}
        make = sherpa_onnx.OfflineRecognizer
        try:
            if len(transducer) == 4:
                tokens, encoder, decoder, joiner = map(str, transducer)
                self._recognizer = make.from_transducer(
                    tokens=tokens, encoder=encoder, decoder=decoder, joiner=joiner,
                    model_type=_kind(encoder), **more,
                )  # fmt: skip
            else:
                tokens, model = map(str, ctc)
                self._recognizer = make.from_nemo_ctc(model=model, tokens=tokens, **more)
        except (RuntimeError, ValueError, OSError) as error:
            raise EngineUnavailable(
                f"the model of sherpa-onnx cannot be loaded: {str(error)[:200]}",
                advice="unpack it again",
            ) from error

    def detect(self, sounds: Sequence[Sound]) -> str | None:
        """The models do not tell."""
        return None

    def transcribe(
        self, utterances: Sequence[Sound], language: str | None, vocabulary: Sequence[str] = ()
    ) -> list[list[Word]]:
        """The words of each utterance."""
        words: list[list[Word]] = []
        size = max(1, self._choice.batch_size)
        for at in range(0, len(utterances), size):
            part = utterances[at : at + size]
            streams = []
            for sound in part:
                stream = self._recognizer.create_stream()
                stream.accept_waveform(_RATE, floats_of(sound))
                streams.append(stream)
            self._recognizer.decode_streams(streams)
            for sound, stream in zip(part, streams, strict=True):
                result = stream.result
                durations = list(getattr(result, "durations", None) or ())
                scores = list(getattr(result, "ys_log_probs", None) or ())
                end = len(sound) / _RATE
                words.append(
                    words_of_tokens(result.tokens, result.timestamps, durations, scores, end)
                )
        return with_vocabulary(utterances, words, vocabulary)

    def close(self) -> None:
        """Give the model's memory back."""
        self._recognizer = None


def _kind(encoder: str) -> str:
    """How a transducer is to be run: NeMo's name themselves in the metadata, which is not read."""
    data = Path(encoder)
    with data.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - (1 << 16)))
        tail = file.read()
    return "nemo_transducer" if b"EncDec" in tail or "nemo" in str(data).lower() else ""


def words_of_tokens(
    tokens: Sequence[str],
    starts: Sequence[float],
    durations: Sequence[float],
    scores: Sequence[float],
    end: float,
) -> list[Word]:
    """Pieces of words become words: a piece that begins with a space or ▁ begins one.

    Args:
        starts: seconds of each.
        durations: seconds of each, or empty.
        scores: natural logarithms of the probabilities of each, or empty.
    """
    groups: list[list[int]] = []
    for place, token in enumerate(tokens):
        if token[:1] in (" ", "▁") or not groups:
            groups.append([])
        groups[-1].append(place)
    words = []
    for number, group in enumerate(groups):
        text = "".join(tokens[place] for place in group).replace("▁", " ").strip()
        last = group[-1]
        stop = starts[last] + (durations[last] if durations else _LAST_TOKEN)
        following = starts[groups[number + 1][0]] if number + 1 < len(groups) else end
        first, stop = starts[group[0]], min(stop, following, end)
        confidence = None
        if scores:
            confidence = round(float(np.exp(min(0.0, sum(scores[p] for p in group)))), 3)
        if text:
            start_ms = round(first * 1000)
            words.append(Word(text, start_ms, max(start_ms, round(stop * 1000)), confidence))
    return words
