//! Engines that are slow, broken or hostile, and what becomes of the rows.

use crate::runner::{Done, Folder, Mounted, Rows};
use crate::scripted::{Asked, Scripted, answer, cut};
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The times of the lines that the engine has taken, which are those of `vmstat`.
fn times<'a>(taken: impl Iterator<Item = &'a Asked>) -> BTreeSet<u64> {
    let text: Vec<String> = taken.map(|asked| String::from_utf8(asked.body.clone()).unwrap()).collect();
    let lines = text.iter().flat_map(|body| body.lines()).filter(|line| line.starts_with("vmstat,"));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
}

fn recorded(rows: &Rows) -> BTreeSet<u64> {
    let samples = |batch: &numakit_recording::Batch| {
        (0..batch.len())
            .filter(|row| batch.label[*row].is_none())
            .map(|row| batch.time[row])
            .collect::<Vec<_>>()
    };
    rows.batches.iter().flat_map(samples).collect()
}

/// An engine that takes nothing until the value is set.
fn engine_that_is_down() -> (Scripted, Arc<AtomicBool>) {
    let is_up: Arc<AtomicBool> = Arc::default();
    let up = Arc::clone(&is_up);
    let engine = Scripted::start(move |_, _, to| match up.load(Ordering::Relaxed) {
        true => answer(to, "204 No Content", b""),
        false => answer(to, "503 Unavailable", b""),
    });
    (engine, is_up)
}

/// Writes an odd answer.
type Odd = dyn Fn(&mut dyn Write) -> std::io::Result<()> + Send + Sync;

/// An engine that is odd with its first two requests, and then well.
fn all_arrives_after(
    folder: &Folder,
    script: impl Fn(&mut dyn Write) -> std::io::Result<()> + Send + Sync + 'static,
) -> (Done, usize) {
    let engine = Scripted::start(move |number, _, to| match number {
        0..2 => script(to),
        _ => answer(to, "204 No Content", b""),
    });
    let done = folder.run(&format!("push a.arrows --to influxdb1+http://{}?db=d", engine.address));
    let asked = engine.asked();
    assert_eq!(times(asked.iter().skip(2)), recorded(&folder.read("a.arrows")), "{}{}", done.out, done.err);
    (done, asked.len())
}

/// Nothing is lost, whatever an engine answers, and what it answered is said on one line.
#[test]
fn rows_outlive_odd_answers() {
    let folder = Folder::new("push-odd");
    folder.run("record -i 10ms -e vmstat -o a.arrows -- sleep 0.3").says(0, "");
    let head = "HTTP/1.1 204 No Content\r\n";
    let cases: [(&str, Box<Odd>); 9] = [
        ("has not answered: connection closed before message completed", Box::new(|_| cut())),
        ("status 503: sh [2Jut down", Box::new(|to| answer(to, "503 Unavailable", b"sh\x1b[2Jut down"))),
        ("status 500", Box::new(|to| answer(to, "500 Oops", b""))),
        (
            "status 429",
            Box::new(|to| to.write_all(b"HTTP/1.1 429 Slow\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")),
        ),
        (
            "status 429",
            Box::new(|to| {
                to.write_all(b"HTTP/1.1 429 Slow\r\nRetry-After: -1e99 \xff\r\nContent-Length: 0\r\n\r\n")
            }),
        ),
        (
            "does not speak HTTP",
            Box::new(|to| to.write_all(b"\x16\x03\x01 garbage\r\n\r\n").and_then(|()| cut())),
        ),
        // In the middle of an answer.
        (
            "has not answered",
            Box::new(|to| {
                to.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").and_then(|()| cut())
            }),
        ),
        (
            "does not speak HTTP",
            Box::new(move |to| {
                let giant = format!("{head}X: {}\r\n\r\n", "x".repeat(4 << 20));
                to.write_all(giant.as_bytes()).and_then(|()| cut())
            }),
        ),
        (
            "does not speak HTTP",
            Box::new(move |to| {
                let many: String = (0..5000).map(|number| format!("x{number}: y\r\n")).collect();
                to.write_all(format!("{head}{many}\r\n").as_bytes()).and_then(|()| cut())
            }),
        ),
    ];
    for (says, script) in cases {
        let (done, requests) = all_arrives_after(&folder, script);
        assert!(
            done.code == 0 && done.err.contains(says) && done.err.contains("trying again"),
            "{says}: {}",
            done.err
        );
        assert!(done.out.contains("2 repeated, 1 outage"), "{}", done.out);
        assert_eq!(requests, 4, "two odd answers, one to the description, one to the rows");
    }
}

