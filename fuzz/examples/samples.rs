//! Writes the samples of the formats of numakit, after a format has changed:
//! `cargo run -p numakit-fuzz --example samples`.

use numakit_history::{RecordedHistory, levels_of, plain};
use numakit_model::{Instance, Kind, Metric, Scope, Series, Unit};
use numakit_push::driver::{DriverAnswer, DriverMessage, DriverNothing, DriverRequest, EncodedRows};
use numakit_push::{Delivery, Spool};
use numakit_recording::{Batch, Header, Recorder, tail_of};
use numakit_registry::record::{self, HolderRecord, LockOwner};
use numakit_registry::{Holder, ProcessId};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn header() -> Header {
    let series = |name: &str, kind, scope, instance| {
        let metric = Metric {
            name: name.into(),
            unit: Unit::Count,
            kind,
            scope,
            help: String::new(),
            source: String::new(),
            resolution: Duration::ZERO,
            confidence: None,
            maximum: None,
        };
        Series::new(&Arc::new(metric), instance)
    };
    let columns = vec![
        series("vmstat.pgfault", Kind::COUNTER, Scope::Machine, Instance::Machine),
        series("node.MemFree", Kind::Gauge, Scope::Node, Instance::Node(0)),
    ];
    Header { series: columns, host: "sample".into(), ..Header::default() }
}

/// A registry with two holders, the second of which is damaged.
fn registry(corpus: &Path) -> Result<(), Box<dyn Error>> {
    let holder = Holder {
        application: "ep.C".to_owned(),
        user: 1000,
        since: Some(1_700_000_000_000_000_000),
        since_boot: 77,
        cores: Some(3),
        cgroup: Some("/user.slice".to_owned()),
        job: Some("4242".to_owned()),
        supervisor: Some(ProcessId { pid: 7, start: 78 }),
        program: Some(ProcessId { pid: 8, start: 79 }),
        pid_namespace: 4_026_531_836,
        tag: Some(77),
    };
    let record = HolderRecord { cpus: "0-2,64".parse()?, holder, ended: false };
    let process = ProcessId { pid: 7, start: 78 };
    let owner = LockOwner { process, pid_namespace: 4_026_531_836, since: 79, name: "numa".to_owned() };
    let mut bytes = record::header(Some(&owner));
    bytes.extend(record.bytes());
    bytes.extend(record.bytes());
    bytes.last_mut().into_iter().for_each(|byte| *byte = 1);
    Ok(fs::write(corpus.join("registry/two"), bytes)?)
}

/// Every word that is not zero, as the target `tail` takes them.
fn patches(tail: &[u8]) -> Vec<u8> {
    let words = tail.chunks_exact(8).zip(0u16..).filter(|(word, _)| word.iter().any(|&b| b != 0));
    words.flat_map(|(word, at)| at.to_le_bytes().into_iter().chain(word.iter().copied())).collect()
}

/// The levels of a recording of some blocks, without their head.
fn levels(corpus: &Path) -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("numakit-levels-{}", std::process::id()));
    let recorder = Recorder::create(&path, &header(), true)?;
    for row in 0..2_500 {
        while recorder.ring().pending_rows() > 1000 {
            std::thread::yield_now();
        }
        recorder.ring().push(1_000 + row * 1_000, 1, &[Some(row * row), (row % 7 != 0).then_some(5)]);
    }
    recorder.ring().push_label(1_000_000, "phase 2");
    recorder.finish()?;
    // Small recordings have no levels.
    fs::OpenOptions::new().write(true).open(&path)?.set_len(1 << 20)?;
    RecordedHistory::open(&path, 1 << 30, plain())?;
    let levels = zstd::decode_all(&fs::read(levels_of(&path))?[..])?;
    fs::write(corpus.join("levels/blocks"), &levels[32..])?;
    fs::remove_file(levels_of(&path))?;
    Ok(fs::remove_file(&path)?)
}

/// A file of a spool with two records, and a damaged one between them.
fn spool(corpus: &Path) -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("numakit-spool-{}", std::process::id()));
    let mut spool = Spool::open(&folder, 1 << 20)?;
    let mut batch = Batch::empty(2);
    batch.push_sample(1_000, 1, &[Some(7), None]);
    batch.push_label(1_001, "phase 2");
    let header = Arc::new(header());
    (0..3).for_each(|_| spool.append(&header, &batch));
    drop(spool);
    let mut content = fs::read(folder.join("0000000000000000.spool"))?;
    fs::write(corpus.join("spool/three"), &content)?;
    let third = content.len() / 50;
    let at = content.len() - 5 * third;
    content[at] ^= 1;
    fs::write(corpus.join("spool/damaged"), content)?;
    Ok(fs::remove_dir_all(&folder)?)
}

/// A description, rows of it, and how they are asked for and answered.
fn driver_messages(corpus: &Path) -> Result<(), Box<dyn Error>> {
    let mut batch = Batch::empty(2);
    batch.push_sample(1_000, 1, &[Some(7), None]);
    let rows = || EncodedRows::of(&batch).ok_or("too many rows");
    let mut requests = vec![0];
    DriverRequest::Describe(Box::new(header())).send(&mut requests)?;
    DriverRequest::Rows(rows()?).send(&mut requests)?;
    DriverRequest::Latest { host: "sample".into(), before: 2_000 }.send(&mut requests)?;
    DriverRequest::Range { from: 0, to: 2_000 }.send(&mut requests)?;
    fs::write(corpus.join("driver_messages/requests"), requests)?;
    let mut answers = vec![1];
    DriverAnswer::Delivery(Delivery::Partly { refused: 1, reason: "a reason".into() }).send(&mut answers)?;
    DriverAnswer::Header(Box::new(header())).send(&mut answers)?;
    DriverAnswer::Rows(rows()?).send(&mut answers)?;
    DriverAnswer::Nothing(DriverNothing::Host(vec!["other".into()])).send(&mut answers)?;
    Ok(fs::write(corpus.join("driver_messages/answers"), answers)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let path = std::env::temp_dir().join(format!("numakit-samples-{}", std::process::id()));
    let recorder = Recorder::create(&path, &header(), true)?;
    fs::copy(&path, corpus.join("recording/unclosed"))?;
    for row in 0..3 {
        recorder.ring().push(1_000 + row, 1, &[Some(row * 7), (row != 1).then_some(5)]);
    }
    recorder.ring().push_label(1_002, "phase 2");
    fs::write(corpus.join("tail/rows_and_label"), patches(&fs::read(tail_of(&path))?))?;
    recorder.finish()?;
    let whole = fs::read(&path)?;
    fs::write(corpus.join("recording/whole"), &whole)?;
    let machine = numakit_topology::synthetic::parse("package:2 node:1 core:2 pu:2")?;
    fs::write(corpus.join("topology_json/two_nodes"), numakit_topology::json::text(&machine))?;
    fs::write(corpus.join("recording/cut"), &whole[..whole.len() * 3 / 4])?;
    let mut head = whole.clone();
    head[20] ^= 1;
    fs::write(corpus.join("recording/damaged_head"), head)?;
    let mut batch = whole.clone();
    batch[whole.len() - 40] ^= 1;
    fs::write(corpus.join("recording/damaged_batch"), batch)?;
    levels(&corpus)?;
    registry(&corpus)?;
    spool(&corpus)?;
    driver_messages(&corpus)?;
    Ok(fs::remove_file(&path)?)
}
