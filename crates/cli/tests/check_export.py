"""Reads an export with what its format's own people use, and compares it with the recording.

Usage: check_export.py FORMAT raw|rates RECORDING EXPORT
Prints what was compared; ends with status 1 and a sentence if something differs.
"""

import collections
import json
import math
import re
import sys

import pyarrow
import pyarrow.ipc

NOT_COMPARED = ("time", "took", "label")


def same(what, ours, expected):
    if ours != expected:
        where, ours, expected = first_difference("", ours, expected)
        sys.exit(f"{what}{where}: the export has {ours!r:.300}, the recording {expected!r:.300}")


def first_difference(where, ours, expected):
    """Where two values differ first, and the values there."""
    if isinstance(ours, dict) and isinstance(expected, dict) and ours.keys() == expected.keys():
        keys = ours.keys()
    elif isinstance(ours, list) and isinstance(expected, list) and len(ours) == len(expected):
        keys = range(len(ours))
    else:
        return where, ours, expected
    key = next((key for key in keys if ours[key] != expected[key]), None)
    return (where, ours, expected) if key is None else first_difference(f"{where}[{key!r}]", ours[key], expected[key])


class Recording:
    """A recording as pyarrow reads it, with rates computed here."""

    def __init__(self, path):
        self.table = pyarrow.ipc.open_stream(path).read_all()
        self.meta = json.loads(self.table.schema.metadata[b"numakit"])
        self.metrics = {metric["name"]: metric for metric in self.meta["metrics"]}
        self.times = self.table["time"].cast("int64").to_pylist()
        self.labels = self.table["label"].to_pylist()
        self.names = [n for n in self.table.column_names if n not in NOT_COMPARED]

    def metric(self, name):
        return self.metrics[name.partition("@")[0]]

    def bits(self, name):
        """The width of a counter; None for what is none."""
        kind = self.metric(name)["kind"]
        return kind["counter"]["bits"] if isinstance(kind, dict) else None

    def points(self, name, values):
        """(when the value begins, row, value) of every row that has one."""
        bits = self.bits(name)
        column = self.table[name].to_pylist()
        rows = [(self.times[row], row, value) for row, value in enumerate(column) if value is not None]
        if values == "raw" or bits is None:
            return rows
        wait = self.metric(name).get("resolution", {"secs": 0, "nanos": 0})
        wait = max(1, wait["secs"] * 10**9 + wait["nanos"])
        rates, last = [], None
        for time, row, value in rows:
            if last is not None and time - last[0] < wait:
                continue
            if last is not None and (moved := difference(last[1], value, bits)) is not None:
                rates.append((last[0], row, moved * 1e9 / (time - last[0])))
            last = (time, value)
        return rates


def difference(before, after, bits):
    if after >= before:
        return after - before
    moved = (1 << bits) + after - before
    return moved if bits < 64 and moved < (1 << bits) // 2 else None


def csv(recording, values, path):
    import csv as reader

    rows = list(reader.reader(open(path, newline="")))
    same("columns", rows[0], recording.table.column_names)
    same("rows", len(rows) - 1, recording.table.num_rows)
    for index, name in enumerate(recording.names, 3):
        ours = [(row, float(line[index])) for row, line in enumerate(rows[1:]) if line[index]]
        same(name, ours, [(row, float(value)) for _, row, value in recording.points(name, values)])
    return f"{len(rows) - 1} rows, {len(recording.names)} series"


def parquet(recording, values, path):
    import duckdb
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    table.validate(full=True)
    same("columns", table.column_names, recording.table.column_names)
    same("metadata", json.loads(table.schema.metadata[b"numakit"]), recording.meta)
    compared = recording.table.schema
    for name in NOT_COMPARED:
        same(f"type of {name}", table.schema.field(name).type, compared.field(name).type)
        if not table[name].equals(recording.table[name]):
            sys.exit(f"{name} differs")
    query = duckdb.connect()
    for name in recording.names:
        said = {key.decode(): value.decode() for key, value in table.schema.field(name).metadata.items()}
        metric, rate = recording.metric(name), values == "rates" and recording.bits(name) is not None
        same(f"help of {name}", said.get("help", ""), metric["help"])
        same(f"unit of {name}", said["unit"].endswith("/s"), rate)
        kind = "counter" if recording.bits(name) is not None else metric["kind"]
        same(f"kind of {name}", said["kind"], "rate" if rate else kind)
        points = recording.points(name, values)
        ours = [(row, value) for row, value in enumerate(table[name].to_pylist()) if value is not None]
        same(name, ours, [(row, value) for _, row, value in points])
        floats = values == "rates" and recording.bits(name) is not None
        kind = "double" if floats else str(compared.field(name).type)
        same(f"type of {name}", str(table.schema.field(name).type), kind)
    columns = ", ".join(f'count("{name}"), sum("{name}"::DOUBLE)' for name in recording.names)
    seen = query.execute(f"SELECT count(*), {columns} FROM read_parquet(?)", [path]).fetchone()
    same("rows in DuckDB", seen[0], recording.table.num_rows)
    for name, count, total in zip(recording.names, seen[1::2], seen[2::2]):
        found = [float(value) for _, _, value in recording.points(name, values)]
        same(f"values of {name} in DuckDB", count, len(found))
        if found and not math.isclose(total, math.fsum(found), rel_tol=1e-9):
            sys.exit(f"{name}: DuckDB sums {total}, the recording {math.fsum(found)}")
    return f"{seen[0]} rows, {len(recording.names)} series, {sum(seen[1::2])} values"


