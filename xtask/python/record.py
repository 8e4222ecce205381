"""Starts a recorder, watches it from outside, ends it, and looks at its file.

Usage: record.py SECONDS FILE NUMA record OPTION...
Prints `name value` lines.
"""

import glob
import os
import signal
import subprocess
import sys
import time

LOST = ("numakit:lost ", "numakit:dropped ")


def thread_cpu_ns(pid, name):
    """CPU time of the thread of that name."""
    for task in glob.glob(f"/proc/{pid}/task/*"):
        if open(f"{task}/comm").read().strip() == name:
            return int(open(f"{task}/schedstat").read().split()[0])
    sys.exit(f"the recorder has no thread '{name}'")


def peak_rss_kib(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    sys.exit("the recorder ended early")


def watch(seconds, command):
    """Runs the recorder that long; returns figures of the process."""
    started = time.time_ns()
    recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    time.sleep(seconds)
    if recorder.poll() is not None:
        sys.exit(f"the recorder ended early with status {recorder.returncode}")
    sampler = thread_cpu_ns(recorder.pid, "sampler")
    rss = peak_rss_kib(recorder.pid)
    recorder.send_signal(signal.SIGINT)
    _, status, usage = os.wait4(recorder.pid, 0)
    if status != 0:
        sys.exit(f"the recorder ended with wait status {status}")
    process = (usage.ru_utime + usage.ru_stime) * 1e6
    return started, sampler / 1e3, process, rss


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def main():
    seconds, file, command = float(sys.argv[1]), sys.argv[2], sys.argv[3:]
    started, sampler_us, process_us, rss = watch(seconds, command + ["--force", "-o", file])

    import pyarrow.ipc

    table = pyarrow.ipc.open_stream(file).read_all()
    labels = table["label"].to_pylist()
    times = table["time"].cast("int64").to_pylist()
    sample_times = [t for t, label in zip(times, labels) if label is None]
    samples = len(sample_times)
    lost = sum(int(l.split()[1]) for l in labels if l is not None and l.startswith(LOST))

    figures = {
        "samples": samples,
        "series": table.num_columns - 3,
        "lost": lost,
        "missed": lost / (samples + lost),
        "sampler_us": sampler_us / samples,
        "process_us": process_us / samples,
        "rss_kib": rss,
        "bytes": os.path.getsize(file),
        "first_sample_ms": (sample_times[0] - started) / 1e6,
    }
    if "self.wakeup" in table.column_names:
        late = [ns / 1e3 for ns in table["self.wakeup"].to_pylist() if ns is not None]
        figures["wake_p50_us"] = percentile(late, 0.50)
        figures["wake_p99_us"] = percentile(late, 0.99)
    for name, value in figures.items():
        print(name, value)


main()