/// An engine that does not answer is left after half a minute, and asked again.
#[test]
#[ignore = "thorough: an engine that is silent for half a minute"]
fn a_silent_engine_is_asked_again() {
    let folder = Folder::new("push-silent");
    folder.run("record -i 10ms -e vmstat -o a.arrows -- sleep 0.2").says(0, "");
    let engine = Scripted::start(|number, _, to| match number {
        0 => {
            std::thread::sleep(Duration::from_secs(60));
            cut()
        }
        _ => answer(to, "204 No Content", b""),
    });
    let done = folder.run(&format!("push a.arrows --to influxdb1+http://{}?db=d", engine.address));
    done.says(0, "has not answered for 30 s; trying again");
    assert_eq!(times(engine.asked().iter().skip(1)), recorded(&folder.read("a.arrows")));
}

/// An answer that never ends is one whose end is not read.
#[test]
fn an_endless_answer_is_read_as_far_as_it_is_needed() {
    let folder = Folder::new("push-endless");
    folder.run("record -i 10ms -e vmstat -o a.arrows -- sleep 0.2").says(0, "");
    let endless = |status: &'static str| {
        Scripted::start(move |_, _, to| {
            write!(to, "HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            loop {
                to.write_all(b"400\r\n")?;
                to.write_all(&[b'x'; 0x400])?;
                to.write_all(b"\r\n")?;
            }
        })
    };
    let taking = endless("200 OK");
    let done = folder.run(&format!("push a.arrows --to influxdb1+http://{}?db=d", taking.address));
    assert!(done.code == 0 && done.out.contains("sent in 1 request\n"), "{}{}", done.out, done.err);
    let refusing = endless("404 Not Found");
    let done = folder.run(&format!("push a.arrows --to influxdb1+http://{}?db=d", refusing.address));
    done.says(2, "xxx...");
    assert!(done.err.len() < 1000, "{}", done.err);
    // Of an answer to a query, an end is needed.
    for (url, says) in [("influxdb1+http://ADDRESS?db=d", ""), ("prometheus+http://ADDRESS", "")] {
        let url = url.replace("ADDRESS", &taking.address.to_string());
        let done = folder.run(&format!("fetch {url} --host h --from 1h -o b.arrows"));
        done.says(2, says);
        assert!(done.err.contains("answers with more than 64 MiB; fetch a shorter range"), "{}", done.err);
    }
}

/// Of a request that is too large, parts are sent; a row that is refused is left out, and counted.
#[test]
fn a_small_engine_gets_small_requests_and_one_bad_row_costs_one_row() {
    let folder = Folder::new("push-parts");
    folder.run("record -i 10ms -e vmstat.pgfault -o a.arrows -- sleep 0.5").says(0, "");
    let all = recorded(&folder.read("a.arrows"));
    let bad = *all.iter().nth(all.len() / 2).unwrap();
    let engine = Scripted::start(move |_, asked, to| {
        let lines: Vec<&[u8]> = asked.body.split_inclusive(|byte| *byte == b'\n').collect();
        let is_bad = lines.iter().any(|line| line.ends_with(format!(" {bad}\n").as_bytes()));
        match lines.len() {
            5.. => answer(to, "413 Too Large", b""),
            _ if is_bad => answer(to, "400 Bad Request", b"{\"error\":\"I do not\\nlike it\"}"),
            _ => answer(to, "204 No Content", b""),
        }
    });
    let done = folder.run(&format!("push a.arrows --to influxdb1+http://{}?db=d", engine.address));
    done.says(1, "");
    let refused = "1 values refused: vmstat.pgfault: status 400: {\"error\":\"I do not\\nlike it\"}";
    assert!(done.out.contains(refused), "{}", done.out);
    let taken = engine.asked();
    let small = |asked: &&Asked| asked.body.iter().filter(|byte| **byte == b'\n').count() < 5;
    let good =
        taken.iter().filter(small).filter(|asked| !asked.body.ends_with(format!(" {bad}\n").as_bytes()));
    assert!(times(good).len() >= all.len() - 4);
    assert_eq!(times(taken.iter().filter(small)), all, "all were tried");
}

