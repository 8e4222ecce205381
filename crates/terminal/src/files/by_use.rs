//! Where pages of files go by their use, and what that is worth.

use super::{ChangedFiles, bytes, path, strip, words};
use crate::table::page_table;
use numakit_files::{FarSamples, FoundFile, Piece, RangeTarget, UsePlan};
use numakit_model::numbers::{ABSENT, NumberStyle};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Maximum number of pieces that are drawn of a file.
const PIECES: u64 = 64;

/// The samples of an observation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SamplesTaken {
    /// How they were taken, such as `by performance events`.
    pub method: String,
    /// Why not by a better method.
    pub reason: Option<String>,
    /// Those of the files.
    pub of_files: u64,
    /// Those of other memory.
    pub others: u64,
    /// Those that are missing.
    pub missing: u64,
}

/// What is planned for a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileByUse {
    /// Where its pages go.
    pub plan: UsePlan,
    /// Its samples that were far, and will be.
    pub far: FarSamples,
}

/// What is planned for some files, and what was done.
#[derive(Debug, Clone)]
pub struct FilesByUse {
    /// The kernel's numbers of the nodes.
    pub nodes: Vec<u32>,
    /// Bytes of a page.
    pub page: u64,
    /// The files.
    pub files: Vec<(FoundFile, FileByUse)>,
    /// The samples; none for a plan of an earlier observation.
    pub taken: Option<SamplesTaken>,
    /// What became of the files; nothing if that was not wanted.
    pub changed: Option<ChangedFiles>,
}

/// Pages of a plan.
#[derive(Debug, Default)]
struct PlannedPages {
    nodes: BTreeMap<u32, u64>,
    one: u64,
    shared: u64,
    unused: u64,
    unclear: u64,
}

impl PlannedPages {
    fn of(plan: &UsePlan) -> Self {
        let mut sums = Self::default();
        for range in &plan.ranges {
            let pages = range.pages.end - range.pages.start;
            let (sum, nodes): (&mut u64, &[u32]) = match &range.target {
                RangeTarget::Node(node) => (&mut sums.one, std::slice::from_ref(node)),
                RangeTarget::Shared(nodes) => (&mut sums.shared, nodes),
                RangeTarget::Unused => (&mut sums.unused, &[]),
                RangeTarget::Unclear => (&mut sums.unclear, &[]),
            };
            *sum += pages;
            for node in nodes {
                *sums.nodes.entry(*node).or_default() += pages / nodes.len() as u64;
            }
        }
        sums
    }
}

impl FilesByUse {
    /// Whether everything was done that was wanted.
    pub fn is_complete(&self) -> bool {
        self.changed.as_ref().is_none_or(ChangedFiles::is_complete)
    }

    /// The page: the plan, then what was done.
    pub fn page(&self) -> String {
        let mut headings: Vec<String> =
            ["FILE", "SAMPLES", "REMOTE", "THEN", "ONE NODE", "SHARED", "STAYS"].map(str::to_owned).to_vec();
        headings.extend(self.nodes.iter().map(|node| format!("TO {node}")));
        headings.push("<START TO END".to_owned());
        let rows: Vec<Vec<String>> = self.files.iter().map(|file| self.row(file)).collect();
        let notes: String = self.notes().iter().map(|note| format!("{note}\n")).collect();
        let changed = self.changed.as_ref().map(|changed| format!("\n{}", changed.page()));
        format!("{}\n{notes}{}", page_table(&words(&headings), &rows, ""), changed.unwrap_or_default())
    }

    fn row(&self, (file, by_use): &(FoundFile, FileByUse)) -> Vec<String> {
        let sums = PlannedPages::of(&by_use.plan);
        let sized = |pages: u64| bytes(Some(pages * self.page));
        let share = |far: f64| match by_use.far.placed {
            0 => ABSENT.to_owned(),
            placed => format!("{:.1}%", 100.0 * far / placed as f64),
        };
        let samples: u64 = by_use.plan.ranges.iter().flat_map(|range| range.samples.values()).sum();
        let mut row = vec![path(file), NumberStyle::Count.words(samples as f64)];
        row.extend([share(by_use.far.before as f64), share(by_use.far.after)]);
        row.extend([sums.one, sums.shared, sums.unused + sums.unclear].map(sized));
        row.extend(self.nodes.iter().map(|node| sized(sums.nodes.get(node).copied().unwrap_or(0))));
        row.push(strip(&pieces(&by_use.plan), PIECES as usize));
        row
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let count = |count: u64| NumberStyle::Count.words(count as f64);
        if let Some(taken) = &self.taken {
            let missing = match taken.missing {
                0 => String::new(),
                missing => format!("; {} are missing", count(missing)),
            };
            let (of_files, all) = (count(taken.of_files), count(taken.of_files + taken.others));
            notes.push(format!("{of_files} of {all} samples are of these files, {}{missing}.", taken.method));
            notes.extend(taken.reason.as_ref().map(|reason| format!("{reason}.")));
        }
        for (file, by_use) in &self.files {
            let sums = PlannedPages::of(&by_use.plan);
            for (pages, why) in [
                (sums.unused, "no sample is of them"),
                (sums.unclear, "there are too few samples; observe longer with --for, or take more with -F"),
            ] {
                if pages > 0 {
                    notes.push(format!("{}: {} pages stay: {why}.", path(file), count(pages)));
                }
            }
        }
        let is_measured = self.files.iter().any(|(_, by_use)| by_use.far.placed > 0);
        if is_measured {
            notes.push(
                "REMOTE: samples at pages of other nodes; THEN: the same samples after the move.".to_owned(),
            );
        }
        notes.push("START TO END: node to which the pages go, + several, . they stay.".to_owned());
        notes
    }

