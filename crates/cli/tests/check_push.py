"""Reads what an engine was sent, or has, and compares it with the recording.

Usage: check_push.py ENGINE RECORDING WHAT
Prints what was compared; ends with status 1 and a sentence if something differs.
"""

import collections
import datetime
import glob
import json
import sys
import time
import urllib.parse
import urllib.request

from check_export import Recording, family_name, influx_name, same, unit_of, unknown_fields


def bodies(folder):
    for path in sorted(glob.glob(f"{folder}/*")):
        with open(path, "rb") as file:
            yield file.read()


UCUM = {"": "1", "bytes": "By", "seconds": "s"}


def otlp(recording, folder):
    """Requests, decoded by the official messages."""
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE as cumulative

    found, heads, requests = collections.defaultdict(list), {}, 0
    for body in bodies(folder):
        requests += 1
        request = ExportMetricsServiceRequest.FromString(body)
        unknown_fields(request, "request")
        (resource,) = request.resource_metrics
        attributes = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
        same("resource", attributes, {"service.name": "numa", "host.name": recording.meta["host"]})
        (scope,) = resource.scope_metrics
        same("scope", scope.scope.name, "numakit")
        for metric in scope.metrics:
            kind = metric.WhichOneof("data")
            heads[metric.name] = (kind, metric.unit, metric.description)
            data = getattr(metric, kind)
            if kind == "sum":
                same(f"sum {metric.name}", (data.aggregation_temporality, data.is_monotonic), (cumulative, True))
            for point in data.data_points:
                place = "".join(pair.key + pair.value.string_value for pair in point.attributes)
                value = getattr(point, point.WhichOneof("value"))
                found[metric.name, place].append((point.time_unix_nano, point.start_time_unix_nano, value))
    count = 0
    for name in recording.names:
        points = recording.points(name, "raw")
        metric, _, place = name.partition("@")
        unit, scale = unit_of(recording, metric)
        ours = found.pop((family_name(metric, unit), place), [])
        if not points:
            same(name, ours, [])
            continue
        counted = recording.bits(name) is not None
        kind, word, help = heads[family_name(metric, unit)]
        same(f"kind of {name}", kind, "sum" if counted else "gauge")
        same(f"unit of {name}", word, UCUM.get(unit, f"{{{unit}}}"))
        same(f"help of {name}", help.rstrip("."), recording.metrics[metric]["help"].rstrip("."))
        # A sum begins where its first value is: nobody knows when it was 0.
        since = recording.times[points[0][1]] if counted else 0
        same(f"times of {name}", [point[:2] for point in ours], [(recording.times[row], since) for _, row, _ in points])
        for (_, _, value), (_, _, raw) in zip(ours, points):
            same(f"value of {name}", abs(value - raw * scale) <= 1e-12 * abs(value), True)
        count += len(points)
    same("more series", list(found), [])
    return f"{requests} requests, {len(recording.names)} series, {count} values"


def applied(ask):
    """Waits until all that was acknowledged can be read."""
    for _ in range(600):
        if all(row[0] == row[1] for row in ask("SELECT writerTxn, sequencerTxn FROM wal_tables()")["dataset"]):
            return
        time.sleep(0.1)
    sys.exit("QuestDB does not apply what it acknowledged")


