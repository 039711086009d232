"""Sound and pictures that a page plays, on the clock of the render instead of that of the machine.

strips      what is heard, when: values that go from slices to the join
opening     a URL of the page becomes bytes that are read by ranges
medium      one file that is played: facts, pictures, sound
mixing      strips become sound, block by block, within full scale
player      what a stage wants frame by frame, and the scripts while the page waits
*.js        the scripts, in this order: clock, loading, player, elements, pictures, webaudio
"""
