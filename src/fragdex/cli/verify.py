"""`fragdex verify`, `md5` and `compare`: files held against indexes, digests, and each other."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import (
    STDIN,
    InputWork,
    exact_again,
    expand,
    open_any,
    opened_media,
    saved_form,
    source_of,
    stem,
)
from fragdex.cli.output import byte_progress, complain, emit, json_line, say, validate_folder
from fragdex.errors import FragdexError, MissingExtra

if TYPE_CHECKING:
    import numpy as np

    from fragdex.decoding.comparison import Comparison, FrameDifference
    from fragdex.muxing.absence import Absence


@options.opens("init", "strict", "max_bytes", "max_requests")
def verify(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The media file or URL.")],
    indexes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INDEX",
            help="Its .fidx or JSON indexes, or the proof of a view (--proof). Default: the sidx or"
            " mfra inside FILE.",
        ),
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(
            "--root",
            metavar="DIGEST",
            help="The Merkle root of the source of a view, as you trust it (64 hex digits).",
        ),
    ] = None,
    without: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--without",
            metavar="T0 T1",
            help="Prove that no sample of this span of INDEX, which is the source then, is in FILE;"
            " more spans follow.",
        ),
    ] = None,
    json: options.Json = False,
    output: options.Output = None,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Check an index against its file and list every difference; exit code 1 if there is one.

    Every fragment's header in FILE is read. For a .fidx the checksums of all columns are tested
    too, and the md5 of FILE and the digests of its fragments if the index has them (--md5,
    --digests): damaged fragments are named, with their times. A proof says which bytes of a view
    are those of its source. With --without, every byte of FILE is compared with the samples of a
    span of another file, hidden or shown.

    Examples:
      fragdex verify movie.mp4 movie.fidx
      fragdex verify clip.mp4 clip.json --root 95ce8f9f…
      fragdex verify movie.mp4                 the sidx or mfra inside
      fragdex verify shorter.mp4 movie.mp4 --without 1:00 2:00
    """
    # FILE may have changed since an earlier call in this process.
    for cached in (_exact, _md5, _proof):
        cached.cache_clear()
    work = InputWork("verify")
    if root is not None and not re.fullmatch("[0-9A-Fa-f]{64}", root):
        raise typer.BadParameter(f"--root is a SHA-256 of 64 hex digits: {root}")
    if without:
        # as `remove` takes them: those of further spans are where indexes are
        source, *more = indexes or [""]
        if not source or len(more) % 2:
            raise typer.BadParameter("needs: verify FILE SOURCE --without T0 T1 [T0 T1 …]")
        times = [*map(options.parse_time, (*without, *more))]
        spans = [*zip(times[::2], times[1::2], strict=True)]
        looking = partial(_looked_for, file=file, spans=spans, opening=opening)
        for name, absence in work.each(looking, expand([source]), 1):
            work.code = max(work.code, 1 if absence.findings else 0)
            emit(_absence_lines(file, name, absence, json), output)
        return work.code
    comparing = partial(_compare, file=file, root=root, opening=opening)

    def pieces() -> Iterator[str]:
        names = expand(indexes) if indexes else [file]
        # Without FILE's own structure, only its digests can check an index.
        try:
            _exact(file, **opening)
        except FragdexError as error:
            names = [n for n in names if n != file and (_proof(n) or _has_digests(n))]
            if not names:
                work.fail(file, str(error))
                return
        for _, (label, differing) in work.each(comparing, names, jobs):
            if differing:
                work.code = max(work.code, 1)
            yield from _report(file, label, differing, json)

    emit(pieces(), output)
    return work.code


def _looked_for(
    name: str, file: str, spans: Sequence[tuple[Any, Any]], opening: dict[str, Any]
) -> tuple[Absence, Sequence[str]]:
    """What a file has of spans of a source."""
    from fragdex.muxing.absence import left_of

    how = {"ignore_mtime": False, "follow": False, **opening}
    with opened_media(name, how) as (index, source, _), source_of(file, opening) as other:
        if not all(track.has_samples for track in index.tracks):
            index = exact_again(index, source, how)
        with options.usage():
            return left_of(other, index, source, spans), ()