def questdb(recording, address):
    """All tables: every row once, and every value."""

    def ask(query):
        url = f"http://{address}/exec?query={urllib.parse.quote(query)}"
        return json.load(urllib.request.urlopen(url, timeout=60))

    applied(ask)
    words = {name: influx_name(name) for name in recording.names}
    found, rows = collections.defaultdict(list), collections.Counter()
    for table in sorted({word.partition(".")[0] for word in words.values()}):
        answer = ask(f'SELECT * FROM "{table}" ORDER BY timestamp')
        columns = [column["name"] for column in answer["columns"]]
        types = {column["name"]: column["type"] for column in answer["columns"]}
        for line in answer["dataset"]:
            row = dict(zip(columns, line))
            at, kind = row.pop("timestamp"), row.pop("kind")
            same("host", row.pop("host"), recording.meta["host"])
            places = {tag: row.pop(tag) for tag in list(row) if types[tag] == "SYMBOL"}
            place = "".join(f"@{tag}{value}" for tag, value in places.items() if value is not None)
            rows[table, kind, place, at] += 1
            for field, value in row.items():
                if value is not None:
                    found[f"{table}.{field}{place}"].append((at, value))
    same("rows that are there twice", {key for key, count in rows.items() if count > 1}, set())
    for name in recording.names:
        points = recording.points(name, "raw")
        same(name, found.pop(words[name], []), [(micros(recording.times[row]), value) for _, row, value in points])
    same("more series", list(found), [])
    labels = ask("SELECT timestamp, host, text FROM label ORDER BY timestamp")["dataset"]
    expected = [(at, text) for at, text in zip(recording.times, recording.labels) if text is not None]
    same("labels", [(at, text) for at, _, text in labels], [(micros(at), text) for at, text in expected])
    return f"{sum(rows.values())} rows, {len(recording.names)} series, {len(labels)} labels"


def micros(ns):
    moment = datetime.datetime.fromtimestamp(ns // 10**9, datetime.timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns // 1000 % 10**6:06}Z"


def clickhouse(recording, folder):
    """The statements that were sent, twice each, run by ClickHouse as a library."""
    from chdb import session

    engine = session.Session(f"{folder}.chdb")
    statements = [body.decode() for body in bodies(folder)] * 2
    for statement in statements:
        engine.query(statement)
    query = "SELECT toUnixTimestamp64Nano(time) t, host, metric, instance, value, label FROM numa FINAL ORDER BY t"
    found, labels = collections.defaultdict(list), []
    for line in str(engine.query(query, "JSONCompactEachRow")).splitlines():
        at, host, metric, instance, value, label = json.loads(line)
        same("host", host, recording.meta["host"])
        if metric == "label":
            labels.append((int(at), label))
        else:
            found["@".join(filter(None, [metric, instance]))].append((int(at), int(value)))
    return compared(recording, found, labels) + f", {len(statements)} statements"


def compared(recording, found, labels):
    """Values by series, with their times in ns, and labels."""
    for name in recording.names:
        points = recording.points(name, "raw")
        same(name, found.pop(name, []), [(recording.times[row], value) for _, row, value in points])
    same("more series", list(found), [])
    expected = [(at, text) for at, text in zip(recording.times, recording.labels) if text is not None]
    same("labels", sorted(labels), sorted(expected))
    count = sum(value is not None for name in recording.names for value in recording.table[name].to_pylist())
    return f"{count} values of {len(recording.names)} series, {len(labels)} labels"


def duckdb(recording, folder):
    import duckdb as engine

    cursor = engine.connect().execute(
        f"SELECT * EXCLUDE (time), epoch_ns(time) AS t FROM read_parquet('{folder}/**/*.parquet', hive_partitioning = true) ORDER BY t"
    )
    columns = [column[0] for column in cursor.description]
    return of_folder(recording, (dict(zip(columns, line)) for line in cursor.fetchall()))


def chdb(recording, folder):
    import chdb as engine

    # Hosts and days are columns of the paths.
    query = f"SELECT *, toUnixTimestamp64Nano(time) AS t FROM file('{folder}/**/*.parquet', Parquet) ORDER BY t"
    settings = " SETTINGS use_hive_partitioning = 1, output_format_json_quote_64bit_integers = 0"
    lines = str(engine.query(query + settings, "JSONEachRow")).splitlines()
    return of_folder(recording, map(json.loads, lines))


def of_folder(recording, rows):
    found, labels = collections.defaultdict(list), []
    for row in rows:
        same("host", row["host"], recording.meta["host"])
        at = int(row["t"])
        if row["label"] is not None:
            labels.append((at, row["label"]))
            continue
        for name in recording.names:
            if row[name] is not None:
                found[name].append((at, int(row[name])))
    return compared(recording, found, labels)


ENGINES = {"otlp": otlp, "questdb": questdb, "clickhouse": clickhouse, "duckdb": duckdb, "chdb": chdb}


def main():
    engine, recording, what = sys.argv[1:]
    print(f"{engine}: {ENGINES[engine](Recording(recording), what)}")


main()
