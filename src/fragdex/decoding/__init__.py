"""Decoded media by time, read through the index: what needs FFmpeg's libraries (extra `media`).

codec          a fresh decoder for a track, from its initialization segment alone
open_track     a track of a file that is open for decoding, and its samples
sound_stream   decoded sound in blocks of two seconds, or all of it once; its float32 columns
audio          the sound of any span
sound_levels   waveforms, and how loud it is
video_track    a track of pictures that is open for decoding
pictures       the picture of any time; key frames, of which nothing else is read
picture_files  pictures as JPEG, WebP, AVIF, PNG; thumbnails of moments
storyboards    small pictures of a whole video on sheets
comparison     what differs between two videos

Spans of sound are always decoded in the same blocks, each by a fresh decoder that is warmed up
with the samples before it. So a span is the same samples whatever was decoded before, on any
machine.
"""

from fragdex.decoding.audio import AudioReader, Gap, audio
from fragdex.decoding.picture_files import thumbnail
from fragdex.decoding.sound_levels import loudness, peaks
from fragdex.decoding.storyboards import storyboard

__all__ = ["AudioReader", "Gap", "audio", "loudness", "peaks", "storyboard", "thumbnail"]