def unknown_fields(message, at):
    """A field that the official definition does not have is an error."""
    from google.protobuf import unknown_fields as unknown

    found = [field.field_number for field in unknown.UnknownFieldSet(message)]
    if found:
        sys.exit(f"{at}: the definition has no fields {found}")
    for field, content in message.ListFields():
        if field.message_type is not None:
            several = content if isinstance(content, collections.abc.Sequence) else [content]
            for one in several:
                unknown_fields(one, f"{at}.{field.name}")


def steps(points):
    """A line of steps: no value twice, but the last one where it was last seen."""
    line, until = [], None
    for begin, time, value in points:
        if not line or line[-1][1] != value:
            line.append((begin, value))
        until = time
    if line and until > line[-1][0]:
        line.append((until, line[-1][1]))
    return line


def perfetto(recording, values, path):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as definition

    data = open(path, "rb").read()
    trace = definition.Trace.FromString(data)
    unknown_fields(trace, "trace")
    same("bytes when encoded again", len(trace.SerializeToString()), len(data))
    same("clock", trace.packet[0].clock_snapshot.primary_trace_clock, definition.BUILTIN_CLOCK_REALTIME)
    tracks, counters, instants = {}, collections.defaultdict(list), []
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.uuid in tracks or (track.parent_uuid and track.parent_uuid not in tracks):
                sys.exit(f"track {track.uuid} comes twice or before its parent")
            tracks[track.uuid] = track
        elif packet.HasField("track_event"):
            event = packet.track_event
            same("clock of an event", packet.timestamp_clock_id, definition.BUILTIN_CLOCK_REALTIME)
            if event.type == definition.TrackEvent.TYPE_INSTANT:
                instants.append((packet.timestamp, event.name))
                continue
            same("type", event.type, definition.TrackEvent.TYPE_COUNTER)
            value = getattr(event, event.WhichOneof("counter_value_field"))
            counters[event.track_uuid].append((packet.timestamp, value))
    labels = [(time, text) for time, text in zip(recording.times, recording.labels) if text is not None]
    same("labels", instants, labels)
    of_series = {name_of_track(tracks, track): uuid for uuid, track in tracks.items() if track.HasField("counter")}
    same("tracks", sorted(of_series), sorted(recording.names))
    for name in recording.names:
        points = [(begin, recording.times[row], value) for begin, row, value in recording.points(name, values)]
        same(name, counters[of_series[name]], steps(points))
    events = sum(len(line) for line in counters.values())
    return f"{len(trace.packet)} packets, {len(tracks)} tracks, {events} values, {len(labels)} labels"


def name_of_track(tracks, track):
    name, unit = re.fullmatch(r"(\S+) \((.+)\)", track.name).groups()
    same("unit", track.counter.unit_name, unit)
    place = tracks[track.parent_uuid].name
    return name if place == "machine" else f"{name}@{place.replace(' ', '')}"


def influx(recording, values, path):
    from line_protocol_parser import parse_line

    found, labels = collections.defaultdict(list), []
    row_of = {time: row for row, time in enumerate(recording.times) if recording.labels[row] is None}
    for line in open(path, newline="\n"):
        point = parse_line(line.rstrip("\n"))
        same("host", point["tags"].pop("host"), recording.meta["host"])
        if point["measurement"] == "label":
            labels.append((point["time"], point["fields"]["text"]))
            continue
        rate = point["tags"].pop("kind") == "rate"
        place = "".join(f"@{word}{number}" for word, number in point["tags"].items())
        for field, value in point["fields"].items():
            same(f"type of {field}", type(value), float if rate else int)
            same(f"name of {field}", field.endswith("_per_second"), rate)
            field = field.removesuffix("_per_second")
            found[f"{point['measurement']}.{field}{place}"].append((row_of[point["time"]], value))
    expected = [(time, text) for time, text in zip(recording.times, recording.labels) if text is not None]
    same("labels", labels, expected)
    words = {name: influx_name(name) for name in recording.names}
    same("series", sorted(set(found) - set(words.values())), [])
    for name in recording.names:
        same(name, found[words[name]], [(row, value) for _, row, value in recording.points(name, values)])
    return f"{sum(len(points) for points in found.values())} values, {len(labels)} labels"


