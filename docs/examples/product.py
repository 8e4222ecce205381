"""product.py ROWS ROUNDS: multiplies a matrix of ROWS rows by itself, ROUNDS times, with the BLAS that numpy loads."""

import sys
import time

import numpy

rows, rounds = int(sys.argv[1]), int(sys.argv[2])
matrix = numpy.random.default_rng(1).random((rows, rows))
began, used = time.perf_counter(), time.process_time()
for _ in range(rounds):
    product = matrix @ matrix
took, used = time.perf_counter() - began, time.process_time() - used
print(f"{2 * rows**3 * rounds / took / 1e9:.2f} GFLOP/s, {took:.2f} s, CPU time {used:.2f} s")
