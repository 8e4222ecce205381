use super::*;
use crate::fetch::{FetchRequest, fetch};
use crate::testing::header;
use numakit_recording::Reader;

const SECOND: u64 = 1_000_000_000;

/// The clock is set back by a minute and more, twice, while samples are pushed: each row arrives, with the time that it has.
#[test]
fn a_clock_that_is_set_back_loses_no_row() {
    let folder = std::env::temp_dir().join(format!("numakit-clock-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let target = PushTarget::parse(&format!("parquet:{}", folder.join("fleet").display())).unwrap();
    let spool = Spool::open(&folder.join("spool"), 1 << 20).unwrap();
    let push = LivePush::start(&header(3), &target, spool, |_| {}).unwrap();
    // No two rows have the same time.
    let seconds = (1000..1030).chain(940..1010).chain(900..1100);
    let mut rows: Vec<(u64, u64)> =
        seconds.zip(0..).map(|(second, number)| (second * SECOND + number, number)).collect();
    for (time, number) in &rows {
        push.ring().push(*time, 0, &[Some(*number), None, Some(7)]);
    }
    let state = push.finish(Duration::from_secs(60));
    assert_eq!((state.sent.rows, state.spool.waiting, state.spool.dropped, state.lost), (300, 0, 0, 0));
    let request = FetchRequest { target: &target, host: "h", range: (0, 2000 * SECOND), known: Vec::new() };
    let output = folder.join("back.arrows");
    assert_eq!(fetch(&request, &output, true).unwrap().samples, 300);
    let mut reader = Reader::open(&output).unwrap();
    let mut fetched = Vec::new();
    while let Some(batch) = reader.next_batch() {
        fetched.extend((0..batch.len()).map(|row| (batch.time[row], batch.columns[0].get(row).unwrap())));
    }
    rows.sort_unstable();
    assert_eq!(fetched, rows);
    let narrow = FetchRequest { range: (1005 * SECOND, 1010 * SECOND), ..request };
    assert_eq!(fetch(&narrow, &output, true).unwrap().samples, 15, "five seconds, each three times");
    std::fs::remove_dir_all(&folder).unwrap();
}
