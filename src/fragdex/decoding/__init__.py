"""Decoded media by time, read through the index: what needs FFmpeg's libraries (extra `media`).

samples     the samples of a span of media time, whatever the index holds of them
sample_entries  which sample entry each sample is coded by
codec       a fresh decoder for a track, from its initialization segment alone
mixing      decoded frames as float32 columns of one or two channels
resampling  from one rate to another, the same for any cut
blocks      two seconds of decoded sound: the unit in which sound is decoded and kept
open_track  a track of a file that is open for decoding
audio_track  the same of sound, and what could not be decoded
audio       the sound of any span
sound_stream  all sound of a track, decoded once
peaks       waveforms
loudness    how loud it is
video_track  a track of pictures that is open for decoding
parameter_sets  what a decoder keeps of samples, and goes on with
pictures    the picture of any time
key_frames  key frames, of which nothing else is read
upright     a picture as it is shown
picture_files  pictures as JPEG, WebP, AVIF, PNG
thumbnails  a picture of a moment, as a file
storyboards  small pictures of a whole film on sheets
storyboard_lists  where they are, for players

Spans of sound are always decoded in the same blocks, each by a fresh decoder that is warmed up
with the samples before it. So a span is the same samples whatever was decoded before, on any
machine.
"""

from fragdex.decoding.audio import AudioReader, Gap, audio

__all__ = ["AudioReader", "Gap", "audio"]
