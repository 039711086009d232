"""Files as players want them, made when they are requested: HLS, DASH, clips, pictures, waveforms.

stored_titles   the bytes of a file as one title: indexes, packages
derivatives     pictures and waveforms, made in a process and cached in the store
child           what that process does
remote_titles   videos of other hosts, by URL
routes          all of it below `/files/ID` and `/isobmff_files/ID`; `/transcode` for URLs
"""
