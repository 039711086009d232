"""Files that do not exist: described by an index, made byte by byte when they are read.

view                 the value: size, entity tag, parts of any range
parts                made bytes and ranges of sources
view_sources         the bytes behind the parts, never those of two versions of a file
media                a track's samples on the timeline of fragments
segmentation         where tracks are cut
segmentation_growing the same of files that still grow
fragments_made       how large made fragments are, and their boxes
protection           what decrypts samples, beside them
drm                  which keys, in playlists and manifests
init_segment         their initialization segment
segments             all of that for some tracks
media_type           what players are told
joined_tracks        which tracks of several files are one
joined_files         several files one behind the other
copies               clips and other copies of one file
kinds                `fragdex.view`
renditions           tracks of a title, with their segments
webvtt               text of subtitles, from samples and to segments
caption_files        caption files beside the films
subtitles            renditions of text
title                renditions together
titling              from tracks and caption files to a title
playlists            HLS
manifest             DASH
package              `fragdex.package`
"""
