"""What requests and answers about webhooks say."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypeAliasType

from fragdex.service.outbox import EVENT_TYPES
from fragdex.service.web.fields import (
    JSON_NUMBER,
    NO_NUL,
    ApiModel,
    Instant,
    Listed,
    RequestBody,
    written_as,
)

MAX_URL = 2048


class DeliveryStatus(StrEnum):
    """How far a delivery is."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


# every type, and the patterns that name some of them
_PATTERNS = [*EVENT_TYPES, *sorted({f"{kind.partition('.')[0]}.*" for kind in EVENT_TYPES}), "*"]
Pattern = TypeAliasType(
    "Pattern",
    Annotated[
        str,
        written_as(
            "|".join(one.replace(".", r"\.").replace("*", r"\*") for one in _PATTERNS),
            "a type of event, or a pattern such as `render.*`",
        ),
    ],
)
Types = Annotated[
    list[Pattern],
    Field(
        min_length=1,
        max_length=len(_PATTERNS),
        description="types of events: `render.completed`, `file.*`, `*` for all",
        examples=[["render.*", "file.ready"]],
    ),
]
Url = Annotated[
    str,
    Field(max_length=MAX_URL, description="`https`, at a public address"),
    written_as(r"https?://[!-~]+", "an http URL"),
]
Description = Annotated[str, Field(max_length=1024), NO_NUL]


class NewWebhook(RequestBody):
    """A URL to send events to."""

    url: Url
    types: Types = Field(["*"])
    description: Description = ""


class WebhookChange(RequestBody):
    """What is to be other than it is; what is missing or null stays."""

    url: Url | None = None
    types: Types | None = None
    description: Description | None = None
    enabled: bool | None = Field(
        None, description="false: nothing is sent; true: also after it was disabled by failures"
    )


class Webhook(ApiModel):
    """A URL that events are sent to."""

    id: str
    url: str
    types: list[str]
    description: str
    enabled: bool
    disabled_at: str | None
    disabled_because: str | None
    accepted_at: str | None = Field(description="when a delivery was last accepted")
    previous_secret_until: str | None = Field(
        description="until then deliveries are signed with the secret before the last rotation, too"
    )
    created_at: str


class SecretWebhook(Webhook):
    """The same with its secret, which is shown once."""

    secret: str = Field(description="`whsec_` and base64: what signatures are checked with")


class WebhookList(Listed):
    """Webhooks, newest first."""

    webhooks: list[Webhook]


class Rotation(RequestBody):
    """How a secret is replaced."""

    previous_seconds: Annotated[int, Field(ge=0, le=30 * 86_400), JSON_NUMBER] = Field(
        86_400, description="how long the secret before is still signed with"
    )


class Delivery(ApiModel):
    """An event on its way to a webhook, and what came of the last attempt."""

    id: str = Field(description="`webhook-id` of every attempt")
    webhook_id: str
    type: str
    message: dict[str, Any] = Field(description="the body as it is sent")
    status: DeliveryStatus
    attempts: int = Field(description="since it was created, or replayed last")
    next_attempt_at: str | None
    response_status: int | None
    response_body: str | None = Field(description="its beginning, as printable ASCII")
    problem: str | None
    created_at: str
    delivered_at: str | None
    failed_at: str | None


class DeliveryList(Listed):
    """Deliveries, newest first."""

    deliveries: list[Delivery]


class WantedReplay(RequestBody):
    """Which deliveries are sent once more: those that failed."""

    since: Instant | None = Field(None, description="created then or later; null: all that failed")


class Replayed(ApiModel):
    """How many deliveries were ordered once more."""

    count: int
    more: bool = Field(description="there were more than one request replays; ask again")
