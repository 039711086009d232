"""Work on the bytes of strangers, in child processes with walls around them.

walls       what a child may do: its user, files, calls of the kernel; how it shuts itself in
child       the parent's side: start, jobs, files, silence, death; children that are kept ready
channel     the child's side: jobs, questions, answers; messages and errors as JSON
start       what a child runs first: its walls, then its module
folders     a folder of its own for each child; those that were left behind go
processes   what processes hold and take, and how they end
"""
