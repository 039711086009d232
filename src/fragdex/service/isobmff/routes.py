"""ISOBMFF files over HTTP."""

from __future__ import annotations

from fragdex.service.isobmff import (
    index_routes,  # noqa: F401 (puts its routes on the router)
    operations,
    track_routes,  # noqa: F401
    whole,
)
from fragdex.service.isobmff.model import (
    FileList,
    FileRecord,
    FileWithTracks,
    IsobmffFileStatus,
    NewFile,
)
from fragdex.service.isobmff.router import router
from fragdex.service.uploads.family import Family

__all__ = ["router"]

routes = Family(router, "/isobmff_files", "ISOBMFF file")

routes.creation(
    NewFile,
    FileRecord,
    operations.create_file,
    said="Register a file by its md5; its index and its tracks follow.",
)
routes.listing(FileList, IsobmffFileStatus, operations.FILES.page)
routes.by_md5(FileRecord, operations.file_by_md5, said="The file of this md5.")
routes.record(FileWithTracks, whole.file_with_tracks, said="A file and its tracks.")
routes.deletion(
    operations.delete_file, said="Delete a file, its index, its tracks and their bytes."
)
