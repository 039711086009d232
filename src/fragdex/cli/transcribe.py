"""`fragdex transcribe`: speech becomes captions, here or by a service."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fragdex.cli import options, remote
from fragdex.cli.inputs import bytes_of_view, is_url, media_of, notes, open_any, saved_form
from fragdex.cli.output import byte_progress, complain, emit, json_line, part_progress, say
from fragdex.errors import FragdexError, InvalidRequest

if TYPE_CHECKING:
    from fragdex import Index, Source
    from fragdex.client.api import TranscriptionRecord
    from fragdex.speech.captions import CaptionLayout
    from fragdex.speech.words import SliceTranscript, Transcript, Word


_FORMS: Final = ("vtt", "srt", "json")
_MOST_SPANS: Final = 20
"""Doubted spans that are reported on stderr; the JSON has all."""
_SPEAKER: Final = re.compile("S[1-9][0-9]{0,3}")
_MOVIES: Final = (".mp4", ".m4v", ".m4a", ".mov")


@options.opens("init", "strict", "period", "follow", "max_bytes", "max_requests")
def transcribe(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A file with sound (whatever FFmpeg reads), a .fidx index or a URL.",
        ),
    ],
    output: Annotated[
        str | None,
        options.placed(
            "Write there; the suffix decides: .vtt, .srt, .json, or a copy of the file with a"
            " track of captions: .mp4; - is WebVTT to stdout."
        ),
    ] = None,
    track: Annotated[
        int | None,
        typer.Option(
            "--track",
            "-t",
            metavar="ID",
            help="Only this track (track_ID).",
            show_default="the first audio track",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="moonshine, pocketsphinx, faster-whisper or sherpa-onnx.",
            show_default="moonshine, or what the server uses",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="DIR", help="Folder of the engine's model.")
    ] = None,
    download: Annotated[
        bool,
        typer.Option(
            "--download",
            help="Allow a name as --model, which faster-whisper or sherpa-onnx downloads once.",
        ),
    ] = False,
    language: Annotated[
        str | None,
        typer.Option(
            "--language",
            metavar="CODE",
            help="Language code, such as en or de.",
            show_default="what the engine detects, or knows alone",
        ),
    ] = None,
    device: Annotated[
        str, typer.Option("--device", metavar="NAME", help="Compute on it: cpu, cuda or auto.")
    ] = "auto",
    compute_type: Annotated[
        str,
        typer.Option("--compute-type", metavar="TYPE", help="Of faster-whisper: int8, float16 …"),
    ] = "default",
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, metavar="N", help="Utterances recognized at once.")
    ] = 1,
    line_length: Annotated[
        int,
        typer.Option(
            "--line-length", min=10, max=200, metavar="N", help="Characters per line of captions."
        ),
    ] = 42,
    reading_speed: Annotated[
        float,
        typer.Option(
            "--reading-speed",
            min=5,
            max=100,
            metavar="N",
            help="Reading speed in characters a second.",
        ),
    ] = 20,
    min_duration: Annotated[
        float,
        typer.Option(
            "--min-duration", min=0, max=7, metavar="SECONDS", help="Minimum duration of a caption."
        ),
    ] = 1,
    leave_out_doubted: Annotated[
        bool,
        typer.Option(
            "--leave-out-doubted",
            help="Without words that the sound does not bear out, such as those of another"
            " language.",
        ),
    ] = False,
    at_cuts: Annotated[
        bool,
        typer.Option(
            "--at-cuts",
            help="Begin and end captions at cuts of the picture up to 0.3 s away; decodes the"
            " pictures there.",
        ),
    ] = False,
    speakers: Annotated[
        bool,
        typer.Option(
            "--speakers", help="Tell who speaks: S1, S2 … in captions, by voice; any language."
        ),
    ] = False,
    speaker: Annotated[
        list[str] | None,
        typer.Option(
            "--speaker",
            metavar="S1=NAME",
            help="Name a speaker, once for each; with it --speakers is not needed.",
        ),
    ] = None,
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            "--vocabulary",
            metavar="FILE",
            help="Prefer the names and terms in FILE where they are said: UTF-8, one a line.",
        ),
    ] = None,
    slice_seconds: Annotated[
        float,
        typer.Option("--slice", min=5, max=60, metavar="SECONDS", help="Length of the slices."),
    ] = 30,
    jobs: Annotated[
        int,
        typer.Option(
            "--processes",
            min=1,
            metavar="N",
            help="Work in N processes: each with a model in memory.",
        ),
    ] = 1,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="URL",
            help="The service, which transcribes FILE.",
            show_default="here",
        ),
    ] = None,
    key: remote.Key = None,
    json: options.Json = False,
    *,
    opening: dict[str, Any],
) -> int:
    """Turn speech into words with times, and captions.

    Words go to stdout as they are recognized. Slices are cut at pauses and recognized
    separately, so that the result does not depend on their number. Undecodable parts, and words
    that were probably not said, are reported on stderr.

    Examples:
      fragdex transcribe movie.mp4 -o movie.vtt
      fragdex transcribe movie.mp4 -o captioned.mp4 --processes 2
      fragdex transcribe movie.mp4 -o movie.srt --engine faster-whisper --model models/small
      fragdex transcribe talk.mp4 -o talk.vtt --speakers --speaker S1="Ada Lovelace"
      fragdex transcribe talk.mp4 -o talk.vtt --vocabulary words.txt
      fragdex transcribe movie.mp4 -o movie.vtt --server https://media.example.org
    """
    form = _form(output)
    names = _names(speaker or [])
    speakers = speakers or bool(names)
    entries = _vocabulary(vocabulary)
    if server is not None:
        here = {
            "--model": model is not None, "--download": download,
            "--device": device != "auto", "--processes": jobs > 1,
            "--compute-type": compute_type != "default", "--batch-size": batch_size > 1,
            "--line-length": line_length != 42, "--reading-speed": reading_speed != 20,
            "--min-duration": min_duration != 1, "--leave-out-doubted": leave_out_doubted,
            "--at-cuts": at_cuts,
            **{
                f"--{name.replace('_', '-')}": value not in (None, False)
                for name, value in opening.items()
            },
        }  # fmt: skip
        if given := [name for name, value in here.items() if value]:
            raise typer.BadParameter(f"{given[0]} does not go with --server")
        wanted: dict[str, Any] = {"engine": engine, "language": language, "track_id": track}
        wanted |= {"work_slice_ms": round(slice_seconds * 1000), "speakers": speakers}
        wanted |= {"vocabulary": entries} if entries else {}
        return _remotely(file, form, output, server, key, wanted, names, json=json)
    if form == "mp4" and opening["period"] is not None:
        raise typer.BadParameter("--period cannot be used with captions inside a file: write .vtt")
    with options.extra("speech"):
        from fragdex.speech.captions import (
            CaptionLayout,
            languages_in_seconds,
            marked,
            spans_in_seconds,
        )
        from fragdex.speech.engines import EngineChoice, default_engine, make_engine
        from fragdex.speech.transcribe import cuts_of
        from fragdex.speech.transcribe import transcribe as transcribe_file
    engine = engine or default_engine()
    choice = EngineChoice(
        engine,
        model,
        device=device,
        compute_type=compute_type,
        batch_size=batch_size,
        download=download,
    )
    layout = CaptionLayout(
        line_length,
        reading_speed=reading_speed,
        min_duration_ms=round(min_duration * 1000),
        leave_out_doubted=leave_out_doubted,
    )
    make_engine(choice)  # a wrong name is reported before anything is read
    from fragdex import open_source
    from fragdex.errors import NotISOBMFF

    saved = open_any(file, follow=opening["follow"]) if saved_form(file) else None
    media = media_of(saved, file) if saved is not None else file
    budget = {key: opening[key] for key in ("max_bytes", "max_requests")}
    began = time.monotonic()
    shown = not json and output != "-"
    with ExitStack() as stack:
        source = stack.enter_context(open_source(media, **budget))
        try:
            index = saved if saved is not None and form != "mp4" else _index(source, opening)
        except NotISOBMFF:
            if form == "mp4" or opening["init"] is not None:
                raise
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            media = _sound_of(source, track, Path(folder))
            source = stack.enter_context(open_source(media))
            index, track = _index(source, opening), None
        if opening["period"] is not None:
            index = index.of_period(opening["period"])
        for note in notes(index, findings=False):
            complain(f"{file}: {note}")
        with part_progress(file, "slices") as progress:

            def heard(one: SliceTranscript, done: int, of: int) -> None:
                if shown and not speakers:
                    for line in _lines(one.words):
                        say(line + "\n")
                progress(done, of)

            transcript = transcribe_file(
                source if any(value is not None for value in budget.values()) else media,
                index=index,
                track=track,
                choice=choice,
                language=language,
                work_slice_ms=round(slice_seconds * 1000),
                jobs=jobs,
                init=_init(opening["init"]),
                speakers=speakers,
                vocabulary=entries,
                on_slice=heard,
                on_stretch=progress,
            )
        if names:
            transcript = replace(transcript, names=_known(file, names, transcript.speakers))
        if speakers and shown:
            for line in _lines(marked(transcript)):
                say(line + "\n")
        if form is not None:
            if at_cuts:
                try:
                    cuts = cuts_of(
                        transcript, source, layout,
                        index=index, track=track, init=_init(opening["init"]),
                    )  # fmt: skip
                    layout = replace(layout, cuts_ms=cuts)
                except FragdexError as error:  # the words are there
                    complain(f"{file}: captions do not follow cuts of the picture: {error}")
            _write(transcript, layout, form, output, index, source)
    spans = {
        "languages": languages_in_seconds(transcript),
        "doubted": spans_in_seconds(transcript.doubted),
        "unattributed": spans_in_seconds(transcript.unattributed),
    }
    _report(file, output, transcript, spans, len(transcript.words), began, json=json)
    return 0


def _remotely(
    file: str, form: str | None, output: str | None, server: str, key: str | None,
    wanted: dict[str, Any], names: dict[str, str], *, json: bool,
) -> int:  # fmt: skip
    if output == "-":
        raise typer.BadParameter("-o - does not go with --server: name a file")
    began = time.monotonic()
    with remote.client_of(server, key) as client:
        record = transcribe_remotely(client, file, form, output, names, **wanted)
        from msgspec import to_builtins

        from fragdex.client import api

        document = client.send(api.download_transcription_json(record.id))
        called = {one.id: one.name or one.id for one in document.speakers}
        for one in () if json else document.segments:
            who = f"{called[one.speaker]}: " if one.speaker else ""
            say(_shown(one.start, who + one.text) + "\n")
    spans = {
        name: to_builtins(getattr(document, name))
        for name in ("languages", "doubted", "unattributed")
    }
    _report(file, output, record, spans, record.words or 0, began, json=json, id=record.id)
    return 0


def _vocabulary(path: Path | None) -> Sequence[str]:
    """The lines of a file of names and terms."""
    if path is None:
        return ()
    with options.extra("speech"):
        from fragdex.speech.vocabulary import MOST_BYTES, plain_vocabulary
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"--vocabulary {path}: {error}") from None
    if len(data) > MOST_BYTES:
        raise typer.BadParameter(f"--vocabulary {path}: larger than {MOST_BYTES:,} bytes")
    try:
        return plain_vocabulary(text.splitlines())
    except InvalidRequest as error:
        raise typer.BadParameter(f"--vocabulary {path}: {error}") from None


def _names(given: Sequence[str]) -> dict[str, str]:
    """A table of names, from S1=NAME."""
    if not given:
        return {}
    with options.extra("speech"):
        from fragdex.speech.speakers import plain_name
    names = {}
    for one in given:
        speaker, sign, name = one.partition("=")
        if not sign or not _SPEAKER.fullmatch(speaker):
            raise typer.BadParameter(f"--speaker {one}: write S1=NAME, S2=NAME …")
        names[speaker] = plain_name(name, "--speaker")
    return names


def _known(file: str, names: dict[str, str], speakers: Sequence[str]) -> dict[str, str]:
    """The names of those who speak; the others are reported, and nothing is lost for them."""
    for one in names.keys() - set(speakers):
        complain(f"{file}: there is no speaker {one}: {', '.join(speakers) or 'nobody speaks'}")
    return {one: name for one, name in names.items() if one in speakers}


def _form(output: str | None) -> str | None:
    if output is None or output == "-":
        return "vtt" if output else None
    suffix = Path(output).suffix.lower()
    if suffix in _MOVIES:
        return "mp4"
    if suffix.removeprefix(".") not in _FORMS:
        known = ", ".join(f".{form}" for form in _FORMS)
        raise typer.BadParameter(f"{output}: the name must end in {known} or .mp4")
    return suffix.removeprefix(".")


def _index(source: Source, opening: dict[str, Any]) -> Index:
    from fragdex import index

    return index(source, init=opening["init"], strict=opening["strict"], exact=True)


def _sound_of(source: Source, track: int | None, folder: Path) -> str:
    """A track of sound of a file of any form, as MP4, in an empty folder.

    Raises:
        TrackNotFound: no such track, or none of sound.
        Unprocessable: FFmpeg's libraries do not read the file.
    """
    from fragdex.errors import TrackNotFound
    from fragdex.transcode.running import run

    with tempfile.NamedTemporaryFile(dir=folder.parent) as copy:
        path = source.name if Path(source.name).is_file() else copy.name
        if path == copy.name:
            for piece in source.pieces():
                copy.write(piece)
            copy.flush()
        tracks = run(Path(path), folder, sound_alone=True)
    for one in tracks:
        if track in (None, one.track_id):
            return str(one.path)
    if track is None or not tracks:
        raise TrackNotFound("there is no audio track")
    known = ", ".join(str(one.track_id) for one in tracks)
    raise TrackNotFound(f"track {track} is not an audio track", expected=f"one of {known}")


def _init(name: str | None) -> bytes | None:
    if name is None:
        return None
    from fragdex import open_source

    with open_source(name) as source:
        return b"".join(bytes(piece) for piece in source.pieces())


def _write(
    transcript: Transcript, layout: CaptionLayout, form: str, output: str | None,
    index: Index, source: Source,
) -> None:  # fmt: skip
    if form != "mp4":
        from fragdex.speech.captions import FORMS

        write, _ = FORMS[form]
        # Captions have an escaping of their own.
        emit([write(transcript, layout).encode()], output)
        return
    from fragdex.muxing.copies import captioned
    from fragdex.speech.captions import cues_of, marked

    cues = cues_of(marked(transcript), layout)
    view = captioned(index, source, cues, transcript.language)
    emit(bytes_of_view(view, source), output)


def _lines(words: Sequence[Word]) -> Iterator[str]:
    """Words as people read them along, with the moment each line begins."""
    from fragdex.speech.captions import cues_of

    for cue in cues_of(words):
        yield _shown(cue.start_ms / 1000, cue.text)


def _shown(seconds: float, text: str) -> str:
    from fragdex.seeking.show import clock

    return f"{clock(seconds)}  {' '.join(text.split())}"


def _report(
    file: str, output: str | None, result: Transcript | TranscriptionRecord,
    spans: Mapping[str, list[dict[str, Any]]], words: int, began: float, *, json: bool, **more: Any,
) -> None:  # fmt: skip
    missing = [
        {"start": span.start_ms / 1000, "end": span.end_ms / 1000, "reason": span.reason}
        for span in result.missing
    ]
    for one in missing:
        complain(
            f"{file}: {one['start']:.3f} s to {one['end']:.3f} s could not be transcribed: "
            f"{one['reason']}"
        )
    for name, what in (
        ("doubted", "was probably not said so"), ("unattributed", "has no speaker"),
    ):  # fmt: skip
        for one in spans[name][:_MOST_SPANS]:
            complain(f"{file}: {one['start']:.3f} s to {one['end']:.3f} s {what}: {one['reason']}")
        if len(spans[name]) > _MOST_SPANS:
            complain(f"{file}: and {len(spans[name]) - _MOST_SPANS:,} more such spans")
    facts = {
        "file": file,
        **more,
        "captions": output,
        "words": words,
        "language": result.language,
        "speakers": len(result.speakers or ()),
        "engine": result.engine,
        "missing": missing,
        **spans,
        "seconds": round(time.monotonic() - began, 3),
    }
    if json:
        say(json_line(facts), err=output == "-")
    else:
        say(_line(facts) + "\n", err=True)


def _line(facts: dict[str, Any]) -> str:
    words = f"{facts['words']:,} word{'' if facts['words'] == 1 else 's'}"
    languages = dict.fromkeys(one["language"] for one in facts["languages"])
    language = f" ({', '.join(languages) or facts['language']})" if facts["language"] else ""
    where = f"{facts['captions']}: " if facts["captions"] not in (None, "-") else ""
    return f"{where}{words}{language} by {facts['engine']}, in {facts['seconds']:.1f} s"


def transcribe_remotely(
    client: Any, file: str, form: str | None, output: str | None, names: dict[str, str],
    **wanted: Any,
) -> Any:  # fmt: skip
    """Send a file, have it transcribed, and receive the captions.

    Args:
        form: vtt, srt, json or mp4; None: no captions are received.
        output: the file that they are written to.
        names: of speakers.
        wanted: engine, language, speakers, track_id, vocabulary and work_slice_ms, as of the
            interface.

    Raises:
        FragdexError: the file or its transcription failed.
        ClientError: the service refuses, or does not answer.
    """
    from fragdex.client import api

    if is_url(file):
        raise FragdexError(f"{file}: only files can be sent to a service")
    with byte_progress(file) as progress:
        sent = client.push(file, type="video", progress=progress)
    sent = remote.wait_until_processed(client, sent, file)
    if sent.problem:
        raise FragdexError(f"{file}: {sent.problem.detail}")
    ordered = client.send(api.create_transcription(file_id=sent.id, **wanted))
    cancelled = remote.cancelled_by_ctrl_c(
        client, api.cancel_transcription(ordered.id), f"transcription {ordered.id}"
    )
    with cancelled, part_progress(file, "slices") as shown:
        remote.follow(client, api.get_transcription_progress(ordered.id), shown)
    record = client.send(api.get_transcription(ordered.id))
    if record.problem:
        raise FragdexError(f"{file}: {record.problem.detail}")
    if names:
        names = _known(file, names, [one.id for one in record.speakers or ()])
        record = client.send(api.update_transcription_speakers(record.id, names=names))
    if form == "mp4":
        record = _copied(client, record)
    if form is not None and output is not None:
        download = getattr(api, f"download_transcription_{form}")
        with byte_progress(output) as progress:
            client.download(download(record.id), output, progress=progress)
    return record


def _copied(client: Any, record: TranscriptionRecord) -> TranscriptionRecord:
    """The record once the copy of the file with its captions is there."""
    import time

    from fragdex.client import api

    client.send(api.copy_transcription(record.id))
    pause = 0.2
    while True:
        record = client.send(api.get_transcription(record.id))
        copy = record.copy_with_captions
        if copy is not None and copy.problem:
            raise FragdexError(f"no copy with captions: {copy.problem.detail}")
        if copy is not None and copy.status == "complete":
            return record
        time.sleep(pause)  # there are no events of copies
        pause = min(2 * pause, 5.0)
