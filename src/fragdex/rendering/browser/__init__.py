"""One Chromium, one page, and its clock in our hands.

timing      the window, and the instants at which it is looked at
model       limits, and what was found out, blocked and refused
finding     where a Chromium is, and what it can do
flags       how it is started
sandbox     whether its own sandbox can be on here
process     its processes: started, watched, ended
pipe        what is said to it and what it answers
scripts     what runs in pages: sources.js, steady.js, clock.js before their own scripts; facts.js
            asks them
requests    what the page asks for, and what it is given
console     what the page says
clocks, virtual, injected
            the page's time: virtual time and frames on request, or a clock of our own
loads       frames that show what they asked for
worker_clocks, transitions
            workers and view transitions, which follow the page's time
running     a browser that runs, watched
stage       all of it, for one page
"""
