"""A small server: a folder, bucket or URL of MP4s as HLS, DASH, clips and pictures, nothing stored.

titles      names to indexes and packages, a few of them in memory
index_files  where indexes are kept
captions_beside  caption files beside a film
addresses   what a path asks for
queries     and what its query does
package_files  files of a package, whose lists name the storyboard
previews    thumbnails, storyboards, waveforms and loudness, by their names
preview_maker  made few at a time, each once
answers     a view over HTTP: ranges, entity tags, caches
prepared    segments that wait for nothing
lru_cache   what was used last, up to a number of bytes
signing     addresses that end
access_log  a line for each request
film_pages  the list of films, and a page that plays one
application `make_app`: all of it as an ASGI application
"""
