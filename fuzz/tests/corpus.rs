//! Runs every target over its samples.
#![allow(clippy::unwrap_used)]

use numakit_fuzz::TARGETS;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn entries(dir: &Path) -> Vec<PathBuf> {
    let list = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    list.map(|entry| entry.unwrap().path()).collect()
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let folders: BTreeSet<_> =
        entries(&corpus()).iter().map(|p| p.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    let targets: BTreeSet<_> = TARGETS.iter().map(|t| t.name.to_owned()).collect();
    assert_eq!(folders, targets);
}

#[test]
fn every_target_passes_its_samples() {
    let mut refusing = Vec::new();
    for target in TARGETS {
        let samples = entries(&corpus().join(target.name));
        let mut accepted = false;
        for path in samples {
            let input = fs::read(&path).unwrap();
            let result = std::panic::catch_unwind(|| (target.run)(&input));
            let Ok(is_accepted) = result else { panic!("{} fails on {}", target.name, path.display()) };
            accepted |= is_accepted;
        }
        refusing.extend((!accepted).then_some(target.name));
    }
    // Their samples are of a format that is no more.
    assert!(refusing.is_empty(), "{refusing:?} refuse all samples");
}
