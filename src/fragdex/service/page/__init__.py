"""The page at `/`: drop a video, see its fragments, click to seek. One document, no network."""
