"""Frame mappings that spare torchcodec's `VideoDecoder` its scan over the whole file.

The form is what ffprobe writes for `-show_entries frame=pts,duration,key_frame -of json`: an object
with a list `frames`. torchcodec takes the first frame for the begin of the stream and the last for
its end, so frames are listed in presentation order. It looks frames up by the times that FFmpeg's
libraries give them: ticks of the track's timescale with the edit list applied; `_frame_times` says
where those are others than ours.

    mapping = index.export("torchcodec")
    VideoDecoder("movie.mp4", custom_frame_mappings=mapping)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fragdex.errors import BuildError, TrackNotFound
from fragdex.formats.sample_csv import text_rows, whole_ticks
from fragdex.seeking.model import Index, Track, one_period_of
from fragdex.seeking.numbering import in_edits


def write(index: Index, *, track: int | None = None) -> bytes:
    """The frame mappings of one video track as JSON.

    Samples of a progressive file that the edit list hides are left out, as FFmpeg's libraries drop
    them. Where that leaves frames without the key frame that they are decoded from, there is no
    mapping: torchcodec seeks by its key frames, finds none for them, and fails.

    Args:
        track: track id; None: the first video track.

    Raises:
        TrackNotFound: there is no such track, or none with video.
        BuildError: the edit list hides the key frame of frames that it shows.
        InexactIndex: the index holds fragments only.
    """
    chosen = index.track(track) if track is not None else _first_video(index)
    samples = chosen.samples
    pts, shown = _frame_times(chosen)
    order = shown[np.argsort(pts[shown], kind="stable")]
    if not len(order):
        return b'{"frames":[]}'
    _refuse_hidden_keys(chosen, shown)
    rows = b"".join(
        text_rows(
            [
                b'{"pts":',
                pts[order],
                b',"duration":',
                samples.duration[order],
                b',"key_frame":',
                samples.sync[order],
                b"},",
            ]
        )
    )
    return b'{"frames":[' + rows[:-1] + b"]}"


def _frame_times(track: Track) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.intp]]:
    """Times of all samples as FFmpeg's libraries tell them, and the numbers of those they show.

    They differ from ours so (seen with libavformat 61 and 62):

    - in fragments, negative composition offsets move the whole track later by the greatest of
      them, and the edit list hides nothing;
    - in progressive files, an edit that begins before the first picture begins with it.
    """
    samples = track.samples
    pts = samples.cts + np.int64(whole_ticks(track.shift))
    if track.extent.is_virtual:
        shown = np.flatnonzero(in_edits(track, samples))
        if len(shown) and track.segments:
            pts -= max(0, int(samples.cts[shown].min()) - track.segments[0].media_time)
        return pts, shown
    return pts + max(0, -int((samples.cts - samples.dts).min())), np.arange(len(samples))


def _refuse_hidden_keys(track: Track, shown: npt.NDArray[np.intp]) -> None:
    sync = np.flatnonzero(track.samples.sync)
    place = np.searchsorted(sync, shown, side="right") - 1
    known = place >= 0  # what no key frame stands before is decoded from nothing anyhow
    without = shown[known][~np.isin(sync[place[known]], shown)]
    if len(without):
        raise BuildError(
            f"the edit list of track {track.id} hides the key frame of {len(without)} frames that "
            "it shows, and torchcodec seeks by the key frames of a mapping",
            path="moov/trak/edts/elst",
            expected="an edit that begins at a key frame",
            found=f"sample {int(without[0]) + 1} first",
            advice="give torchcodec no mapping for this file; or make the clip without an edit "
            "list (fragdex.clip(…, at_key_frame=True), fragdex extract --fragmented)",
        )


def _first_video(index: Index) -> Track:
    one_period_of([track for track in index.tracks if track.kind == "video"])
    if (track := index.video) is None:
        raise TrackNotFound("there is no video track")
    return track
