"""One Chromium, one page, and its clock in our hands.

timing      the window, and the instants at which it is looked at
model       limits, and what was found out, blocked and refused
finding     where a Chromium is, and what it can do
flags       how it is started
process     its processes: started behind walls, watched, ended
pipe        what is said to it and what it answers
scripts     what is put into every page before its own scripts
requests    what the page asks for, and what it is given
facts       size and duration, found out from the page itself
clocks      the page's time: virtual time and frames on request, or a clock of our own
stage       all of it, for one page
"""