/// numa is killed while an engine is down; the next run sends what is in the spool, which is all but the last half second.
#[test]
fn a_killed_record_loses_only_what_was_not_yet_in_the_spool() {
    let folder = Folder::new("push-killed");
    let (engine, is_up) = engine_that_is_down();
    let url = format!("influxdb1+http://{}?db=d", engine.address);
    let line = format!("record -i 10ms -e vmstat --spool spool --to {url} -o a.arrows -- sleep 6");
    let mut recording = folder.spawn(&line);
    std::thread::sleep(Duration::from_secs(4));
    recording.signal("KILL");
    recording.wait();
    let all = recorded(&folder.read("a.arrows"));
    let before = engine.asked().len();
    is_up.store(true, Ordering::Relaxed);
    folder.run(&format!("push --spool spool --to {url}")).says(0, "");
    let sent = times(engine.asked().iter().skip(before));
    let lost = all.difference(&sent).count();
    println!("{} of {} rows were sent, {lost} were not yet in the spool", sent.len(), all.len());
    assert!(sent.len() > 100 && sent.is_subset(&all));
    assert!(all.iter().take(sent.len()).eq(&sent), "what is lost was the last");
    assert!(lost <= 250, "a quarter of the ring at most: {lost}");
}

/// The disk of the spool is full: the oldest rows are dropped and counted, all others arrive later.
#[test]
fn on_a_full_disk_the_newest_rows_wait() {
    let folder = Folder::new("push-full");
    let Some(_mounted) = Mounted::at(&folder, "small", "size=100k") else { return };
    let (engine, is_up) = engine_that_is_down();
    let url = format!("influxdb1+http://{}?db=d", engine.address);
    let line = format!("record -i 1ms --spool small/spool --to {url} -o a.arrows -- sleep 6");
    let done = folder.run(&line);
    done.says(1, "rows were dropped, the oldest first");
    let number = |before: &str| {
        let line =
            done.err.lines().find(|line| line.contains(before)).unwrap_or_else(|| panic!("{}", done.err));
        line.split_whitespace()
            .find_map(|word| word.replace(',', "").parse::<usize>().ok())
            .unwrap_or_else(|| panic!("{line}"))
    };
    let (dropped, waiting) = (number(" rows were dropped"), number(" rows not sent"));
    let rows = folder.read("a.arrows");
    let (all, labels) = (recorded(&rows), rows.labels().len());
    assert_eq!(dropped + waiting, all.len() + labels, "{}", done.err);
    let before = engine.asked().len();
    is_up.store(true, Ordering::Relaxed);
    let pushed = folder.run(&format!("push --spool small/spool --to {url}"));
    pushed.says(0, "");
    let sent = times(engine.asked().iter().skip(before));
    println!("{} rows of {}: {dropped} dropped, {} sent later", waiting, all.len() + labels, sent.len());
    assert!(sent.len() > 200 && sent.is_subset(&all), "{}", sent.len());
    assert!(waiting.abs_diff(sent.len()) <= labels, "{waiting} waited, {} were sent", sent.len());
    assert!(all.iter().rev().take(sent.len()).eq(sent.iter().rev()), "the newest were kept");
}
