# Dictionaries, sorting and objects, until it is killed.
import random

class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

while True:
    table = {random.randrange(100000): str(i) for i in range(20000)}
    points = [Point(random.random(), i) for i in range(5000)]
    points.sort(key=lambda p: p.x)
    total = sum(len(table.get(k, "")) for k in range(20000)) + sum(p.y for p in points)
