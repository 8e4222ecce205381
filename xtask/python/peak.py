"""Runs a command, its output thrown away, and prints the most memory that it had.

Usage: peak.py COMMAND...
Prints `name value` lines.
"""

import os
import subprocess
import sys

child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
if status != 0:
    sys.exit(f"{' '.join(sys.argv[1:])} ended with {os.waitstatus_to_exitcode(status)}")
print("peak_kib", used.ru_maxrss)
