"""Pages rendered frame by frame: HTML becomes films, sound and stills.

browser     one Chromium, one page, its clock in our hands
page_media  the page's own sound and pictures
preview     a page as its film will be, in somebody's own browser
outside     what a page may ask for beyond its site
site, plan, slice, encode, join, stills
            what is rendered, in which parts, and what becomes of the frames
render      a page to a film on this machine, by several browsers
"""
