//! Writes the samples of our own formats, for when one changed:
//! `cargo run -p numakit-fuzz --example samples`.

use numakit_model::{Instance, Kind, Metric, Scope, Series, Unit};
use numakit_recording::{Header, Recorder, tail_of};
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
        };
        Series::new(&Arc::new(metric), instance)
    };
    let columns = vec![
        series("vmstat.pgfault", Kind::COUNTER, Scope::Machine, Instance::Machine),
        series("node.MemFree", Kind::Gauge, Scope::Node, Instance::Node(0)),
    ];
    Header { series: columns, host: "sample".into(), ..Header::default() }
}

/// Every word that is not zero, as the target `tail` takes them.
fn patches(tail: &[u8]) -> Vec<u8> {
    let words = tail.chunks_exact(8).zip(0u16..).filter(|(word, _)| word.iter().any(|&b| b != 0));
    words.flat_map(|(word, at)| at.to_le_bytes().into_iter().chain(word.iter().copied())).collect()
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
    Ok(fs::remove_file(&path)?)
}
