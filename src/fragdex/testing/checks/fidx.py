"""Files and readers of the binary index, held against docs/index-format.md.

The test vectors are files with questions and the answers that the page prescribes, in
`fidx_vectors.tar.xz` in this folder: `NAME.fidx` with `NAME.json`, for readers in any language.
`tests/formats/fidx_vectors.py` makes them.
"""

from __future__ import annotations

import json
import math
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, Final, TypeAlias

from fragdex.errors import DamagedIndex, FragdexError
from fragdex.formats import fidx
from fragdex.record import record
from fragdex.sources import SourceLike
from fragdex.testing.checks.violation import Violation

Question: TypeAlias = Mapping[str, Any]
Answers: TypeAlias = Sequence[Any] | None
FidxReader: TypeAlias = Callable[[bytes, Sequence[Question]], Answers]
"""Given the bytes of a `.fidx` and questions about it: an answer to each, None where there is none;
or None, where it refuses the file. Both are JSON values (docs/index-format.md, Test vectors)."""

ASKED: Final = ("tracks", "init", "seek", "span", "sample", "verify")
"""What a question may `ask`."""
_PAGE: Final = "docs/index-format.md"
_CLOSE: Final = 1e-9
"""Relative difference of seconds that readers may round differently."""


@record(frozen=True, slots=True)
class FidxVector:
    """A file with what a reader has to say of it.

    Attributes:
        name: short, and the name of its files.
        clause: the part of the page that it tries.
        data: the bytes of the `.fidx`.
        questions: the questions.
        answers: an answer to each; None: a reader has to refuse the file.

    >>> vector = next(fidx_vectors())
    >>> (vector.answers is None) or len(vector.answers) == len(vector.questions)
    True
    """

    name: str
    clause: str
    data: bytes
    questions: tuple[Question, ...]
    answers: tuple[Any, ...] | None


def fidx_vectors() -> Iterator[FidxVector]:
    """The test vectors, by name.

    >>> len(list(fidx_vectors())) > 30
    True
    """
    packed = resources.files("fragdex.testing.checks").joinpath("fidx_vectors.tar.xz")
    with packed.open("rb") as file, tarfile.open(fileobj=file, mode="r:xz") as archive:
        files = ((one.name, archive.extractfile(one)) for one in archive)
        content = {name: part.read() for name, part in files if part is not None}
    for file_name, text in content.items():
        if file_name.endswith(".json"):
            plain, name = json.loads(text), file_name.removesuffix(".json")
            answers = plain["answers"]
            yield FidxVector(
                name,
                plain["clause"],
                content[f"{name}.fidx"],
                tuple(plain["questions"]),
                None if answers is None else tuple(answers),
            )


def check_fidx(reader: FidxReader, *, asks: Collection[str] = ASKED) -> list[Violation]:
    """What a reader of `.fidx` files answers wrongly; empty where every answer is right.

    Args:
        reader: given bytes and questions, gives the answers, or None where it refuses the file.
            An exception of it counts as a wrong answer.
        asks: the questions that it answers; those of other kinds are left out.

    >>> check_fidx(fidx_answers)
    []
    >>> str(check_fidx(lambda data, questions: None)[0]).partition(":")[0]
    'cmaf'
    """
    violations = []
    for vector in fidx_vectors():
        chosen = [n for n, one in enumerate(vector.questions) if one["ask"] in asks]
        questions = [vector.questions[n] for n in chosen]
        clause = f"{_PAGE}, {vector.clause}"
        try:
            answers = reader(vector.data, questions)
        except Exception as error:  # noqa: BLE001 - of somebody else's reader
            violations.append(Violation("fidx-reader", clause, vector.name, f"raised {error!r}"))
            continue
        if vector.answers is None:
            if answers is not None:
                message = "was read, and has to be refused"
                violations.append(Violation("fidx-refused", clause, vector.name, message))
            continue
        right = [vector.answers[n] for n in chosen]
        if not isinstance(answers, Sequence) or len(answers) != len(right):
            message = "was refused" if answers is None else f"expected {len(right)} answers"
            violations.append(Violation("fidx-read", clause, vector.name, message))
            continue
        for question, answer, expected in zip(questions, answers, right, strict=True):
            if not is_same(answer, expected):
                message = f"{json.dumps(question)}: expected {expected}, found {answer}"
                violations.append(Violation("fidx-answer", clause, vector.name, message))
    return violations


