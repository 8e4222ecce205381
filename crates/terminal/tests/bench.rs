//! Results of the corpus: all of them are read, shown in every form, and compared with each other.

#![allow(clippy::unwrap_used, clippy::panic)]

use numakit_bench::distances::measured_distances;
use numakit_bench::{BENCHMARKS, BenchResult, BenchResults};
use numakit_findings::comparison::bench::compare;
use numakit_terminal::bench::{BenchStyle, compared, csv, html, json, page};
use numakit_terminal::topology::measured;
use std::path::{Path, PathBuf};

const PLAIN: BenchStyle = BenchStyle { color: false, width: 100, all: false };

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/bench");
    let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|is| is == "json")).collect();
    files.sort();
    assert!(files.len() >= 2, "{files:?}");
    files
}

fn results() -> Vec<(PathBuf, BenchResults)> {
    let read = |path: PathBuf| {
        let results = BenchResults::read(&path).unwrap_or_else(|error| panic!("{error}"));
        (path, results)
    };
    files().into_iter().map(read).collect()
}

#[test]
fn all_results_are_shown_in_every_form() {
    for (path, results) in results() {
        let shown = path.display();
        let values: usize = results.benchmarks.iter().map(|result| result.all().count()).sum();
        assert!(results.complete && values > 30, "{shown}: {values}");
        assert_eq!(csv(&results).split_terminator("\r\n").count(), 1 + values, "{shown}");
        let (text, html) = (page(&results, PLAIN), html(&results));
        let in_full = page(&results, BenchStyle { all: true, ..PLAIN });
        let is_shorter = in_full.lines().count() > text.lines().count() + 60;
        assert_eq!(is_shorter, results.benchmarks.iter().any(|one| one.name == "alias"), "{shown}");
        for result in &results.benchmarks {
            assert!(
                BENCHMARKS.iter().any(|benchmark| benchmark.name == result.name),
                "{shown}: {}",
                result.name
            );
            assert!(text.contains(&format!("\n{}: ", result.name)), "{shown}: {}", result.name);
            assert!(html.contains(&format!("<h2>{}</h2>", result.name)), "{shown}: {}", result.name);
        }
        let cells_of = |one: &BenchResult| -> usize {
            let matrices: usize = one.matrices.iter().map(|matrix| matrix.values().count()).sum();
            matrices + one.tables.iter().map(|table| table.values().count()).sum::<usize>()
        };
        let cells: usize = results.benchmarks.iter().map(cells_of).sum();
        assert_eq!(html.matches("<td class=\"h").count(), cells, "{shown}");
        assert!(html.contains("<svg class=\"machine\""), "{shown} has no topology");
        assert_eq!(BenchResults::parse(json(&results).unwrap().as_bytes()).unwrap(), results, "{shown}");
    }
}

#[test]
fn all_results_can_be_compared() {
    let all = results();
    for (one, first) in &all {
        for (other, second) in &all {
            let (forth, back) = (compare(first, second), compare(second, first));
            let pair = format!("{} {}", one.display(), other.display());
            assert_eq!((forth.changes.len(), forth.compared), (back.changes.len(), back.compared), "{pair}");
            assert_eq!(forth.changes.is_empty(), one == other, "{pair}");
            assert_eq!(forth.only_first, back.only_second, "{pair}");
            let text = compared::text(&forth, usize::MAX, 100);
            assert_eq!(
                text.contains("compared values differ beyond the noise within a run"),
                one != other,
                "{pair}: {text}"
            );
            assert_eq!(text.contains("of two machines"), one != other, "{pair}: {text}");
        }
    }
}

#[test]
fn measured_distances_are_shown_of_all_machines() {
    for (path, results) in results() {
        let topology = results.topology.as_ref().unwrap();
        let distances = measured_distances(topology, &results).unwrap();
        assert_eq!(distances.pairs.len(), topology.nodes.len().pow(2), "{}", path.display());
        let text = measured(topology, &results, &distances, PLAIN);
        assert!(text.contains("firmware  measured"), "{text}");
    }
}
