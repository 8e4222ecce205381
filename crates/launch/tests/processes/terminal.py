"""A shell on a terminal runs `hold`: keys and job control reach the program as without it.

terminal.py HOLD: prints what differs and exits with 1, or exits with 0.
terminal.py: the program, which prints how often it was interrupted and continued.
"""

import os
import pty
import select
import signal
import sys
import time


def count():
    names = {signal.SIGINT: "int", signal.SIGCONT: "cont"}
    counts = dict.fromkeys(names, 0)
    # They stay blocked: one that comes between two waits is not lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, names)
    os.write(1, b"ready\n")
    while True:
        number = signal.sigwait(names)
        counts[number] += 1
        os.write(1, f"{names[number]}-{counts[signal.SIGINT]}-{counts[signal.SIGCONT]}\n".encode())


def shell():
    child, terminal = pty.fork()
    if child == 0:
        # They are ignored if this runs as a background job of a shell.
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
            signal.signal(number, signal.SIG_DFL)
        os.environ.update(PS1="@ ", INPUTRC="/dev/null", TERM="dumb")
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    return terminal


class Dialogue:
    def __init__(self):
        self.terminal = shell()
        self.text = ""

    def read(self, seconds):
        if select.select([self.terminal], [], [], seconds)[0]:
            self.text += os.read(self.terminal, 65536).decode(errors="replace")

    def until(self, expected):
        """Reads on until this was printed; what comes after it is kept."""
        end = time.monotonic() + 60
        while expected not in self.text:
            if time.monotonic() > end:
                sys.exit(f"never: {expected!r} in {self.text!r}")
            self.read(0.2)
        before, self.text = self.text.split(expected, 1)
        return before

    def type(self, keys):
        os.write(self.terminal, keys.encode())


def main(hold):
    talk = Dialogue()
    talk.until("@ ")
    talk.type(f"{hold} 0 {sys.executable} {sys.argv[0]}\n")
    talk.until("ready")
    for press in (1, 2):
        talk.type("\x03")
        talk.until(f"int-{press}-0")
    for resumed in (1, 2, 3):
        talk.type("\x1a")
        talk.until("Stopped")
        talk.until("@ ")
        talk.type("fg\n")
        talk.until(f"cont-2-{resumed}")
    # Everything came once.
    talk.type("\x03")
    talk.until("int-3-3")
    talk.type("\x1a")
    talk.until("Stopped")
    talk.type("bg\n")
    talk.until("&")
    talk.type("jobs\n")
    talk.until("Running")
    talk.type("kill -KILL %1; wait %1; echo st''atus $?\n")
    talk.until("status 137")
    talk.type(f"{hold} 1 sh -c 'echo u''p; exec cat'\n")
    talk.until("up")
    talk.type("hello\n")
    talk.until("hello")
    talk.until("hello")
    talk.type("\x04")
    talk.until("@ ")
    talk.type("echo st''atus $?\n")
    talk.until("status 0")
    talk.type(f"{hold} 1 sh -c 'echo u''p; exec sleep 1000'\n")
    talk.until("up")
    talk.type("\x03")
    talk.until("@ ")
    talk.type("echo st''atus $?\n")
    talk.until("status 130")


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) > 1 else count()
