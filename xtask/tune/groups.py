"""groups.py N: a table of N million rows, grouped and joined."""
import sys
import numpy as np
import pandas as pd

count = int(sys.argv[1]) * 1_000_000
random = np.random.default_rng(1)
sales = pd.DataFrame({"customer": random.integers(0, count // 10, count), "price": random.random(count)})
customers = pd.DataFrame({"customer": np.arange(count // 10), "country": random.integers(0, 200, count // 10)})
spent = sales.groupby("customer")["price"].sum().reset_index()
joined = sales.merge(customers, on="customer").merge(spent, on="customer", suffixes=("", "_all"))
print(joined.groupby("country")["price_all"].mean().round(6).sum())