def influx_name(name):
    sensor, _, rest = name.partition(".")
    metric, at, place = rest.partition("@")
    return f"{sensor}.{'_'.join(filter(None, re.split(r'[^0-9A-Za-z_]+', metric)))}{at}{place}"


SCALES = {
    "ticks": ("seconds", 0.01),
    "nanoseconds": ("seconds", 1e-9),
    "microseconds": ("seconds", 1e-6),
    "milliseconds": ("seconds", 1e-3),
    "kibibytes": ("bytes", 1024),
}


def openmetrics(recording, values, path):
    """The last sample, or every one: told by how many there are of a series."""
    from prometheus_client.openmetrics.parser import text_fd_to_metric_families

    families = {}
    for family in text_fd_to_metric_families(open(path)):
        families[family.name] = family
    count = 0
    for name in recording.names:
        points = recording.points(name, values)
        if not points:
            continue
        metric, _, place = name.partition("@")
        unit, scale = unit_of(recording, metric)
        rate = values == "rates" and recording.bits(name) is not None
        unit = "_per_second".join([unit, ""]).lstrip("_") if rate else unit
        family = families[family_name(metric, unit)]
        same(f"unit of {name}", family.unit, unit)
        counter = recording.bits(name) is not None and not rate
        same(f"type of {name}", family.type, "counter" if counter else "gauge")
        samples = [s for s in family.samples if place in ("".join(p) for p in places(s.labels))]
        compare(name, samples, points, recording, scale, "--all" in path)
        count += len(samples)
    return f"{len(families)} families, {count} samples"


def family_name(metric, unit):
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", f"numakit_{metric}")
    words = re.sub(r"[^A-Za-z0-9]+", "_", words).strip("_").lower()
    words = re.sub(r"(?<![a-z0-9])sec(?![a-z0-9])", "secondary", words).removesuffix("_total")
    return "_".join(filter(None, [words.removesuffix(f"_{unit}"), unit]))


def prometheus(recording, values, path):
    """The last value of every series, under its sample's name and without a time."""
    from prometheus_client.parser import text_fd_to_metric_families

    samples = {}
    for family in text_fd_to_metric_families(open(path)):
        for sample in family.samples:
            same(f"time of {sample.name}", sample.timestamp, None)
            (place,) = ("".join(pair) for pair in places(sample.labels))
            samples[sample.name, place] = sample.value
    for name in recording.names:
        points = recording.points(name, values)
        if not points:
            continue
        metric, _, place = name.partition("@")
        unit, scale = unit_of(recording, metric)
        counted = recording.bits(name) is not None
        if counted and values == "rates":
            unit = f"{unit}_per_second".lstrip("_")
        total = "_total" if counted and values == "raw" else ""
        value = samples.pop((family_name(metric, unit) + total, place))
        if not math.isclose(value, points[-1][2] * scale, rel_tol=1e-12):
            sys.exit(f"{name}: the export has {value}, the recording {points[-1][2]} x {scale}")
    same("more samples", samples, {})
    return f"{len(recording.names)} series"


def places(labels):
    same("host", "host" in labels, True)
    return [pair for pair in labels.items() if pair[0] != "host"] or [("", "")]


def unit_of(recording, metric):
    unit = recording.metrics[metric]["unit"]
    if unit == "pages":
        return "bytes", recording.meta["page_size"]
    return SCALES.get(unit, ("" if unit == "count" else unit, 1))


def compare(name, samples, points, recording, scale, is_all):
    if not is_all:
        same(f"samples of {name}", len(samples), 1)
        expected = [(recording.times[row], value) for _, row, value in points[-1:]]
        same(f"time of {name}", samples[0].timestamp.sec * 10**9 + samples[0].timestamp.nsec, expected[0][0])
    else:
        expected, last = [], -1
        by_row = {row: value for _, row, value in points}
        for row, time in enumerate(recording.times):
            if recording.labels[row] is not None or time // 10**6 <= last:
                continue
            last = time // 10**6
            if row in by_row:
                expected.append((last, by_row[row]))
        ours = [round(float(sample.timestamp) * 1000) for sample in samples]
        same(f"times of {name}", ours, [time for time, _ in expected])
    for sample, (_, value) in zip(samples, expected):
        if not math.isclose(sample.value, value * scale, rel_tol=1e-12):
            sys.exit(f"{name}: the export has {sample.value}, the recording {value} x {scale}")


FORMATS = {
    "csv": csv,
    "parquet": parquet,
    "perfetto": perfetto,
    "influx": influx,
    "openmetrics": openmetrics,
    "prometheus": prometheus,
}


def main():
    name, values, recording, export = sys.argv[1:]
    print(f"{name}, {values}: {FORMATS[name](Recording(recording), values, export)}")


if __name__ == "__main__":
    main()
