"""product.py ROWS ROUNDS: multiplies a matrix of ROWS rows by itself, ROUNDS times, with the BLAS that numpy loads."""

import sys
import time

import numpy

rows, rounds = int(sys.argv[1]), int(sys.argv[2])
matrix = numpy.random.default_rng(1).random((rows, rows))
began = time.perf_counter()
for _ in range(rounds):
    product = matrix @ matrix
took = time.perf_counter() - began
print(f"{2 * rows**3 * rounds / took / 1e9:.2f} GFLOP/s, {took:.2f} s")