def check_fidx_file(what: SourceLike) -> list[Violation]:
    """What is wrong with a `.fidx`, for those who write them; empty where nothing is.

    Args:
        what: a path, bytes, or anything else that `open_source` takes.

    Raises:
        SourceError: it cannot be read.

    >>> check_fidx_file(next(fidx_vectors()).data)
    []
    >>> check_fidx_file(b"no index")[0].where
    'byte 0'
    """
    try:
        fidx.verify(what)
    except DamagedIndex as error:
        where = error.path or ("the file" if error.offset is None else f"byte {error.offset}")
        message = str(error).splitlines()[0]
        return [Violation("fidx-file", f"{_PAGE}, Conformance", str(where), message)]
    return []


def fidx_answers(data: bytes, questions: Sequence[Question]) -> list[Any] | None:
    """What fragdex answers: a reader as `check_fidx` takes it.

    >>> vector = next(fidx_vectors())
    >>> fidx_answers(vector.data, vector.questions) == list(vector.answers)
    True
    """
    try:
        index = fidx.read(data)
        for track in index.tracks:
            _ = track.fragments  # checked at their first use
    except DamagedIndex:
        return None
    return [_answer(data, index, question) for question in questions]


def _answer(data: bytes, index: Any, question: Question) -> Any:
    try:
        return _ANSWERS[question["ask"]](data, index, question)
    except (FragdexError, LookupError):
        return None


def _tracks(data: bytes, index: Any, question: Question) -> Any:
    return [
        {
            "id": track.id,
            "kind": track.kind,
            "codec": track.codec,
            "timescale": track.timescale,
            "period": track.period,
            "fragments": len(track.fragments),
            "samples": len(track.samples) if track.samples_ready else None,
        }
        for track in index.tracks
    ]


def _init(data: bytes, index: Any, question: Question) -> Any:
    return [[part.start, part.stop] for part in index.periods[question["period"]].init]


def _seek(data: bytes, index: Any, question: Question) -> Any:
    hit = index.tracks[question["track"]].seek(question["seconds"])
    names = ("fragment", "sample", "offset", "size", "cts", "dts")
    return {name: getattr(hit, name) for name in names} | {
        "seconds": hit.time.seconds,
        "clamped": hit.clamped,
    }


def _span(data: bytes, index: Any, question: Question) -> Any:
    span = index.span(question["start"], question["stop"])
    return [[part.start, part.stop] for part in span.media]


def _sample(data: bytes, index: Any, question: Question) -> Any:
    samples = index.tracks[question["track"]].samples
    names = ("offset", "size", "dts", "cts", "duration", "sync")
    return {name: getattr(samples, name)[question["sample"]].item() for name in names}


def _verify(data: bytes, index: Any, question: Question) -> Any:
    try:
        fidx.verify(data)
    except DamagedIndex:
        return False
    return True


_ANSWERS: Final[dict[str, Callable[[bytes, Any, Question], Any]]] = {
    "tracks": _tracks,
    "init": _init,
    "seek": _seek,
    "span": _span,
    "sample": _sample,
    "verify": _verify,
}


def is_same(actual: Any, expected: Any) -> bool:
    """Whether two answers are equal; seconds may be rounded otherwise.

    >>> is_same({"seconds": 0.1 + 0.2}, {"seconds": 0.3}), is_same([1], [True])
    (True, False)
    """
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return actual.keys() == expected.keys() and all(
            is_same(actual[name], expected[name]) for name in expected
        )
    if isinstance(expected, list) and isinstance(actual, list):
        pairs = zip(actual, expected, strict=False)
        return len(actual) == len(expected) and all(is_same(*pair) for pair in pairs)
    if type(expected) is float and type(actual) in (int, float):
        return math.isclose(actual, expected, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return type(actual) is type(expected) and bool(actual == expected)
