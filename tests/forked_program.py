"""What tests/test_forkserver.py starts: it says how it was started, or ends in some way."""

import atexit
import json
import os
import random
import signal
import sys
import time

doing, *rest = sys.argv[1:]
if doing == "state":
    state = {
        "argv": sys.argv,
        "cwd": os.getcwd(),
        "drawn": random.random(),
        "files": [
            int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")
        ],
        "is_fork": "fragdex.service.app" in sys.modules,
        "parent": os.getppid(),
        "path": sys.path[0],
        "variable": os.environ.get("FRAGDEX_OF_A_TEST"),
    }
    print(json.dumps(state))
elif doing == "sleep":
    # the background jobs of a shell ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("sleeping", flush=True)
    time.sleep(300)
elif doing == "echo":
    for line in sys.stdin:
        sys.stdout.write(line)
elif doing == "end":
    atexit.register(print, "at exit")
    ends = {"exit": 7, "words": "the words", "none": None}
    if rest == ["raise"]:
        raise ValueError("x")
    sys.exit(ends[rest[0]])
