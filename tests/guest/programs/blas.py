"""blas.py: multiplies matrices with numpy, whose OpenBLAS makes a thread for each CPU.

Afterwards one line says where each thread may run, `thread N cpus LIST`, the main thread first;
`child LIST` where the child of a fork may run, and `again LIST` where its threads do, one after
another, when it multiplies in its turn.
"""

import os
import sys

import numpy


def allowed(task):
    with open(f"/proc/self/{task}status") as status:
        return next(line.split()[1] for line in status if line.startswith("Cpus_allowed_list:"))


def multiply():
    ones = numpy.ones((256, 256))
    if not (ones @ ones == 256.0).all():
        raise SystemExit("a wrong product")


def threads():
    return sorted(int(name) for name in os.listdir("/proc/self/task"))


def main():
    multiply()
    for number, thread in enumerate(threads()):
        print("thread", number, "cpus", allowed(f"task/{thread}/"))
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        print("child", allowed(""))
        multiply()
        print("again", *(allowed(f"task/{thread}/") for thread in threads()), flush=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise SystemExit("the child failed")


main()
