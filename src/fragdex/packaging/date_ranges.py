"""Events as EXT-X-DATERANGE (RFC 8216, 4.3.2.7): cues of SCTE 35, and ID3.

Players of HLS read them in the playlist before they load the segment that holds the event message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final

from fragdex.boxes import parse_box
from fragdex.byterange import ByteRange
from fragdex.muxing.between import Event
from fragdex.muxing.census import LeftOut
from fragdex.packaging.m3u8 import quoted
from fragdex.record import record

MOST: Final = 4096
"""Date ranges of a rendition; players read all of them again with each change of a playlist."""
_LARGEST: Final = 4096
"""Bytes of an event that is written into a playlist."""
_ID3: Final = ("https://aomedia.org/emsg/ID3", "https://developer.apple.com/streaming/emsg-id3")
_UNKNOWN: Final = (1 << 32) - 1
"""event_duration of an event whose end is not known."""
_SECTION, _SPLICE_INSERT = 0xFC, 5
"""table_id of a splice_info_section, and the splice_command_type of an insertion (SCTE 35, 9.6)."""


@record(frozen=True, slots=True)
class DateRange:
    """An event, as a playlist has it.

    Attributes:
        arrives: seconds of presentation at which the media with it begin.
        begins: its own time, in seconds of presentation.
        id: of no other event of the file.
        attributes: all others but its date.
    """

    arrives: Fraction
    begins: Fraction
    id: str
    attributes: str

    def line(self, zero: datetime) -> str:
        """The tag, where time 0 of the presentation is at `zero`."""
        date = program_date(zero, self.begins)
        return f'#EXT-X-DATERANGE:ID="{self.id}",START-DATE="{date}",{self.attributes}'


def program_date(zero: datetime, seconds: Fraction) -> str:
    """The date and time of a moment of the presentation, to the millisecond."""
    date = zero.replace(tzinfo=zero.tzinfo or UTC) + timedelta(microseconds=int(seconds * 10**6))
    return date.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def date_ranges(
    events: Iterable[Event], read: Callable[[ByteRange], bytes]
) -> tuple[tuple[DateRange, ...], tuple[LeftOut, ...]]:
    """The events that playlists have tags for, and what they leave out.

    Args:
        events: of one file.
        read: exactly the bytes of a range of it.
    """
    known = [event for event in events if _is_cue(event.scheme[0]) or event.scheme[0] in _ID3]
    short = [event for event in known if event.place.size <= _LARGEST]
    gone = len(known) - len(short[:MOST])
    why = f"playlists have {MOST:,} of them, of {_LARGEST:,} bytes each at most"
    left_out = (LeftOut(f"EXT-X-DATERANGE of {gone:,} events", why),) if gone else ()
    return tuple(_made(short[:MOST], read)), left_out


def _is_cue(scheme: str) -> bool:
    return scheme.startswith("urn:scte:scte35:") and scheme.endswith(":bin")


def _made(events: Iterable[Event], read: Callable[[ByteRange], bytes]) -> Iterator[DateRange]:
    for number, event in enumerate(events):
        box = parse_box(read(event.place))
        message = bytes(box["message_data"])
        scheme, value = event.scheme
        name = _cue_name(message) if _is_cue(scheme) else "X-MESSAGE-DATA"
        attributes = [f'CLASS="{quoted(scheme)}"']
        lasts = int(box["event_duration"])
        if lasts != _UNKNOWN:
            attributes.append(f"DURATION={float(Fraction(lasts, event.timescale)):.3f}")
        if message:
            attributes.append(f"{name}=0x{message.hex().upper()}")
        if value:
            attributes.append(f'X-VALUE="{quoted(value)}"')
        own = f"{number}-{int(box['id'])}"
        yield DateRange(event.arrives, event.seconds, own, ",".join(attributes))


def _cue_name(section: bytes) -> str:
    """Which attribute holds a splice_info_section: a way out of the programme, or back in."""
    is_insert = len(section) > 19 and section[0] == _SECTION and section[13] == _SPLICE_INSERT
    if not is_insert or section[18] & 0x80:
        return "SCTE35-CMD"  # another command, or an insertion that is cancelled
    return "SCTE35-OUT" if section[19] & 0x80 else "SCTE35-IN"
