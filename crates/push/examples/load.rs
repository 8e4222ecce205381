//! Sends the rows of a recording as many hosts would, each once a second, and prints what the engine took.
//!
//! `load URL RECORDING HOSTS SECONDS`: a line of JSON with rows, values and refusals, the latencies of requests, and the number of rows
//! that were acknowledged more than a second after they were due.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use numakit_push::{Patience, PushTarget, Sender};
use numakit_recording::{Batch, Header, Reader};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SECOND: Duration = Duration::from_secs(1);
/// Threads do little.
const STACK: usize = 256 << 10;
/// Samples of the recording that are sent in turn.
const ROWS: usize = 60;

#[derive(Debug, Default)]
struct Sums {
    rows: AtomicU64,
    values: AtomicU64,
    refused: AtomicU64,
    late: AtomicU64,
    failed: AtomicU64,
}

/// One host, which sends for itself.
struct Host {
    header: Arc<Header>,
    rows: Arc<Batch>,
    target: PushTarget,
    /// Where in each second it sends.
    phase: Duration,
}

impl Host {
    /// Sends a row for each second from `start` on; the latencies in µs.
    fn send(&self, start: Instant, began: u64, seconds: u64, sums: &Sums) -> Vec<u64> {
        let stop = Arc::new(AtomicBool::new(false));
        let patience = Patience { outage: Duration::from_secs(60), stop, notice: |_| () };
        let mut sender = Sender::new(&self.target, patience).unwrap();
        let mut latencies = Vec::new();
        for second in 0..seconds {
            let due = start + self.phase + SECOND * u32::try_from(second).unwrap();
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let at = usize::try_from(second).unwrap() % self.rows.len();
            let mut row = self.rows.slice(at..at + 1);
            row.time[0] = began + second * 1_000_000_000 + u64::from(self.phase.subsec_nanos());
            let values = row.columns.iter().filter(|column| column.get(0).is_some()).count();
            let sent = Instant::now();
            if sender.send(&self.header, &row).is_err() {
                sums.failed.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            latencies.push(u64::try_from(sent.elapsed().as_micros()).unwrap());
            sums.rows.fetch_add(1, Ordering::Relaxed);
            sums.values.fetch_add(values as u64, Ordering::Relaxed);
            sums.late.fetch_add(u64::from(due.elapsed() > SECOND), Ordering::Relaxed);
        }
        sums.refused.fetch_add(sender.counts().lock().unwrap().refused.values().sum(), Ordering::Relaxed);
        latencies
    }
}

/// Bytes that this process has written so far, to sockets too.
fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap()
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, url, recording, hosts, seconds] = words.as_slice() else {
        panic!("load URL RECORDING HOSTS SECONDS")
    };
    let (hosts, seconds): (u32, u64) = (hosts.parse().unwrap(), seconds.parse().unwrap());
    let mut reader = Reader::open(Path::new(recording)).unwrap();
    let header = reader.header().clone();
    let rows = reader.next_batch().unwrap();
    let rows = Arc::new(rows.slice(0..rows.len().min(ROWS)));
    let before = written();
    let (start, sums) = (Instant::now() + SECOND, Arc::new(Sums::default()));
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + SECOND;
    let began = u64::try_from(began.as_nanos()).unwrap();
    let threads: Vec<_> = (0..hosts)
        .map(|number| {
            let header = Arc::new(Header { host: format!("load{number:05}"), ..header.clone() });
            let phase = SECOND * number / hosts;
            let target = PushTarget::parse(url).unwrap();
            let (host, sums) = (Host { header, rows: Arc::clone(&rows), target, phase }, Arc::clone(&sums));
            let run = move || host.send(start, began, seconds, &sums);
            std::thread::Builder::new().stack_size(STACK).spawn(run).unwrap()
        })
        .collect();
    let mut latencies: Vec<u64> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    let took = start.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let at = |share: f64| {
        let index = ((latencies.len() as f64 - 1.0) * share).max(0.0) as usize;
        latencies.get(index).map_or(0.0, |us| *us as f64 / 1e3)
    };
    let sum = |value: &AtomicU64| value.load(Ordering::Relaxed);
    println!(
        "{}",
        serde_json::json!({
            "seconds": took, "rows": sum(&sums.rows), "values": sum(&sums.values), "refused": sum(&sums.refused),
            "failed": sum(&sums.failed), "late": sum(&sums.late), "bytes": written() - before, "median_ms": at(0.5), "p99_ms": at(0.99),
        })
    );
}
