"""Transcriptions over HTTP, and those of ISOBMFF files and of files of any type."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Body, Depends, Path, Query, Request, Response

from fragdex.errors import Finished, NotReady, NotYet, RecordNotFound, Unprocessable
from fragdex.service.files.operations import isobmff_id
from fragdex.service.isobmff.operations import own_id
from fragdex.service.transcriptions import operations
from fragdex.service.transcriptions.model import (
    BegunTranscription,
    FileTranscription,
    FragmentWords,
    NewTranscription,
    SpeakerNames,
    TrackChoice,
    TranscriptionList,
    TranscriptionRecord,
    TranscriptionStatus,
    WholeTranscription,
)
from fragdex.service.transcriptions.records import TRANSCRIPTIONS
from fragdex.service.uploads.family import NOT_FOUND, Family
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.events import counted
from fragdex.service.web.fields import RecordId
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import answers
from fragdex.service.web.ranges import (
    made_text,
    made_text_answers,
    media_answers,
    media_of,
    text_of,
)
from fragdex.service.web.routing import PREFIX, api_router, get_and_head
from fragdex.service.web.threads import asks_store
from fragdex.speech.captions import BOUNDS, FORMS, CaptionLayout

router = api_router("transcriptions")
routes = Family(router, "/transcriptions", "transcription")

REFUSED = answers(RecordNotFound, NotReady, Unprocessable)
MEDIA = {**answers(RecordNotFound, NotReady), **media_answers("video/mp4")}
GOING: dict[int | str, dict[str, Any]] = {
    200: {"model": BegunTranscription, "description": "One of this track is being made"}
}


@router.post(
    "/transcriptions", status_code=201, responses=REFUSED, dependencies=[Depends(idempotency_key)]
)
@asks_store
def create_transcription(
    new: NewTranscription, response: Response, caller: Asking, context: InContext
) -> TranscriptionRecord:
    """Transcribe the speech of a track. Always creates a new transcription; earlier ones stay."""
    record = operations.create_transcription(context, caller.tenant_id, new)
    response.headers["Location"] = f"{PREFIX}/transcriptions/{record.id}"
    return record


routes.listing(TranscriptionList, TranscriptionStatus, TRANSCRIPTIONS.page)


routes.progress(
    operations.look,
    counted,
    "`size {size}` once the number of slices is known, `completion {count}` for slices that were "
    "transcribed since, then `complete` or `error`",
    description="The progress of a transcription as events; without `Last-Event-ID` from the "
    "beginning.",
)


async def _slice_number(
    caller: Asking,  # who has no key learns nothing
    n: Annotated[str, Path(description="counts from 0", examples=["0"])],
) -> int:
    if not (n.isascii() and n.isdigit() and len(n) <= 9):
        raise RecordNotFound("there is no such slice")
    return int(n)


@router.get(
    "/transcriptions/{id}/fragments/{n}",
    response_model=FragmentWords,
    responses=answers(RecordNotFound, NotYet),
)
def get_transcription_fragment(
    id: RecordId, n: Annotated[int, Depends(_slice_number)], caller: Asking, context: InContext
) -> dict[str, Any]:
    """The words of a slice, times in seconds; 404 until it and its neighbours are transcribed."""
    return operations.fragment(context, caller.tenant_id, id, n)


def _bounded(name: str, meaning: str) -> Any:
    low, high = BOUNDS[name]
    return Query(ge=low, le=high, allow_inf_nan=False, description=meaning)


def _layout(
    line_length: Annotated[int, _bounded("line_length", "characters of a line")] = 42,
    max_lines: Annotated[int, _bounded("max_lines", "lines of a caption")] = 2,
    reading_speed: Annotated[float, _bounded("reading_speed", "characters a second")] = 20,
    min_duration_ms: Annotated[int, _bounded("min_duration_ms", "a caption stays at least")] = 1000,
    max_duration_ms: Annotated[int, _bounded("max_duration_ms", "a caption stays at most")] = 7000,
    leave_out_doubted: Annotated[
        bool, Query(description="without words that the sound does not bear out")
    ] = False,
) -> CaptionLayout:
    """How captions are laid out; 422 where the least duration is more than the most."""
    try:
        return CaptionLayout(
            line_length,
            max_lines,
            reading_speed,
            min_duration_ms,
            max_duration_ms,
            leave_out_doubted,
        )
    except ValueError as error:
        raise Unprocessable(str(error), pointer="min_duration_ms") from error


def _captions(form: str) -> None:
    """GET of the whole under the suffix of a form."""
    _, media_type = FORMS[form]

    def get(
        id: RecordId,
        request: Request,
        caller: Asking,
        context: InContext,
        layout: Annotated[CaptionLayout, Depends(_layout)],
    ) -> Response:
        text, type_ = operations.written(context, caller.tenant_id, id, form, layout)
        return made_text(request, text.encode(), type_)

    answer = {"model": WholeTranscription} if form == "json" else text_of(media_type)
    get_and_head(
        router,
        f"/transcriptions/{{id}}.{form}",
        name=f"download_transcription_{form}",
        description=f"A complete transcription as {form}.",
        responses={**answers(RecordNotFound, NotReady, Unprocessable), **made_text_answers(answer)},
    )(get)


for _form in FORMS:
    _captions(_form)


@router.api_route(
    "/transcriptions/{id}/speakers",
    methods=["PUT"],
    responses=answers(RecordNotFound, NotReady, Unprocessable),
)
def update_transcription_speakers(
    id: RecordId, names: SpeakerNames, caller: Asking, context: InContext
) -> TranscriptionRecord:
    """Name the speakers of a complete transcription, in place of earlier names."""
    return operations.name_speakers(context, caller.tenant_id, id, names.names)


@router.post(
    "/transcriptions/{id}/copy", status_code=202, responses=answers(RecordNotFound, NotReady)
)
def copy_transcription(id: RecordId, caller: Asking, context: InContext) -> TranscriptionRecord:
    """Make a copy of the file with the captions as a WebVTT track.

    The copy is an ISOBMFF file of its own, indexed like any other (`copy_with_captions`); its bytes
    are those of `/transcriptions/ID.mp4`.
    """
    return operations.order_copy(context, caller.tenant_id, id)


@get_and_head(router, "/transcriptions/{id}.mp4", responses=MEDIA)
def download_transcription_mp4(
    id: RecordId, request: Request, caller: Asking, context: InContext
) -> Response:
    """The copy of the file with the captions in it; 404 if none was requested."""
    return media_of(request, operations.copy_of(context, caller.tenant_id, id))


@router.post("/transcriptions/{id}/cancel", responses=answers(RecordNotFound, Finished))
def cancel_transcription(id: RecordId, caller: Asking, context: InContext) -> TranscriptionRecord:
    """Cancel a transcription: it becomes `failed`. 409 if it is complete."""
    return operations.cancel_transcription(context, caller.tenant_id, id)


routes.record(TranscriptionRecord, TRANSCRIPTIONS.get, description="The record of a transcription.")
routes.deletion(
    operations.delete_transcription,
    description="Delete a transcription and its words; stop it if it runs. A copy stays.",
)


def _of_files(path: str, noun: str, tag: str) -> None:
    """The two routes below a file of a family."""
    anything = path == "/files"

    @asks_store
    def post(
        id: RecordId,
        response: Response,
        caller: Asking,
        context: InContext,
        choice: Annotated[TrackChoice | None, Body()] = None,
    ) -> BegunTranscription:
        file_id = (operations.made_of if anything else own_id)(context, caller.tenant_id, id)
        how = choice or TrackChoice.model_validate({})
        begun, is_new = operations.begin_for(context, caller.tenant_id, file_id, how)
        if not is_new:
            response.status_code = 200
        response.headers["Location"] = f"{PREFIX}/transcriptions/{begun.id}"
        return begun.model_copy(update={"file_id": id})

    def get(id: RecordId, caller: Asking, context: InContext) -> FileTranscription:
        file_id = (isobmff_id if anything else own_id)(context, caller.tenant_id, id)
        return operations.transcription_for(context, caller.tenant_id, file_id)

    router.post(
        f"{path}/{{id}}/transcribe",
        name=f"transcribe_{tag}",
        description=f"Transcribe the speech of {noun}; 200 if one with this track, engine, "
        "language, vocabulary and speakers is running or complete.",
        status_code=201,
        response_model=BegunTranscription,
        responses={**REFUSED, **GOING},
        dependencies=[Depends(idempotency_key)],
    )(post)
    router.get(
        f"{path}/{{id}}/transcription",
        name=f"get_{tag}_transcription",
        description=f"The newest complete transcription of {noun}; else the running one, or the "
        "last that failed.",
        response_model=FileTranscription,
        responses=NOT_FOUND,
    )(get)


_of_files("/isobmff_files", "an ISOBMFF file", "isobmff_file")
_of_files("/files", "a video", "file")