def _absence_lines(file: str, name: str, absence: Absence, json: bool) -> Iterator[str]:
    from fragdex.muxing.absence import BLOCK

    if json:
        value = {"file": file, "source": name, "ok": not absence.findings, **asdict(absence)}
        yield json_line(value)
        return
    yield from (f"{file}: {finding}\n" for finding in absence.findings)
    if absence.left > len(absence.findings):
        yield f"{file}: and {absence.left - len(absence.findings):,} more samples\n"
    what = f"of {absence.samples:,} samples of {name}"
    if absence.apart > BLOCK:
        what += f"; pieces of less than {absence.apart + BLOCK - 1:,} bytes were not looked for"
    if absence.short:
        what += f"; {absence.short:,} very short ones were only compared with whole samples"
    yield f"{file}: " + (
        f"FAILED, {absence.left:,} {what}\n" if absence.left else f"OK, none {what}\n"
    )


@cache
def _exact(file: str, **opening: Any) -> Any:
    """What FILE says itself, read once in each process."""
    import fragdex

    given = {key: value for key, value in opening.items() if value is not None}
    return fragdex.index(file, exact=True, **given)


@cache
def _md5(file: str) -> str:
    import fragdex

    with byte_progress(file) as bar:
        return fragdex.sources.md5(file, progress=bar).hex


def _compare(
    name: str, file: str, root: str | None, opening: dict[str, Any]
) -> tuple[tuple[str, list[Any]], Sequence[str]]:
    """What to call an index, and its differences from the file; FILE itself: the index inside."""
    from fragdex.fragments.findings import Finding
    from fragdex.seeking.difference import differences

    if name == file:
        return _embedded(file, _exact(file, **opening), opening), ()
    if (proof := _proof(name)) is not None:
        return _unproved(name, proof, file, root, opening)
    form = saved_form(name)
    if form is None:
        raise FragdexError(
            f"{name} is not a saved index that verify takes: a .fidx, or JSON "
            "(fragdex index -f fidx or json)",
            advice="the sidx or mfra inside a file is verified by: fragdex verify FILE",
        )
    if form == "fidx":
        from fragdex.formats import fidx

        # raises DamagedIndex, as opening does where the head is damaged
        fidx.verify(name)
    claimed = open_any(name, compare=False)
    differing = _damage(file, claimed, opening) if claimed.digests is not None else []
    try:
        truth = _exact(file, **opening)
    except FragdexError as error:
        if not differing:
            raise
        return (name, [*differing, Finding("unreadable", str(error))]), ()
    if opening["init"] is None and _knows_more(claimed, truth):
        # made with an initialization segment, which the index knows and the file does not
        truth = _exact(file, **{**opening, "init": claimed})
    differing += differences(claimed, truth)
    if claimed.file.md5 is not None:
        digest = _md5(file)
        if digest != claimed.file.md5:
            message = f"the md5 of the file is {digest}, the index says {claimed.file.md5}"
            differing.append(Finding("md5", message))
    return (name, differing), ()


@cache
def _proof(name: str) -> Any:
    """The proof of a view that is in a file; None: there is none."""
    if saved_form(name) != "json":
        return None
    import json

    from fragdex.muxing.proof import Proof

    with open(name, encoding="utf-8") as file:
        try:
            values = json.load(file)
        except ValueError:
            return None
    return Proof.from_json(values) if "kept" in values else None


def _unproved(
    name: str, proof: Any, file: str, root: str | None, opening: dict[str, Any]
) -> tuple[tuple[str, list[Any]], Sequence[str]]:
    """Which of the proved bytes of a view are others."""
    from fragdex.fragments.findings import Finding

    differing = []
    notes = []
    if root is None:
        notes.append(f"the root is {proof.root.hex()}: --root compares it with one that you trust")
    elif proof.root.hex() != root.lower():
        differing.append(
            Finding("other-root", f"the root is {proof.root.hex()}, not {root.lower()}")
        )
    if not proof.kept:
        notes.append("it proves no byte: no piece that the source has a digest of is whole in it")
    with source_of(file, opening) as source:
        for wrong in proof.wrong(source):
            text = f"{wrong.size:,} bytes are not those of the source"
            differing.append(Finding("damaged-bytes", text, offset=wrong.start))
    return (name, differing), notes


