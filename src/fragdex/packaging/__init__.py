"""Titles as HLS and DASH: lists of what `muxing` gives.

package      `fragdex.package`
titling      from tracks and caption files to a title
renditions   tracks of a title, with their segments
subtitles    renditions of text
playlists    HLS and DASH of a title
hls, dash    playlists and manifests of one index
"""
