"""join.py N: DuckDB joins two tables of N million rows."""
import sys
import duckdb

count = int(sys.argv[1]) * 1_000_000
db = duckdb.connect()
db.sql(f"create table sales as select (k * 7919) % {count} as customer, k % 1000 as price from range({count}) t(k)")
db.sql(f"create table customers as select k as customer, k % 200 as country from range({count}) t(k)")
print(db.sql("select sum(p) from (select country, avg(price) p from sales join customers using (customer) group by country)").fetchall())
