//! `numa_maps`: the nodes of the pages of each mapping. The kernel walks the page tables to print it.

use super::{TaskDir, digits};
use numakit_model::CpuSet;

/// The use of a mapping, in the order of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Stack of the main thread.
    Stack,
    /// Heap (brk).
    Heap,
    /// Without a file.
    Anonymous,
    /// A file or shared memory.
    File,
    /// Pages from the huge page pools.
    Huge,
}

/// Parses a line: the first address and the use of the mapping, and for each node its number and bytes. Counts are in
/// the mapping's page size, which is at the end of the line; transparent huge pages are counted as
/// small pages.
pub fn line(text: &[u8], page_size: u64, mut on_node: impl FnMut(Use, u32, u64)) -> Option<(u64, Use)> {
    let words = || text.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    let address = words().next()?;
    if !address.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let start = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    let mut usage = Use::Anonymous;
    let mut page = page_size;
    for word in words().skip(1) {
        match word {
            b"heap" => usage = Use::Heap,
            b"stack" => usage = Use::Stack,
            b"huge" => usage = Use::Huge,
            // Kernels before 4.5 add the number of the thread.
            _ if word.starts_with(b"stack:") => usage = Use::Stack,
            _ if word.starts_with(b"file=") => usage = Use::File,
            _ => {
                if let Some((kib, [])) = word.strip_prefix(b"kernelpagesize_kB=").and_then(digits) {
                    page = kib.saturating_mul(1024);
                }
            }
        }
    }
    for word in words().skip(1) {
        let Some((node, rest)) = word.strip_prefix(b"N").and_then(digits) else { continue };
        if let (Ok(node), Some((pages, []))) = (u32::try_from(node), rest.strip_prefix(b"=").and_then(digits))
        {
            on_node(usage, node, pages.saturating_mul(page));
        }
    }
    Some((start, usage))
}

/// How many processes map the page of a mapping that most of them map; `None` if the line is of another mapping. What the line does
/// not say is one.
pub fn most_mappings(text: &[u8], start: u64) -> Option<u64> {
    let (of, _) = line(text, 0, |_, _, _| {})?;
    let mut words = text.split(u8::is_ascii_whitespace);
    let most = words.find_map(|word| word.strip_prefix(b"mapmax=").and_then(digits));
    (of == start).then_some(most.map_or(1, |(most, _)| most))
}

/// The line of the first mapping begins within this many bytes: it is of the program's file, and small. Of a read that is as short, the
/// kernel walks one mapping or two.
const FIRST_LINE: usize = 128;

/// The beginning of the line of a process's first mapping, which has the policy of its main thread.
pub fn first_line(process: &TaskDir<'_>) -> Option<Vec<u8>> {
    let mut buffer = [0; FIRST_LINE];
    let length = process.front("numa_maps", &mut buffer).ok()?;
    buffer.get(..length)?.split(|byte| *byte == b'\n').next().map(<[u8]>::to_vec)
}

