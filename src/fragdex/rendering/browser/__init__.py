"""One Chromium, one page, and its clock in our hands.

model       the window and its instants; limits; what was found out, blocked and refused
finding     where a Chromium is, what it can do, and whether it is out of date
process     its processes: started with their flags, watched, ended
pipe        messages to it and its answers
requests    what the page requests, and what it gets
console     what the page says
clocks      the page's time: virtual time and frames on request, or a clock of our own
loads       waits: until a page is ready, and frames show what they requested
worker_clocks
            workers and view transitions, which follow the page's time
stage       all of it, for one page; pages that render each frame on request
*.js        what runs in pages: sources, steady, clock before their own scripts; facts asks them
"""
