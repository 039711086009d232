"""Videos for agents: a server of the Model Context Protocol (extra `agents`).

`allowed` decides what may be read and written; `work` reads strangers' bytes in child processes,
of which `looking`, `listening` and `making` are the jobs; `server` gives them as tools.
"""
