//! The text of `numa alloc`.

#![allow(clippy::unwrap_used)]

use numakit_bench::allocations::{
    AllocatingProcess, AllocationReport, AllocationRun, Counted, CountedChain, LifeRow, MallocTime,
    MemoryMoment, SizeRow, TouchTime, VERSION,
};
use numakit_explain::code::CodeName;
use numakit_terminal::alloc_profile::text;

const MIB: u64 = 1 << 20;

fn code(function: &str, file: Option<(&str, u32)>) -> CodeName {
    let (file, line) = file.unzip();
    let module = "app".to_owned();
    CodeName { function: Some(function.to_owned()), module, file: file.map(str::to_owned), line }
}

fn sites() -> Vec<CountedChain> {
    vec![
        CountedChain {
            chain: vec![code("refine", Some(("/src/mesh.c", 12))), code("main", None)],
            samples: 600,
            blocks: 600.0,
            bytes: 590 * MIB,
            freed_blocks: 595.0,
            freed_bytes: 585 * MIB,
            life_seconds: 59.5,
        },
        CountedChain {
            chain: vec![CodeName { module: "libx.so".to_owned(), ..CodeName::default() }],
            samples: 2,
            blocks: 2.0,
            bytes: 10 * MIB,
            ..CountedChain::default()
        },
    ]
}

/// A run that keeps this part of its memory resident.
fn run(allocator: Counted, kept: u64) -> AllocationRun {
    let size = |from, to, blocks, bytes| SizeRow { from, to, blocks, bytes };
    let life = |from, blocks, bytes| LifeRow { from, to: 2 * from, blocks, bytes };
    let series = (0..100).map(|at| MemoryMoment {
        seconds: at as f64 / 50.0,
        live: if at < 50 { at * MIB } else { (100 - at) * MIB },
        resident: if at < 50 { (at + 4) * MIB } else { (54 - kept * (at - 50)) * MIB },
    });
    AllocationRun {
        allocator: Some(allocator),
        seconds: 2.0,
        cpu_seconds: 1.5,
        counting_seconds: 0.25,
        threads: 2,
        process_count: 1,
        allocations: 12_000,
        frees: 11_990,
        reallocs: 500,
        requested: 600 * MIB,
        usable: Some(630 * MIB),
        peak_live: Some(51 * MIB),
        live_at_end: Some(MIB),
        peak_resident: Some((54 + kept) * MIB),
        malloc: MallocTime { allocating_seconds: 0.1, freeing_seconds: 0.05, share: Some(0.1) },
        first_touch: TouchTime {
            faults: 50_000,
            fault_ns: Some(1200),
            seconds: Some(0.06),
            share: Some(0.14),
        },
        sizes: vec![
            size(8, 9, 1000, 8000),
            size(16, 19, 4000, 64_000),
            size(24, 27, 5000, 120_000),
            size(1 << 20, 1_310_719, 600, 600 * MIB),
        ],
        lives_by_ns: vec![life(256, 6000.0, 9000), life(2048, 5000.0, 9000), life(1 << 30, 990.5, 599 * MIB)],
        lives_by_bytes: vec![life(512, 11_000.0, 18_000), life(1 << 24, 990.0, 599 * MIB)],
        sites: sites(),
        processes: vec![AllocatingProcess {
            pid: 7,
            parent: None,
            allocated: 630 * MIB,
            peak_live: 51 * MIB,
            live_at_end: MIB,
        }],
        series: series.collect(),
        ..AllocationRun::default()
    }
}

fn report(runs: Vec<AllocationRun>) -> AllocationReport {
    AllocationReport {
        version: VERSION,
        command: "./app".to_owned(),
        sampled_every: 4096,
        interrupted: false,
        runs,
    }
}

/// Compares with the text in tests/golden; `UPDATE=1` writes it.
fn golden(name: &str, text: &str) {
    let path = format!("{}/tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name} has changed; look at it and run again with UPDATE=1");
}

#[test]
fn two_allocators_are_compared() {
    golden("allocations", &text(&report(vec![run(Counted::None, 1), run(Counted::Numa, 0)]), 10));
}

#[test]
fn what_is_absent_is_no_zero() {
    let mut absent = run(Counted::None, 0);
    (absent.usable, absent.peak_live, absent.live_at_end, absent.peak_resident) = (None, None, None, None);
    (absent.malloc.share, absent.first_touch) = (None, TouchTime { faults: 9, ..TouchTime::default() });
    absent.missing =
        vec!["live memory is unknown: in 1 processes malloc_usable_size is not the allocator's".to_owned()];
    absent.series.clear();
    golden("allocations-absent", &text(&report(vec![absent]), 1));
}

#[test]
fn without_calls_there_is_no_table_of_them() {
    let none = AllocationRun { allocator: Some(Counted::Numa), seconds: 0.5, ..AllocationRun::default() };
    let text = text(&AllocationReport { interrupted: true, ..report(vec![none]) }, 10);
    assert!(text.starts_with("No call of malloc arrived: "), "{text}");
    assert!(!text.contains("SIZE") && text.contains("A signal ended the program"), "{text}");
}
