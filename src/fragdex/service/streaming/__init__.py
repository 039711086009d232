"""Files as players want them, made when they are requested: HLS, DASH, clips, pictures, waveforms.

titles       stored files, and videos of other hosts by URL, as titles: indexes, packages
arriving     videos whose upload is not complete, as titles that grow; arriving_answers: waits for
             more of them
derivatives  pictures and waveforms, made in a process and cached in the store
child        what that process does
routes       all of it below `/files/ID` and `/isobmff_files/ID`; `/transcode` for URLs
"""