def _has_digests(name: str) -> bool:
    """Whether an index tells which bytes of a file are damaged, even of one that cannot be read."""
    return saved_form(name) == "fidx" and open_any(name, compare=False).digests is not None


def _damage(file: str, claimed: Any, opening: dict[str, Any]) -> list[Any]:
    """The damaged fragments of a file."""
    from fragdex.indexing.piece_digests import damage

    with byte_progress(file) as bar, source_of(file, opening) as source:
        return list(damage(claimed, source, bar))


def _knows_more(claimed: Any, truth: Any) -> bool:
    """Whether an index has the tracks of a moov, and the file has no moov."""
    return not any(period.movie.tracks for period in truth.periods) and any(
        period.movie.tracks for period in claimed.periods
    )


def _embedded(file: str, truth: Any, opening: dict[str, Any]) -> tuple[str, list[Any]]:
    """The sidx or mfra inside a file; one that was not believed says why among the findings."""
    import fragdex
    from fragdex.seeking.difference import differences

    with source_of(file, opening) as source:
        # A local file is walked as a rule: that is cheap, and its mfra is not looked at.
        source.remote = True
        claimed = fragdex.index(source, init=opening["init"])
    if claimed.how.method in ("sidx", "mfra"):
        return f"{stem(file)}'s {claimed.how.method}", list(differences(claimed, truth))
    doubts = [f for f in claimed.findings if f.code.startswith(("sidx", "mfra"))]
    if not doubts:
        raise FragdexError(
            f"{file} has no sidx and no mfra inside to be verified",
            advice="name an index: fragdex verify FILE INDEX",
        )
    return f"{stem(file)}'s index", doubts


def _report(file: str, label: str, differing: list[Any], json: bool) -> Iterator[str]:
    if json:
        value = {"file": file, "index": label, "ok": not differing}
        yield json_line({**value, "differences": [asdict(finding) for finding in differing]})
        return
    for finding in differing:
        yield f"{label}: {finding}\n"
    count = f"{len(differing)} difference{'' if len(differing) == 1 else 's'}"
    yield f"{label}: {'OK' if not differing else f'FAILED, {count}'}\n"


# What md5sum writes: digest, space, space or star (text or binary), name; a backslash first if
# backslashes and line breaks in the name are written as \\ and \n.
_LINE = re.compile(r"(\\?)([0-9A-Fa-f-]{32,36}) [ *](.+)", re.DOTALL)
_ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}


