"""A small server: a folder, bucket or URL of MP4s as HLS, DASH, clips and pictures, nothing stored.

titles       names to indexes and packages, a few of them in memory; where indexes are kept
film_list    which films there are, and the pages that show them
addresses    what a path and its query ask for, and until when a signature allows it
previews     thumbnails, storyboards, waveforms and loudness, made few at a time
application  `make_app`: all of it as an ASGI application; segments that wait for nothing
"""
