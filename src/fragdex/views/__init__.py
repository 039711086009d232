"""Files that do not exist: described by an index, made byte by byte when they are read.

view          the value: size, entity tag, parts of any range
kinds         `fragdex.view`
proof         the pieces of a source that a view keeps, with their digests
copies        clips and other copies of one file
media         a track's samples on the timeline of fragments
segmentation  where tracks are cut, also while they grow
segments      an initialization segment and made fragments for some tracks
protection    what decrypts samples, next to them; which keys, in playlists and manifests
joined_files  several files one after the other
muxing        tracks of several files as one file
renditions    tracks of a title, with their segments
subtitles     renditions of text
titling       from tracks and caption files to a title
playlists     HLS and DASH
package       `fragdex.package`
"""
