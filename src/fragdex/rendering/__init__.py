"""Pages rendered frame by frame: HTML becomes videos, sound and stills.

fields      what is declared of each field of a render
outputs, spec
            how a render is stored, and all that is requested
plan, slice, pictures, encode, join
            in which parts it is made, and what becomes of the frames
browser     one Chromium, one page, its clock in our hands
page_media  the page's own sound and pictures
site, web, archives
            the files of a page, and what it may ask for beyond them
pool, child, messages
            processes with a browser each, and what they are sent
render      a page to a video on this machine, by several browsers
recipe      the key of slices that are kept
lint, estimate, preview
            what a video will be, before it is made
"""
