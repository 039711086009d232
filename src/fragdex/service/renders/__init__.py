"""Pages rendered frame by frame: HTML becomes films, sound and stills.

browser     one Chromium, one page, its clock in our hands
page_media  the page's own sound and pictures
outside     what a page may ask for beyond its site
site, plan, slice, encode, join, stills
            what is rendered, in which parts, and what becomes of the frames
model, request, archives, operations, routes, worker, progress
            the family of the service; the rest knows nothing of it
"""
