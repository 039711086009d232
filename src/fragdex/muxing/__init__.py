"""Samples to bytes: files that are described by an index, and made when they are read.

view           the value: size, entity tag, parts of any range
kinds          `fragdex.view`, `fragdex.clip`, `fragdex.join`
proof          the pieces of a source that a view keeps, with their digests
copies         clips and other copies of one file
plan           what an output has of each track and between samples, and what it lacks
clip           a span of time without re-encoding: `clip_span` finds its part of each track, `spans`
               the samples and edits of an exact one, `timecode` those of timecode tracks;
               `clip_samples` puts samples into fragments, `clip_fragments` moves whole ones
movie          the moov and ftyp of outputs
progressive    the writer of progressive files: sample tables and one mdat
fragments      the writer of fragments: moofs, each with its mdat
embed          an index written into a copy of its file
captions       captions read in every kind, and written as one more track
window         some frames as a small file, a stream or packets
media          a track's samples on the timeline of fragments
segmentation   where tracks are cut, also while they grow
segments       an initialization segment and fragments of equal length for some tracks
protection     what decrypts samples, next to them; which keys, in playlists and manifests
joined_files   several files one after the other
mixed_files    tracks of several files as one file
"""
