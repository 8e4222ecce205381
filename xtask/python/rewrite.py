"""Writes a recording again with pyarrow: same schema, rows, batches and compression level.

Usage: rewrite.py FILE
Prints `bytes` and `batches`.
"""

import sys

import pyarrow
from pyarrow import ipc

# As in crates/recording/src/arrow/encode.rs.
LEVEL = 1


def main():
    reader = ipc.open_stream(sys.argv[1])
    sink = pyarrow.BufferOutputStream()
    options = ipc.IpcWriteOptions(compression=pyarrow.Codec("zstd", compression_level=LEVEL))
    batches = 0
    with ipc.new_stream(sink, reader.schema, options=options) as writer:
        for batch in reader:
            writer.write_batch(batch)
            batches += 1
    print("bytes", sink.getvalue().size)
    print("batches", batches)


main()
