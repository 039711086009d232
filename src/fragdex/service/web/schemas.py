"""Schemas of the OpenAPI document that no model writes: problems, events, indexes.

Each has a name, so that programs that write clients have one too.
"""

from __future__ import annotations

from typing import Any

from fragdex.service.web.events import NAMES

__all__ = ["INDEX", "SCHEMAS"]


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


INDEX = _ref("Index")
"""An index as JSON."""

_PROBLEM_MEMBERS: dict[str, Any] = {
    "type": {"type": "string", "format": "uri-reference"},
    "title": {"type": "string"},
    "status": {"type": "integer"},
    "detail": {"type": "string"},
}

SCHEMAS: dict[str, dict[str, Any]] = {
    "Problem": {
        "description": "RFC 9457, with members of its own for some types (`limit`, `next_byte` …)",
        "type": "object",
        "required": [*_PROBLEM_MEMBERS],
        "properties": {
            **_PROBLEM_MEMBERS,
            "errors": {"type": "array", "items": _ref("ProblemError")},
            "next_byte": {"type": "integer", "description": "of an upload: where to continue"},
            "limit": {"type": "number", "description": "that the request is over"},
        },
    },
    "ProblemError": {
        "description": "A rule that a request breaks, and where",
        "type": "object",
        "required": ["detail"],
        "properties": {
            "detail": {"type": "string"},
            "pointer": {"type": "string", "description": "RFC 6901, as a URI fragment"},
            "parameter": {"type": "string", "description": "of the path or the query"},
            "header": {"type": "string", "description": "the field of the request"},
        },
    },
    "Event": {
        "description": "One event of a stream",
        "type": "object",
        "required": ["id", "event", "data"],
        "properties": {
            "id": {
                "type": "string",
                "description": "send it as `Last-Event-ID` to continue from here",
            },
            "event": _ref("EventName"),
            "data": _ref("EventData"),
        },
    },
    "EventName": {"type": "string", "enum": sorted(NAMES)},
    "EventData": {
        "description": "`size` and `count` of counted work, `progress` of all other; the problem "
        "with `error`; nothing with `complete` and `heartbeat`",
        "type": "object",
        "properties": {
            "size": {"type": "integer", "description": "how many there are in all"},
            "count": {"type": "integer", "description": "how many were finished since"},
            "progress": {"type": "number", "minimum": 0, "maximum": 1},
            **_PROBLEM_MEMBERS,
        },
    },
    "Index": {
        "description": "The tracks of a file by their ids; -1: the scrub track. What else was sent "
        "is given back",
        "type": "object",
        "patternProperties": {"^(?:-1|[0-9]+)$": _ref("IndexTrack")},
        "additionalProperties": True,
    },
    "IndexTrack": {
        "description": "Times are ticks of `timescale` on the presentation's time line, bytes are "
        "those of the track's own file; what else was sent is given back",
        "type": "object",
        "required": ["type", "timescale", "initSegment", "segments"],
        "properties": {
            "track": {"type": "integer"},
            "type": _ref("IndexTrackType"),
            "codec": {"type": ["string", "null"], "description": "RFC 6381"},
            "timescale": {"type": "integer", "minimum": 1, "description": "ticks a second"},
            "startTimeOffsetMs": {
                "type": "number",
                "description": "the first presentation time, where it is over 10 ms",
            },
            "initSegment": _ref("Place"),
            "segments": {"type": "array", "items": _ref("IndexSegment")},
            **{
                name: {"type": ["integer", "null"], "minimum": 0}
                for name in (
                    "duration",
                    "sample_count",
                    "width",
                    "height",
                    "channel_count",
                    "sample_rate",
                    "sample_size",
                )
            },
        },
    },
    "IndexTrackType": {"type": "string", "enum": ["video", "audio"]},
    "IndexSegment": {
        "description": "Bytes that are decoded by themselves; `cts` and `dts` are those of the "
        "first sample in presentation and in decode order, `duration` reaches to the next `cts`",
        "type": "object",
        "required": ["cts", "dts", "duration", "offset", "size"],
        "properties": {
            "cts": {"type": "integer"},
            "dts": {"type": "integer"},
            **{name: {"type": "integer", "minimum": 0} for name in ("duration", "offset", "size")},
        },
    },
}
