"""Work on the bytes of strangers, in child processes with walls around them.

walls       what a child may do, and how it shuts itself in
landlock    which files it may open (Linux 5.13)
seccomp     which calls of the kernel it may make
users       which user it runs as, and what that user has to be able to read
limits      memory and files, reckoned from the machine
child       the parent's side: start, messages, cancellation, silence, death
folders     a folder of its own for each child; those that were left behind go
channel     the child's side: jobs, questions, answers
start       what a child runs first: its walls, then its module
failures    errors as JSON and back; what the end of a child means
"""
