"""Sound and pictures that a page plays, on the clock of the render instead of that of the machine.

strips      what is heard, when: values that go from slices to the join
mixing      strips become sound, block by block
contract    what a stage wants of whoever plays the page's media
opening     a URL of the page becomes bytes that are read by ranges
player      answers the scripts that are added to the page, and draws their pictures
*.js        the scripts: media elements, their pictures in canvases, WebAudio
"""
