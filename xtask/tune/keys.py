"""keys.py FILE [N]: without N, makes a database of a million rows; with it, reads N of them by random keys."""
import random
import sqlite3
import sys

ROWS = 1_000_000
random.seed(1)
db = sqlite3.connect(sys.argv[1])
if len(sys.argv) == 2:
    db.execute("create table sales (key integer primary key, name text, price real)")
    rows = ((k, f"customer {random.getrandbits(40)}", random.random()) for k in range(ROWS))
    db.executemany("insert into sales values (?, ?, ?)", rows)
    db.commit()
else:
    total = 0.0
    for _ in range(int(sys.argv[2])):
        (price,) = db.execute("select price from sales where key = ?", (random.randrange(ROWS),)).fetchone()
        total += price
    print(f"{total:.3f}")
db.close()
