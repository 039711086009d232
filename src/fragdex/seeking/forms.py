"""What lower rooms do for an index: the forms in which it is written, and functions by name.

One entry and one signature a form stand here and nowhere else; the writers are in
`fragdex.formats` and `fragdex.packaging`; a form's module is imported when it is used. The command
line reads this table for every `--help`, so this file imports nothing that takes time.

`index.save`, `index.export`, `index.extend` and seeks that look at pictures are done by rooms below
this one (indexing, formats), which this room must not know: their functions stand here by name, and
are imported when they are first called.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload

from fragdex.record import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fragdex.seeking.times import TimeLike
    from fragdex.sources import Source


_FUNCTIONS = {
    "export": "fragdex.formats:export",
    "extend": "fragdex.indexing.growing:extend",
    "samples": "fragdex.formats.media_or_index:samples_again",
    "save": "fragdex.formats.fidx:save",
    "seamed": "fragdex.transcode.smart_cut:seamed",
    "verifier": "fragdex.indexing.verified:verifier",
    "window_form": "fragdex.muxing.window:window_form",
}


@cache
def offered(name: str) -> Callable[..., Any]:
    """The function under a name."""
    module, _, function = _FUNCTIONS[name].partition(":")
    lower: Callable[..., Any] = getattr(import_module(module), function)
    return lower


@record(frozen=True, slots=True)
class Form:
    """One form of an index.

    Attributes:
        module: where it is written, in `fragdex`.
        media_type: what a server calls it.
        suffix: what its files are called, with the dot.
        description: one line for people.
        options: what its writer takes besides the index.
        function: name of its writer in the module.
        needs_samples: whether every sample must be known.
        is_text: whether people read it: without `-o` it goes to stdout.
    """

    module: str
    media_type: str
    suffix: str
    description: str
    options: tuple[str, ...]
    function: str = "write"
    needs_samples: bool = False
    is_text: bool = False


_FRAME_OPTIONS = ("track", "order", "hidden")
FORMS: dict[str, Form] = {
    "fidx": Form(
        "formats.fidx",
        "application/vnd.fragdex.index",
        ".fidx",
        "binary index, opened by one mmap",
        options=("samples",),
    ),
    "json": Form(
        "formats.wire",
        "application/json",
        ".json",
        "media segments of each track, for players and services",
        options=("segment_duration", "period", "unknown"),
        needs_samples=True,
        is_text=True,
    ),
    "sidx": Form(
        "formats.sidx",
        "application/octet-stream",
        ".sidx",
        "segment index box (ISO/IEC 14496-12, 8.16.3)",
        options=("track", "period", "first_offset", "segment_duration"),
    ),
    "mfra": Form(
        "formats.mfra",
        "application/octet-stream",
        ".mfra",
        "movie fragment random access box (ISO/IEC 14496-12, 8.8.9)",
        options=("period", "source"),
        needs_samples=True,
    ),
    "hls": Form(
        "packaging.hls",
        "application/vnd.apple.mpegurl",
        ".m3u8",
        "HLS media playlist with byte ranges",
        options=(
            *("uri", "track", "segment_duration", "playlist", "growing"),
            *("init_uri", "media_uri", "iframes_uri"),
        ),
        is_text=True,
    ),
    "dash": Form(
        "packaging.dash",
        "application/dash+xml",
        ".mpd",
        "DASH manifest",
        options=("uri", "source", "track", "segment_duration", "init_uri"),
        is_text=True,
    ),
    "arrow": Form(
        "formats.arrow",
        "application/vnd.apache.arrow.stream",
        ".arrows",
        "fragment or sample table as an Arrow stream",
        options=("of", "tracks", "container"),
    ),
    "parquet": Form(
        "formats.arrow",
        "application/vnd.apache.parquet",
        ".parquet",
        "fragment or sample table as a Parquet file",
        options=("of", "tracks", "compression"),
        function="write_parquet",
    ),
    "torchcodec": Form(
        "formats.torchcodec",
        "application/json",
        ".json",
        "frame mappings for torchcodec's VideoDecoder",
        options=("track",),
        needs_samples=True,
        is_text=True,
    ),
    "csv": Form(
        "formats.sample_csv",
        "text/csv; charset=utf-8",
        ".csv",
        "one line a sample, in decode order",
        options=("presentation", "tracks"),
        needs_samples=True,
        is_text=True,
    ),
    "frames": Form(
        "formats.sample_csv",
        "text/csv; charset=utf-8",
        ".frames.csv",
        "one line a frame: number, time, bytes",
        options=_FRAME_OPTIONS,
        function="write_frames",
        needs_samples=True,
        is_text=True,
    ),
    "frames-json": Form(
        "formats.sample_csv",
        "application/json",
        ".frames.json",
        "the same as JSON",
        options=_FRAME_OPTIONS,
        function="write_frames_json",
        needs_samples=True,
        is_text=True,
    ),
}
"""Short name, as `index.export` and `--format` take it → the form."""


def forms_with(option: str) -> list[str]:
    """The names of the forms that take an option."""
    return [name for name, form in FORMS.items() if option in form.options]


class Exporting:
    """The method `export` of an index, with the signature of each form."""

    __slots__ = ()

    @overload
    def export(self, form: Literal["fidx"], *, samples: bool = ...) -> bytes: ...
    @overload
    def export(
        self,
        form: Literal["json"],
        *,
        segment_duration: TimeLike | None = ...,
        period: int | None = ...,
        unknown: Mapping[str, object] | None = ...,
    ) -> bytes: ...
    @overload
    def export(
        self,
        form: Literal["sidx"],
        *,
        track: int | None = ...,
        period: int | None = ...,
        first_offset: int = ...,
        segment_duration: TimeLike = ...,
    ) -> bytes: ...
    @overload
    def export(
        self,
        form: Literal["mfra"],
        *,
        period: int | None = ...,
        source: bytes | Source | None = ...,
    ) -> bytes: ...
    @overload
    def export(
        self,
        form: Literal["hls"],
        *,
        uri: str | None = ...,
        track: int | None = ...,
        segment_duration: TimeLike = ...,
        playlist: Literal["media", "iframes", "master"] = ...,
        growing: bool = ...,
        init_uri: str | None = ...,
        media_uri: str = ...,
        iframes_uri: str | None = ...,
    ) -> bytes: ...
    @overload
    def export(
        self,
        form: Literal["dash"],
        *,
        uri: str | None = ...,
        source: bytes | Source | None = ...,
        track: int | None = ...,
        segment_duration: TimeLike = ...,
        init_uri: str | None = ...,
    ) -> bytes: ...
    @overload
    def export(
        self,
        form: Literal["arrow"],
        *,
        of: Literal["fragments", "samples", "sync"] = ...,
        tracks: Iterable[int] | None = ...,
        container: Literal["stream", "file"] = ...,
    ) -> bytes: ...
    @overload
    def export(
        self,
        form: Literal["parquet"],
        *,
        of: Literal["fragments", "samples", "sync"] = ...,
        tracks: Iterable[int] | None = ...,
        compression: str = ...,
    ) -> bytes: ...
    @overload
    def export(self, form: Literal["torchcodec"], *, track: int | None = ...) -> bytes: ...
    @overload
    def export(
        self,
        form: Literal["csv"],
        *,
        presentation: bool = ...,
        tracks: Iterable[int] | None = ...,
    ) -> bytes: ...
    @overload
    def export(
        self,
        form: Literal["frames", "frames-json"],
        *,
        track: int | None = ...,
        order: Literal["presentation", "decode"] = ...,
        hidden: bool = ...,
    ) -> bytes: ...
    def export(self, form: str, **options: object) -> bytes:
        """The index in another form, as bytes.

        Args:
            form: a name in `FORMS`. If it is known only at run time, call
                `fragdex.formats.export`.
            options: those of the form; see docs/cli.md.

        Raises:
            ValueError: there is no such form.
            TypeError: the form has no such option.
            InexactIndex: the form needs samples that this index does not have.
        """
        exported: bytes = offered("export")(self, form, **options)
        return exported
