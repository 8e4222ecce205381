"""A shell on a terminal starts `numa run` jobs: one in the background that reads stands still until
it is brought to the foreground; one in the foreground dies of the key that interrupts.

background.py NUMA: prints what differs and exits with 1, or exits with 0.
"""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "launch/tests/processes"))
from terminal import Dialogue

RUN = f"{sys.argv[1]} run -c 1 --busy off --"

talk = Dialogue()

# What is typed comes back from the terminal: the quotes tell it from what is printed.
talk.until("@ ")
talk.type(f"{RUN} sh -c 'read word; echo go''t $word; exit 5' &\n")
talk.until("@ ")
talk.type("until jobs | grep -q Stopped; do sleep 0.1; done; echo stand''still\n")
talk.until("standstill")
talk.type("fg\n")
# The program's name comes when it is in the foreground.
talk.until("read word")
talk.type("hello\n")
talk.until("got hello")
talk.type("echo st''atus $?\n")
talk.until("status 5")
talk.type(f"{RUN} sh -c 'echo rea''dy; exec sleep 1000'\n")
talk.until("ready")
talk.type("\x03")
talk.until("@ ")
talk.type("echo st''atus $?\n")
talk.until("status 130")
# The shell tells a program that a signal ended from one that exited with its number.
talk.type(f"{RUN} sh -c 'kill -SEGV $$'\n")
talk.until("Segmentation fault")
talk.type(f"echo line | {RUN} cat; {RUN} tty; echo st''atus $?\n")
talk.until("line")
talk.until("/dev/pts/")
talk.until("status 0")
