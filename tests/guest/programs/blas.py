"""blas.py: multiplies matrices with numpy, whose OpenBLAS makes a thread for each CPU.

Afterwards one line says where each thread may run, `thread N cpus LIST`, the main thread first;
`visible N` how many CPUs the process sees, and `child LIST` where the child of a fork may run.
"""

import os

import numpy


def allowed(task):
    with open(f"/proc/self/{task}status") as status:
        return next(line.split()[1] for line in status if line.startswith("Cpus_allowed_list:"))


def main():
    ones = numpy.ones((256, 256))
    product = ones @ ones
    if not (product == 256.0).all():
        raise SystemExit("a wrong product")
    threads = sorted(int(name) for name in os.listdir("/proc/self/task"))
    for number, thread in enumerate(threads):
        print("thread", number, "cpus", allowed(f"task/{thread}/"))
    print("visible", len(os.sched_getaffinity(0)), flush=True)
    child = os.fork()
    if child == 0:
        print("child", allowed(""), flush=True)
        os._exit(0)
    os.waitpid(child, 0)


main()
