"""Sound and pictures that a page plays, on the clock of the render instead of that of the machine.

contract    what a stage wants of whoever plays the page's media
strips      what is heard, when: values that go from slices to the join
opening     a URL of the page becomes bytes that are read by ranges
files       media files that are not of ISO/IEC 14496-12
drawing     decoded pictures as a page can take them
medium      one file that is played: facts, pictures, sound
speeds      sound faster and slower
voices      one strip as samples
mixing      strips become sound, block by block, within full scale
takes       what graphs of the page gave, until the slice is done
answers     what the scripts ask while the page waits
player      what a stage wants, frame by frame
*.js        the scripts, in this order: clock, loading, player, elements, pictures, webaudio
"""
