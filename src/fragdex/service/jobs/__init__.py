"""Work that outlives a request and a process: the interface to the engine and the failure detector.

work        what a job is: `Work` (a function and its limits), `Job` (what a run is given)
runs        one run of a job: attempts, back-off, giving up, giving back, what the log says of it;
            slices that any worker may take; turns: whose work is next, in a queue and a process
engine      everything DBOS
wakeups     sleep while no work waits, and what ends it
workers     which process this is, which are dead, and whose work is taken over
api         `Jobs`: what the rest of the service sees
"""