@options.opens("max_bytes", "max_requests")
def md5(
    files: options.Files,
    check: Annotated[
        bool,
        typer.Option(
            "--check", "-c", help="FILEs are lists of digests; check the files that they name."
        ),
    ] = False,
    dashed: Annotated[
        bool, typer.Option("--dashed", help="Print digests in the 8-4-4-4-12 form of UUIDs.")
    ] = False,
    json: options.Json = False,
    output: options.Output = None,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Print or check md5 digests of whole files, as md5sum does; - is stdin.

    With -c, each line of FILE is a digest (plain or dashed) and a name, and the exit code is 1 if
    any differs or cannot be read.

    Examples:
      fragdex md5 *.mp4 > sums.md5
      fragdex md5 -c sums.md5
    """
    hashing = partial(_digest, opening=opening, progress=jobs == 1)
    if check:
        checking = _Check(hashing, json, jobs)
        emit(checking.lines(expand(files)), output)
        return checking.code

    work = InputWork("md5")

    def lines() -> Iterator[str | bytes]:
        for name, (plain, uuid_form) in work.each(hashing, expand(files), jobs):
            digest = uuid_form if dashed else plain
            if json:
                yield json_line({"file": name, "md5": digest})
            else:
                safe = "".join(_ESCAPED.get(c, c) for c in name)
                # As bytes: md5sum's escaping, and no other, so that names can be read again.
                line = f"{'' if safe == name else chr(92)}{digest}  {safe}\n"
                yield line.encode("utf-8", "surrogateescape")

    emit(lines(), output)
    return work.code


def _digest(
    name: str, *, opening: dict[str, Any], progress: bool
) -> tuple[tuple[str, str], Sequence[str]]:
    """Hex and dashed digest of one input."""
    if name == STDIN:
        from fragdex.digest import Md5

        running = Md5()
        while piece := sys.stdin.buffer.read(1 << 20):
            running.update(piece)
        digest = running.digest()
    else:
        from fragdex.sources import md5 as md5_of

        with byte_progress(name) if progress else nullcontext() as bar:
            digest = md5_of(name, progress=bar, **opening)
    return (digest.hex, digest.dashed), ()


class _Check:
    """Lists of digests held against the files they name."""

    def __init__(
        self, hashing: partial[tuple[tuple[str, str], Sequence[str]]], json: bool, jobs: int
    ) -> None:
        self.hashing, self.json, self.jobs = hashing, json, jobs
        self.code = self.differing = self.unread = self.malformed = 0

    def lines(self, lists: Sequence[str]) -> Iterator[str]:
        """`name: OK` or `name: FAILED` for each line; counts of what went wrong on stderr."""
        expected: list[tuple[str, str]] = []
        for name in lists:
            expected += self._read(name)
        work = InputWork("md5 -c")
        names = [name for name, _ in expected]
        digests = dict(work.each(self.hashing, list(dict.fromkeys(names)), self.jobs))
        for name, digest in expected:
            if name not in digests:
                self.unread += 1
                verdict = "FAILED open or read"
            elif digest == digests[name][0]:
                verdict = "OK"
            else:
                self.differing += 1
                verdict = "FAILED"
            yield (
                json_line({"file": name, "ok": verdict == "OK"})
                if self.json
                else (f"{name}: {verdict}\n")
            )
        self._count("line", self.malformed, "is improperly formatted", "are improperly formatted")
        self._count("listed file", self.unread, "could not be read", "could not be read")
        self._count("computed checksum", self.differing, "did NOT match", "did NOT match")
        if self.differing or self.unread:
            self.code = max(self.code, 1)

    def _read(self, name: str) -> list[tuple[str, str]]:
        if name == STDIN:
            text = sys.stdin.read()
        else:
            with open(name, encoding="utf-8", errors="surrogateescape") as file:
                text = file.read()
        listed, malformed = [], 0
        for line in text.splitlines():
            entry = _entry(line)
            if entry is not None:
                listed.append(entry)
            elif line.strip() and not line.startswith("#"):
                malformed += 1
        if not listed:
            complain(f"{name}: no properly formatted md5 lines found")
            self.code = 2
        else:
            self.malformed += malformed
        return listed

    @staticmethod
    def _count(noun: str, count: int, one: str, many: str) -> None:
        if count:
            complain(
                f"WARNING: {count} {noun}{'' if count == 1 else 's'} {one if count == 1 else many}"
            )


def _entry(line: str) -> tuple[str, str] | None:
    """Name and hex digest of one line, or None where the line is not one."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    from fragdex.digest import parse_digest
    from fragdex.errors import InvalidDigest

    escaped, digest, name = match.groups()
    if escaped:
        name = re.sub(r"\\([\\nr])", lambda m: {"\\": "\\", "n": "\n", "r": "\r"}[m[1]], name)
    try:
        return name, parse_digest(digest).hex
    except InvalidDigest:
        return None


_SHOWN = 10
_LOUDER = 4


def compare(
    one: Annotated[str, typer.Argument(metavar="FILE", help="A video, a picture or sound.")],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="Another one.")],
    output: Annotated[
        str | None,
        options.placed(
            "Write there: a .png of the frame that differs most, in both, and of what differs."
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            min=0,
            max=255,
            metavar="N",
            help="Differences of a channel up to N of 255 count as equal.",
        ),
    ] = 0,
    json: options.Json = False,
) -> int:
    """Find where two videos differ: frames, samples, and how much. Exit code 1 if they do.

    Frames are compared by their number, as they are decoded: PSNR of all channels, SSIM of the
    brightness, and the rectangle with all differing pixels. Sound is compared sample by
    sample.

    Examples:
      fragdex compare before.mp4 after.mp4
      fragdex compare before.mp4 after.mp4 --tolerance 3 -o worst.png
    """  # fmt: skip
    from fragdex.decoding.comparison import compare as compared

    if output is not None and Path(output).suffix.lower() != ".png":
        raise typer.BadParameter(f"-o {output}: a name that ends in .png is expected")
    if output is not None:
        validate_folder(output)
    worst: list[np.ndarray[Any, Any]] = []

    def keep(*frames: np.ndarray[Any, Any]) -> None:
        worst[:] = frames

    comparison = compared(one, other, tolerance=tolerance, worst=keep)
    if output is not None and worst:
        emit([_picture(*worst)], output)
    say(json_line(_facts(one, other, comparison)) if json else "".join(_lines(comparison)))
    return 0 if comparison.is_equal else 1


