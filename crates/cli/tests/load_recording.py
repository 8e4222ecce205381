"""Loads a recording with pyarrow and with polars, and checks that both see the same.

Usage: load_recording.py FILE [COLUMN]
Prints the schema, the number of rows and, of COLUMN, the first and the last value. Differences of
neighbours are the same in both and in DuckDB, and those of a level that fell are below zero. Ends
with status 1 and a sentence if anything differs.
"""

import sys

import duckdb
import polars
import pyarrow.ipc


def same(what, one, other):
    if one != other:
        sys.exit(f"{what}: pyarrow sees {one!r}, polars {other!r}")


def differences(table, frame):
    """Of levels, where unsigned numbers would give wrong ones."""
    fell, query = 0, duckdb.connect()
    query.register("samples", table)
    for field in table.schema:
        if field.metadata.get(b"kind") != b"gauge" or field.name == "took":
            continue
        values = [value for value in table[field.name].to_pylist() if value is not None]
        expected = [after - before for before, after in zip(values, values[1:])]
        column = frame[field.name].drop_nulls()
        same(f"differences of {field.name}", expected, (column - column.shift()).to_list()[1:])
        least = f'SELECT min(d) FROM (SELECT "{field.name}" - lag("{field.name}") OVER (ORDER BY time) AS d'
        found = query.execute(f'{least} FROM samples WHERE "{field.name}" IS NOT NULL)').fetchone()[0]
        same(f"least difference of {field.name} in DuckDB", min(expected, default=None), found)
        fell += sum(value < 0 for value in expected)
    print(f"{fell} differences below zero")


def main():
    table = pyarrow.ipc.open_stream(sys.argv[1]).read_all()
    table.validate(full=True)
    frame = polars.read_ipc_stream(sys.argv[1])
    same("columns", table.column_names, frame.columns)
    same("rows", table.num_rows, frame.height)
    for field in table.schema:
        print(f"{field.name}: {field.type} {sorted(field.metadata)}")
    differences(table, frame)
    print(f"rows {table.num_rows}")
    for name in ["label", *sys.argv[2:]]:
        same(name, table[name].to_pylist(), frame[name].to_list())
    for name in sys.argv[2:]:
        values = [value for value in table[name].to_pylist() if value is not None]
        if not values:
            sys.exit(f"{name}: no values")
        print(f"{name}: {values[0]} .. {values[-1]}, {len(values)} values")


main()
