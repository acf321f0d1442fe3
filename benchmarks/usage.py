"""Run a program and write what it used to a file, as JSON. Usage: usage.py FILE PROGRAM ARGUMENTS...

A process of its own, and a small one, because Linux counts the memory of the process that starts a
program towards the program's own peak.
"""

import json
import os
import sys

path, *command = sys.argv[1:]
started = os.posix_spawn(command[0], command, os.environ)
_, status, usage = os.wait4(started, 0)
with open(path, "w") as file:
    json.dump({"cpu": usage.ru_utime + usage.ru_stime, "maxrss": usage.ru_maxrss}, file)
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code >= 0 else 128 - code)
