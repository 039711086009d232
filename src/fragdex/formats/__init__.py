"""The index in everyone's form, a file each; the table `FORMS` names them all.

Every form has a `write(index, **options) -> bytes`, and a `read` where it can be read. A form's
module is imported when it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from os import PathLike

from fragdex.errors import did_you_mean, refuse_unknown
from fragdex.seeking import registry
from fragdex.seeking.model import FragmentIndex

__all__ = ["FORMS", "Form", "export", "save"]


@dataclass(frozen=True, slots=True)
class Form:
    """One form of an index.

    Attributes:
        module: where it is written.
        media_type: what a server calls it.
        suffix: what its files are called, with the dot.
        needs_samples: whether every sample must be known.
        description: one line for people.
        function: name of its writer in the module.

    >>> FORMS["csv"].suffix
    '.csv'
    """

    module: str
    media_type: str
    suffix: str
    needs_samples: bool
    description: str
    function: str = "write"


FORMS: dict[str, Form] = {
    "fidx": Form(
        "fragdex.formats.fidx",
        "application/vnd.fragdex.index",
        ".fidx",
        False,
        "binary index, opened by one mmap",
    ),
    "json": Form(
        "fragdex.formats.wire",
        "application/json",
        ".json",
        True,
        "media segments of each track, for players and services",
    ),
    "sidx": Form(
        "fragdex.formats.sidx",
        "application/octet-stream",
        ".sidx",
        False,
        "segment index box (ISO/IEC 14496-12, 8.16.3)",
    ),
    "mfra": Form(
        "fragdex.formats.mfra",
        "application/octet-stream",
        ".mfra",
        True,
        "movie fragment random access box (ISO/IEC 14496-12, 8.8.9)",
    ),
    "hls": Form(
        "fragdex.formats.hls",
        "application/vnd.apple.mpegurl",
        ".m3u8",
        False,
        "HLS media playlist with byte ranges",
    ),
    "dash": Form(
        "fragdex.formats.dash",
        "application/dash+xml",
        ".mpd",
        False,
        "DASH manifest",
    ),
    "arrow": Form(
        "fragdex.formats.arrow",
        "application/vnd.apache.arrow.stream",
        ".arrows",
        False,
        "fragment or sample table as an Arrow stream",
    ),
    "parquet": Form(
        "fragdex.formats.arrow",
        "application/vnd.apache.parquet",
        ".parquet",
        False,
        "fragment or sample table as a Parquet file",
        "write_parquet",
    ),
    "torchcodec": Form(
        "fragdex.formats.torchcodec",
        "application/json",
        ".json",
        True,
        "frame mappings for torchcodec's VideoDecoder",
    ),
    "csv": Form(
        "fragdex.formats.sample_csv",
        "text/csv; charset=utf-8",
        ".csv",
        True,
        "one line a sample, in decode order",
    ),
    "frames": Form(
        "fragdex.formats.frame_table",
        "text/csv; charset=utf-8",
        ".frames.csv",
        True,
        "one line a frame: number, time, bytes",
    ),
    "frames-json": Form(
        "fragdex.formats.frame_table",
        "application/json",
        ".frames.json",
        True,
        "the same as JSON",
        "write_json",
    ),
}
"""Short name, as `index.export` and `--format` take it → the form."""


def export(index: FragmentIndex, form: str, **options: object) -> bytes:
    """The index in another form.

    Args:
        form: a name in `FORMS`.
        options: what the form's own `write` takes.

    Raises:
        ValueError: there is no such form.
        TypeError: the form has no such option.
        InexactIndex: the form needs samples that this index does not have.

    >>> from fragdex.seeking.model import How, SourceInfo
    >>> export(FragmentIndex(SourceInfo(), How("boxes", True), ()), "json")
    b'{}'
    """
    if form not in FORMS:
        near = did_you_mean(str(form), FORMS)
        raise ValueError(f"there is no form {form!r}: expected one of {', '.join(FORMS)}{near}")
    writer = getattr(import_module(FORMS[form].module), FORMS[form].function)
    if options:
        from inspect import signature

        refuse_unknown(f"the form {form}", options, list(signature(writer).parameters)[1:])
    written: bytes = writer(index, **options)
    return written


def save(index: FragmentIndex, path: str | PathLike[str], *, samples: bool = False) -> None:
    """Write the binary index to a file; see `fragdex.formats.fidx.save`.

    >>> import tempfile, pathlib
    >>> from fragdex.seeking.model import How, SourceInfo
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory, "a.fidx")
    ...     save(FragmentIndex(SourceInfo(), How("boxes", True), ()), path)
    ...     path.exists()
    True
    """
    import_module(FORMS["fidx"].module).save(index, path, samples=samples)


registry.offer("export", export)
registry.offer("save", save)


def __dir__() -> list[str]:
    return sorted(__all__)
