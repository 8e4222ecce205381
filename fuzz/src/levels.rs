//! The levels of a large recording: `FILE.levels`.

use crate::files;
use numakit_history::{RecordedHistory, Source, levels_of, plain};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Small recordings have no levels, so bytes are appended to a small one.
const LARGE: usize = 1 << 20;
/// The head of levels: format, length and time of the recording, and a hash of its series.
const HEAD: usize = 32;
const BUDGET: usize = 1 << 20;

/// A recording, and the head of levels that belong to it.
static SAMPLE: LazyLock<(PathBuf, Vec<u8>)> = LazyLock::new(|| {
    let mut content = include_bytes!("../corpus/recording/whole").to_vec();
    content.resize(LARGE, 0);
    let path = files::put("d.arrows", &content);
    open(&path);
    let levels = std::fs::read(levels_of(&path)).and_then(|packed| zstd::decode_all(&packed[..]));
    let head = levels.map(|levels| levels[..HEAD].to_vec());
    (path, head.unwrap_or_else(|error| panic!("{error}")))
});

/// Whether the levels were used.
fn open(path: &Path) -> bool {
    let recorded = RecordedHistory::open(path, BUDGET, plain()).unwrap_or_else(|error| panic!("{error}"));
    let all: Vec<usize> = (0..recorded.series()).collect();
    assert_eq!(all.len(), 2, "the recording has two series");
    assert!(recorded.bytes() < 64 * BUDGET);
    let (first, last) = recorded.span().unwrap_or_default();
    assert!(first <= last);
    for buckets in [1, 100] {
        let found = recorded.buckets(&all, first, last.saturating_add(1), buckets);
        assert!(found.columns.iter().all(|c| c.min.len() <= buckets && c.mean.len() == c.min.len()));
    }
    let raw = recorded.raw(&all, first, last.saturating_add(1), 1000);
    assert!(raw.is_none_or(|raw| raw.times.len() <= 1000 && raw.times.is_sorted()));
    recorded.labels();
    recorded.from_levels()
}

/// The input is the whole file first, then the rest of a file after a correct head.
pub fn file(input: &[u8]) -> bool {
    let (recording, head) = &*SAMPLE;
    let levels = levels_of(recording);
    let packed = zstd::encode_all(&[head, input].concat()[..], 1).unwrap_or_default();
    let mut accepted = false;
    for content in [input, &packed] {
        let written = std::fs::write(&levels, content);
        assert!(written.is_ok(), "{written:?}");
        accepted |= open(recording);
    }
    files::remove(&levels);
    accepted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correct_levels_are_used() {
        let (recording, head) = &*SAMPLE;
        let levels = [&head[..], include_bytes!("../corpus/levels/blocks")].concat();
        let written = zstd::encode_all(&levels[..], 1).and_then(|p| std::fs::write(levels_of(recording), p));
        assert!(written.is_ok(), "{written:?}");
        let recorded = RecordedHistory::open(recording, BUDGET, plain());
        assert!(recorded.is_ok_and(|recorded| recorded.from_levels() && recorded.span().is_some()));
    }
}
