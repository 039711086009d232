"""Image files over HTTP."""

from __future__ import annotations

from fragdex.service.images import operations
from fragdex.service.images.model import TYPES, ImageList, ImageRecord, NewImage
from fragdex.service.images.operations import IMAGES
from fragdex.service.uploads.family import Family
from fragdex.service.uploads.repository import FileStatus
from fragdex.service.web.routing import api_router

# An SVG is a document: opened by itself it must not run, load or send anything.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; sandbox"

router = api_router("image files")
routes = Family(router, "/image_files", "image file", record_at="/{id}.json")

routes.creation(NewImage, ImageRecord, operations.create_image)
routes.listing(ImageList, FileStatus, IMAGES.page)
routes.by_md5(ImageRecord, IMAGES.find)
routes.upload(
    ImageRecord,
    IMAGES.get,
    IMAGES.target,
)
routes.record(
    ImageRecord, IMAGES.get, description="The record, with the size in pixels once it is known."
)
routes.media(
    tuple(dict.fromkeys(TYPES.values())), IMAGES.stored, {"Content-Security-Policy": POLICY}
)
routes.deletion(IMAGES.delete)