/// Parses a line for its policy: the first address of the mapping, and the nodes to which the policy binds its memory or
/// which it prefers; `None` for other policies.
pub fn bound_to(text: &[u8]) -> Option<(u64, Option<CpuSet>)> {
    let (start, _) = line(text, 0, |_, _, _| {})?;
    let text = std::str::from_utf8(text).ok()?;
    let mut words = text.split_ascii_whitespace().skip(1);
    // `prefer (many):0-1` is two words; flags follow the mode, as in `bind=static:2`.
    let (mode, rest) = words.next()?.split_at_checked("bind".len()).unwrap_or_default();
    let is_bound = mode == "bind" || (mode == "pref" && rest.starts_with("er"));
    let second = words.next().filter(|word| word.starts_with("(many)"));
    let listed = rest.rsplit_once(':').or_else(|| second?.rsplit_once(':'));
    let nodes = listed.filter(|_| is_bound).and_then(|(_, nodes)| CpuSet::parse_list(nodes).ok());
    Some((start, nodes.filter(|nodes| !nodes.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_else_maps_a_page_is_counted() {
        let line = b"7f0 default file=/SYSV00 dirty=5 mapmax=12 active=0 N2=5 kernelpagesize_kB=4";
        assert_eq!(most_mappings(line, 0x7f0), Some(12));
        assert_eq!(most_mappings(line, 0x800), None);
        assert_eq!(most_mappings(b"7f0 default anon=1 N0=1", 0x7f0), Some(1));
        assert_eq!(most_mappings(b"", 0), None);
    }

    fn parsed(text: &str) -> Option<(Use, Vec<(u32, u64)>)> {
        let mut nodes = Vec::new();
        line(text.as_bytes(), 4096, |_, node, bytes| nodes.push((node, bytes)))
            .map(|(_, usage)| (usage, nodes))
    }

    #[test]
    fn lines_of_every_use_are_distinguished() {
        for (text, usage, nodes) in [
            (
                "7f0 default stack anon=3 dirty=3 N0=1 N3=2 kernelpagesize_kB=4",
                Use::Stack,
                vec![(0, 4096), (3, 8192)],
            ),
            ("7f0 default stack:77 anon=1 N1=1", Use::Stack, vec![(1, 4096)]),
            ("55d default heap anon=2 N0=2 kernelpagesize_kB=16", Use::Heap, vec![(0, 32768)]),
            ("7f0 prefer (many):0-1 anon=1 N1=1 kernelpagesize_kB=4", Use::Anonymous, vec![(1, 4096)]),
            (
                "7f0 bind=static:2 file=/a\\040N7=9 mapped=5 mapmax=2 active=0 N2=5 kernelpagesize_kB=4",
                Use::File,
                vec![(2, 20480)],
            ),
            (
                "2aa interleave:0-3 file=/anon_hugepage\\040(deleted) huge anon=4 N0=3 N1=1 kernelpagesize_kB=2048",
                Use::Huge,
                vec![(0, 3 << 21), (1, 1 << 21)],
            ),
            ("7f0 default file=/lib/x", Use::File, vec![]),
        ] {
            assert_eq!(parsed(text), Some((usage, nodes)), "{text}");
        }
        for text in ["", "address default N0=1", "\u{fffd} N0=1"] {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert_eq!(parsed("7f0 default N0= N=1 N1=x N2=1x N99999999999=1").unwrap().1, []);
        assert_eq!(
            parsed("7f0 default N0=18446744073709551615 kernelpagesize_kB=4").unwrap().1,
            [(0, u64::MAX)]
        );
    }

    #[test]
    fn a_line_begins_with_the_first_address() {
        let start = |text: &str| line(text.as_bytes(), 4096, |_, _, _| {}).map(|(start, _)| start);
        assert_eq!(start("7f0012340000 default anon=1 N0=1"), Some(0x7f00_1234_0000));
        assert_eq!((start("ffffffffffffffffff default"), start(" ")), (None, None));
    }

    #[test]
    fn policies_bind_or_prefer_nodes() {
        let bound = |text: &str| bound_to(text.as_bytes()).map(|(_, nodes)| nodes.map(|set| set.to_string()));
        for (text, nodes) in [
            ("7f0 bind:0-1 anon=1 N0=1", Some("0-1")),
            ("7f0 bind=static:2 file=/a:3", Some("2")),
            ("7f0 bind=relative|balancing:1", Some("1")),
            ("7f0 prefer:3 heap", Some("3")),
            ("7f0 prefer (many):0-1 anon=1", Some("0-1")),
            ("7f0 default file=/x:1", None),
            ("7f0 interleave:0-3 anon=1", None),
            ("7f0 local", None),
            ("7f0 bind:", None),
        ] {
            assert_eq!(bound(text), Some(nodes.map(str::to_owned)), "{text}");
        }
        assert_eq!((bound("7f0"), bound("x bind:0")), (None, None));
    }
}