def _facts(one: str, other: str, comparison: Comparison) -> dict[str, Any]:
    # PSNR and times are finite: frames that are listed differ
    return {"file": one, "other": other, "equal": comparison.is_equal, **asdict(comparison)}


def _lines(comparison: Comparison) -> list[str]:
    lines = [_of_frame(one) + "\n" for one in comparison.told[:_SHOWN]]
    (a, b), sound = comparison.frames, comparison.sound
    if comparison.sizes[0] != comparison.sizes[1] and a and b:
        sizes = " and ".join("×".join(map(str, size or ())) for size in comparison.sizes)
        lines.append(f"pictures of other sizes: {sizes}\n")
    elif len(comparison.told) > _SHOWN:
        lines.append("… more frames; --json lists them\n")
    if comparison.worst is not None and len(comparison.told) > 1:
        lines.append(f"most: {_of_frame(comparison.worst)}\n")
    if a or b:
        count = f"{a:,}" if a == b else f"{a:,} and {b:,}"
        lines.append(f"pictures: {comparison.differing:,} of {count} frames differ\n")
    if comparison.mistimed:
        lines.append(f"times: {comparison.mistimed:,} frames are the same, at other times\n")
    if sound.samples != (None, None):
        lines.append(_of_sound(comparison))
    return [*lines, "equal\n"] if comparison.is_equal else lines


def _of_frame(one: FrameDifference) -> str:
    left, top, width, height = one.box
    when = "" if one.seconds is None else f" ({one.seconds:.3f} s)"
    return (
        f"frame {one.frame}{when}: PSNR {one.psnr:.2f} dB, SSIM {one.ssim:.4f}, up to "
        f"{one.largest:g} of 255, {width}×{height} pixels at {left},{top}"
    )


def _of_sound(comparison: Comparison) -> str:
    sound = comparison.sound
    if None in sound.samples:
        return "sound: only one has any\n"
    for what, unit in (("rates", " Hz"), ("channels", " channels")):
        a, b = getattr(sound, what)
        if a != b:
            return f"sound: {a}{unit} and {b}{unit}\n"
    a, b = sound.samples
    count = f"{a:,}" if a == b else f"{a:,} and {b:,}"
    line = f"sound: {sound.differing:,} of {count} samples differ"
    if sound.first is None:
        return f"{line}\n"
    return f"{line}, the first at {sound.first:.6f} s, by up to {sound.largest:.2g} of full scale\n"


def _picture(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bytes:
    """Both frames side by side, and what differs, brighter than it is."""
    import io

    import numpy as np

    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise MissingExtra("the picture needs Pillow", extra="media") from None
    differences = np.abs(one.astype(np.int16) - other)
    shown = np.minimum(differences * _LOUDER, 255).astype(np.uint8)
    if shown.shape[2] == 4:
        # where only alpha differs, that has to be seen
        shown = np.dstack(
            [np.maximum(shown[:, :, :3], shown[:, :, 3:]), np.full_like(shown[:, :, :1], 255)]
        )
    out = io.BytesIO()
    Image.fromarray(np.concatenate([one, other, shown], axis=1)).save(out, "PNG")
    return out.getvalue()
