"""vectors.py: eight threads, one on each of the CPUs 0 to 7, add vectors with numpy.

The main thread touched one vector first, each thread its part of the other one. Where NUMAKIT_GATE
names a file, it waits for an observer as kernels.c does, before and after the work.
"""

import os
import threading
import time

# The memory of the interpreter is where its main thread is.
os.sched_setaffinity(0, {0})

import numpy  # noqa: E402

THREADS, LENGTH, REPEATS = 8, 1 << 21, 120
PART = LENGTH // THREADS
common = numpy.ones(LENGTH)
own = numpy.empty(LENGTH)
meeting = threading.Barrier(THREADS + 1)


def gate(name):
    path = os.environ.get("NUMAKIT_GATE")
    if path:
        open(f"{path}.{name}", "w").close()
        while not os.path.exists(path if name == "ready" else f"{path}.end"):
            time.sleep(0.01)


def work(number):
    os.sched_setaffinity(0, {number})
    part = slice(number * PART, (number + 1) * PART)
    own[part] = 0
    meeting.wait()
    meeting.wait()
    for _ in range(REPEATS):
        numpy.add(own[part], common[part], out=own[part])
    meeting.wait()


def main():
    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    meeting.wait()
    gate("ready")
    meeting.wait()
    meeting.wait()
    gate("done")
    for thread in threads:
        thread.join()
    # A few of them, so that the check is no part of what is observed.
    if not (own[:: PART // 2] == REPEATS).all():
        raise SystemExit("a wrong sum")
    print("verified yes", flush=True)
    # The end of the interpreter is no part of what is counted.
    os._exit(0)


main()
