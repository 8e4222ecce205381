"""A shell on a terminal starts `numa run` jobs: one in the background that reads stands still until
it is brought to the foreground; one in the foreground dies of the key that interrupts.

background.py NUMA: prints what differs and exits with 1, or exits with 0.
"""

import os
import pty
import select
import sys
import time

RUN = f"{sys.argv[1]} run -c 1 --busy off --"


def shell():
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(PS1="@ ", INPUTRC="/dev/null", TERM="dumb")
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    return terminal


TERMINAL = shell()
TEXT = ""


def until(expected):
    """Reads on until this was printed; what comes after it is kept."""
    global TEXT
    end = time.monotonic() + 60
    while expected not in TEXT:
        if time.monotonic() > end:
            sys.exit(f"never: {expected!r} in {TEXT!r}")
        if select.select([TERMINAL], [], [], 0.2)[0]:
            TEXT += os.read(TERMINAL, 65536).decode(errors="replace")
    TEXT = TEXT.split(expected, 1)[1]


def type_in(keys):
    os.write(TERMINAL, keys.encode())


# What is typed comes back from the terminal: the quotes tell it from what is printed.
until("@ ")
type_in(f"{RUN} sh -c 'read word; echo go''t $word; exit 5' &\n")
until("@ ")
type_in("until jobs | grep -q Stopped; do sleep 0.1; done; echo stand''still\n")
until("standstill")
type_in("fg\n")
# The program's name comes when it is in the foreground.
until("read word")
type_in("hello\n")
until("got hello")
type_in("echo st''atus $?\n")
until("status 5")
type_in(f"{RUN} sh -c 'echo rea''dy; exec sleep 1000'\n")
until("ready")
type_in("\x03")
until("@ ")
type_in("echo st''atus $?\n")
until("status 130")
# The shell tells a program that a signal ended from one that exited with its number.
type_in(f"{RUN} sh -c 'kill -SEGV $$'\n")
until("Segmentation fault")
type_in(f"echo line | {RUN} cat; {RUN} tty; echo st''atus $?\n")
until("line")
until("/dev/pts/")
until("status 0")
