"""Loads a recording with pyarrow and with polars, and checks that both see the same.

Usage: load_recording.py FILE [COLUMN]
Prints the schema, the number of rows and, of COLUMN, the first and the last value. Ends with
status 1 and a sentence if the two differ.
"""

import sys

import polars
import pyarrow.ipc


def same(what, one, other):
    if one != other:
        sys.exit(f"{what}: pyarrow sees {one!r}, polars {other!r}")


def main():
    table = pyarrow.ipc.open_stream(sys.argv[1]).read_all()
    table.validate(full=True)
    frame = polars.read_ipc_stream(sys.argv[1])
    same("columns", table.column_names, frame.columns)
    same("rows", table.num_rows, frame.height)
    for field in table.schema:
        print(f"{field.name}: {field.type}")
    print(f"rows {table.num_rows}")
    for name in ["label", *sys.argv[2:]]:
        same(name, table[name].to_pylist(), frame[name].to_list())
    for name in sys.argv[2:]:
        values = [value for value in table[name].to_pylist() if value is not None]
        if not values:
            sys.exit(f"{name}: no values")
        print(f"{name}: {values[0]} .. {values[-1]}, {len(values)} values")


main()