    /// The JSON: that of the files that were moved, with the plan of each.
    pub fn json(&self) -> Value {
        let mut all = self.changed.as_ref().map_or_else(
            || {
                let files = self.files.iter().map(|(file, _)| json!({"path": file.path.to_string_lossy()}));
                json!({"nodes": self.nodes, "files": files.collect::<Vec<_>>()})
            },
            ChangedFiles::json,
        );
        for (at, (_, FileByUse { plan, far })) in self.files.iter().enumerate() {
            let sums = PlannedPages::of(plan);
            let range = |range: &numakit_files::PlannedRange| {
                let to = match &range.target {
                    RangeTarget::Node(node) => json!([node]),
                    RangeTarget::Shared(nodes) => json!(nodes),
                    RangeTarget::Unused | RangeTarget::Unclear => json!([]),
                };
                json!({"first": range.pages.start, "pages": range.pages.end - range.pages.start, "to": to,
                       "samples": self.nodes.iter().map(|node| range.samples.get(node).copied().unwrap_or(0)).collect::<Vec<_>>()})
            };
            let share = |count: f64| (far.placed > 0).then(|| count / far.placed as f64);
            all["files"][at]["use"] = json!({
                "samples": far.samples, "placed": far.placed,
                "remote": share(far.before as f64), "then": share(far.after),
                "pages": {"one": sums.one, "shared": sums.shared, "unused": sums.unused, "unclear": sums.unclear},
                "ranges": plan.ranges.iter().map(range).collect::<Vec<_>>(),
            });
        }
        all["samples"] = self.taken.as_ref().map_or(Value::Null, |taken| {
            json!({"road": taken.method, "reason": taken.reason, "of_files": taken.of_files,
                   "others": taken.others, "missing": taken.missing})
        });
        all
    }
}

/// The plan from the start of the file to its end.
fn pieces(plan: &UsePlan) -> Vec<Piece> {
    let pages = plan.ranges.last().map_or(0, |range| range.pages.end);
    let count = pages.min(PIECES);
    let mut pieces: Vec<Option<Piece>> = vec![None; count as usize];
    for range in &plan.ranges {
        let piece = match range.target {
            RangeTarget::Node(node) => Piece::Node(node),
            RangeTarget::Shared(_) => Piece::Mixed,
            RangeTarget::Unused | RangeTarget::Unclear => Piece::Absent,
        };
        let last = range.pages.end.saturating_sub(1) * count / pages.max(1);
        for known in pieces
            .iter_mut()
            .take(last as usize + 1)
            .skip((range.pages.start * count / pages.max(1)) as usize)
        {
            *known = Some(known.map_or(piece, |known| known.and(piece)));
        }
    }
    pieces.into_iter().map(|piece| piece.unwrap_or(Piece::Absent)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_files::PlannedRange;
    use std::path::PathBuf;

    fn by_use() -> FilesByUse {
        let range = |pages, target, samples: &[(u32, u64)]| PlannedRange {
            pages,
            target,
            samples: samples.iter().copied().collect(),
        };
        let ranges = vec![
            range(0..512, RangeTarget::Node(0), &[(0, 30)]),
            range(512..1024, RangeTarget::Node(1), &[(1, 30)]),
            range(1024..1280, RangeTarget::Shared(vec![0, 1]), &[(0, 20), (1, 20)]),
            range(1280..2048, RangeTarget::Unused, &[]),
        ];
        let far = FarSamples { samples: 100, placed: 100, before: 50, after: 20.0 };
        let file = FoundFile { path: PathBuf::from("/m/a.gguf"), id: (1, 2) };
        let method = "by performance events".to_owned();
        FilesByUse {
            nodes: vec![0, 1],
            page: 4096,
            files: vec![(file, FileByUse { plan: UsePlan { ranges }, far })],
            taken: Some(SamplesTaken { method, of_files: 100, others: 1900, ..SamplesTaken::default() }),
            changed: None,
        }
    }

    #[test]
    fn the_page_has_the_plan_and_what_it_is_worth() {
        let text = by_use().page();
        let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row[..4], ["/m/a.gguf", "100", "50.0%", "20.0%"], "{text}");
        assert_eq!(row[4..14].join(" "), "4.00 MiB 1.00 MiB 3.00 MiB 2.50 MiB 2.50 MiB", "{text}");
        let strip = row[14];
        assert_eq!(strip, "0".repeat(16) + &"1".repeat(16) + &"+".repeat(8) + &".".repeat(24), "{text}");
        for note in [
            "100 of 2,000 samples are of these files, by performance events.",
            "/m/a.gguf: 768 pages stay: no sample is of them.",
        ] {
            assert!(text.contains(note), "{note} is not in {text}");
        }
    }

    #[test]
    fn json_has_ranges_and_shares() {
        let json = by_use().json();
        let used = &json["files"][0]["use"];
        assert_eq!((&used["remote"], &used["then"]), (&json!(0.5), &json!(0.2)));
        assert_eq!(
            used["ranges"][2],
            json!({"first": 1024, "pages": 256, "to": [0, 1], "samples": [20, 20]})
        );
        assert_eq!(json["samples"]["others"], 1900);
        let mut unknown = by_use();
        unknown.files[0].1.far.placed = 0;
        assert_eq!(unknown.json()["files"][0]["use"]["remote"], Value::Null);
        assert!(unknown.page().lines().nth(1).unwrap().contains(" - "), "{}", unknown.page());
    }
}
