"""Caption files over HTTP."""

from __future__ import annotations

from fragdex.service.captions import operations
from fragdex.service.captions.model import CaptionList, CaptionRecord, CaptionType, NewCaption
from fragdex.service.captions.operations import CAPTIONS
from fragdex.service.context import ServiceContext
from fragdex.service.uploads.family import Family
from fragdex.service.uploads.repository import FileStatus
from fragdex.service.web.routing import api_router


def _create(context: ServiceContext, tenant_id: str, new: NewCaption) -> tuple[CaptionRecord, bool]:
    return operations.create_caption(context, tenant_id, new, new.md5)


router = api_router("caption files")
routes = Family(router, "/caption_files", "caption file", record_at="/{id}.json")

routes.creation(NewCaption, CaptionRecord, _create)
routes.listing(CaptionList, FileStatus, CAPTIONS.page)
routes.by_md5(CaptionRecord, CAPTIONS.find)
routes.upload(
    CaptionRecord,
    CAPTIONS.get,
    CAPTIONS.target,
)
routes.record(CaptionRecord, CAPTIONS.get)
routes.media(tuple(CaptionType), operations.caption_bytes)
routes.deletion(CAPTIONS.delete)
