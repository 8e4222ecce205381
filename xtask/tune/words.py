"""words.py N: counts N random words with a dict."""
import random
import sys

random.seed(1)
counts = {}
for _ in range(int(sys.argv[1])):
    word = f"word{random.getrandbits(20)}"
    counts[word] = counts.get(word, 0) + 1
print(len(counts), max(counts.values()))
