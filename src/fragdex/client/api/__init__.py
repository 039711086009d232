"""Every operation of the service, and every record that it gives.

Each function describes a request; `Client.send` sends it. Written by
tools/make_client.py from docs/openapi.json.
"""

from fragdex.client.api import (
    access,
    files,
    images_and_captions,
    media_files,
    records,
    renders,
    streaming,
    timelines,
    transcriptions,
    webhooks,
)
from fragdex.client.api.access import *
from fragdex.client.api.files import *
from fragdex.client.api.images_and_captions import *
from fragdex.client.api.media_files import *
from fragdex.client.api.records import *
from fragdex.client.api.renders import *
from fragdex.client.api.streaming import *
from fragdex.client.api.timelines import *
from fragdex.client.api.transcriptions import *
from fragdex.client.api.webhooks import *

__all__: list[str] = []
__all__ += access.__all__
__all__ += files.__all__
__all__ += images_and_captions.__all__
__all__ += media_files.__all__
__all__ += records.__all__
__all__ += renders.__all__
__all__ += streaming.__all__
__all__ += timelines.__all__
__all__ += transcriptions.__all__
__all__ += webhooks.__all__
