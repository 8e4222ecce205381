//! Locks in files that were the registry until somebody removed them. Their holders still have
//! them open, and the kernel lists all locks of the machine.

use crate::scan::{CPUS, is_marked};
use numakit_model::CpuSet;
use numakit_sys::SysRoot;
use std::collections::BTreeMap;

const LOCKS: &str = "/proc/locks";
/// The kernel gives a list in pieces of at most a page. Locks that come and go in between shift the
/// next piece: so pieces overlap by half.
const PIECE: usize = 4096;

/// CPUs that are locked in files of these identities, but not in the one that the kernel lists
/// under the name `own`; none where the list cannot be read. A look takes some milliseconds: the
/// kernel brings all its CPUs together for it.
pub fn look(root: &SysRoot, identities: &[u64], own: Option<&str>) -> Option<CpuSet> {
    let list = root.source(LOCKS).ok()?;
    let (mut files, mut buffer) = (Files::new(), [0; PIECE]);
    for from in (0..).step_by(PIECE / 2) {
        let length = list.read_at(&mut buffer, from).ok()?;
        let text = String::from_utf8_lossy(&buffer[..length]);
        // The first and the last line may be cut; they are whole in another piece.
        let end = text.rfind('\n').map_or(0, |at| at + 1);
        let start = if from == 0 { 0 } else { text.find('\n').map_or(end, |at| at + 1) };
        add(&mut files, &text[start.min(end)..end], identities, own);
        if length < PIECE / 2 {
            break;
        }
    }
    Some(cpus(files))
}

/// By the kernel's names.
type Files = BTreeMap<String, Locked>;

/// What is locked in a file.
#[derive(Debug, Default)]
struct Locked {
    is_one: bool,
    cpus: CpuSet,
}

fn add(files: &mut Files, text: &str, identities: &[u64], own: Option<&str>) {
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        // Who waits for a lock has '->' in the second place.
        let [_, "OFDLCK", _, _, _, file, start, end] = words[..] else { continue };
        let Ok(start) = start.parse::<u64>() else { continue };
        // The last byte is told, or that it is locked to the end of all files.
        let end = end.parse::<u64>().map_or(u64::MAX, |last| last.saturating_add(1));
        if own == Some(file) || start >= end {
            continue;
        }
        let locked = files.entry(file.to_owned()).or_default();
        locked.is_one |= identities.iter().any(|&identity| is_marked(identity, start));
        if start < CPUS.end {
            let all = CpuSet::range(start as u32, end.min(CPUS.end) as u32 - 1);
            locked.cpus = locked.cpus.or(&all);
        }
    }
}

fn cpus(files: Files) -> CpuSet {
    let ours = files.into_values().filter(|locked| locked.is_one);
    ours.fold(CpuSet::new(), |all, locked| all.or(&locked.cpus))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::mark;
    use numakit_sys::root::FileTree;

    fn parse(text: &str, identities: &[u64], own: Option<&str>) -> CpuSet {
        let mut tree = FileTree::new();
        tree.file(LOCKS, text);
        look(&SysRoot::of_tree(tree), identities, own).unwrap()
    }

    #[test]
    fn locks_in_removed_registries_are_found_and_no_others() {
        let (ours, other) = (mark(1).start, mark(2).start);
        let text = format!(
            "1: FLOCK  ADVISORY  WRITE 99 00:19:7 0 EOF\n\
             2: OFDLCK ADVISORY  READ  -1 00:19:7 {ours} {ours}\n\
             3: OFDLCK ADVISORY  WRITE -1 00:19:7 2 3\n\
             4: OFDLCK ADVISORY  WRITE -1 00:19:7 9 9\n\
             5: OFDLCK ADVISORY  WRITE -1 00:19:7 1099511627776 1099511627776\n\
             5: -> OFDLCK ADVISORY  WRITE -1 00:19:7 30 31\n\
             6: OFDLCK ADVISORY  READ  -1 00:19:8 {other} {other}\n\
             7: OFDLCK ADVISORY  WRITE -1 00:19:8 12 13\n\
             8: OFDLCK ADVISORY  WRITE -1 00:1a:7 14 15\n\
             9: OFDLCK ADVISORY  READ  -1 00:1b:7 {ours} {ours}\n\
             10: OFDLCK ADVISORY  WRITE -1 00:1b:7 20 EOF\n\
             11: POSIX  ADVISORY  WRITE 98 00:19:7 17 17\n"
        );
        assert_eq!(parse(&text, &[1], Some("00:1b:7")).to_string(), "2-3,9");
        assert_eq!(parse(&text, &[1, 2], Some("00:1b:7")).to_string(), "2-3,9,12-13");
        assert_eq!(parse(&text, &[1], None).to_string(), format!("2-3,9,20-{}", CPUS.end - 1));
        assert_eq!(parse("garbage\n1: OFDLCK\n\n", &[1], None), CpuSet::new());
    }

    #[test]
    fn a_list_of_many_pieces_is_read_whole() {
        let ours = mark(1).start;
        let mut text = format!("0: OFDLCK ADVISORY  READ  -1 00:19:7 {ours} {ours}\n");
        for cpu in 0..1000 {
            text += &format!("{cpu}: OFDLCK ADVISORY  WRITE -1 00:19:7 {0} {0}\n", cpu * 2);
        }
        let found = parse(&text, &[1], None);
        assert_eq!(found, (0..1000).map(|cpu| cpu * 2).collect());
    }

    #[test]
    fn a_list_that_cannot_be_read_tells_nothing() {
        assert_eq!(look(&SysRoot::of_tree(FileTree::new()), &[1], None), None);
    }
}
