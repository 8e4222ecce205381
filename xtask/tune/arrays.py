"""arrays.py N: arithmetic on arrays of N million numbers, and values at random places."""
import sys
import numpy as np

count = int(sys.argv[1]) * 1_000_000
random = np.random.default_rng(1)
values = random.random(count)
places = random.integers(0, count, count)
total = 0.0
for _ in range(3):
    values = np.sqrt(values * values + 1.0) - 0.5
    total += values[places].sum()
print(f"{total:.3f}")
