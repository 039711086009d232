"""A small server: a folder, bucket or URL of MP4s as HLS, DASH, clips and pictures, nothing stored.

titles      names to indexes and packages, a few of them in memory
addresses   what a path asks for
answers     a view over HTTP: ranges, entity tags, caches
signing     addresses that end
film_pages  the list of films, and a page that plays one
application `make_app`: all of it as an ASGI application
"""
