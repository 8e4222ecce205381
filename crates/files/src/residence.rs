//! Where the cached pages of a file are.

use crate::{FileProgress, window};
use numakit_model::{Fix, Unavailable};
use numakit_sys::file_pages::{self, FileWindow, PageState};
use numakit_sys::sched;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;

/// Maximum of pieces of a file.
const PIECES: u64 = 240;

/// The pages of a piece of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// No page of the piece is cached.
    Absent,
    /// All pages of the piece are cached, on this node.
    Node(u32),
    /// On several nodes, or some are not cached.
    Mixed,
    /// The kernel does not tell.
    Unknown,
}

impl Piece {
    /// The state of two pieces together.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (one, other) if one == other => one,
            _ => Self::Mixed,
        }
    }
}

/// Where the cached pages of a file are. Bytes are those of whole pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileResidence {
    /// The size of the file in bytes.
    pub size: u64,
    /// The size of the file afterwards, if it changed while it was examined.
    pub changed: Option<u64>,
    /// Cached bytes.
    pub cached: Result<u64, Unavailable>,
    /// Cached bytes by node; the sum is less than the cached bytes if pages left the cache meanwhile.
    pub nodes: Result<BTreeMap<u32, u64>, Unavailable>,
    /// Cached bytes that the kernel maps as huge pages.
    pub huge: Result<u64, Unavailable>,
    /// The file from its start to its end, in pieces of equal length. None for an empty file.
    pub pieces: Vec<Piece>,
}

impl FileResidence {
    /// Examines a file without changing what is cached. A value that the kernel does not tell is absent, with the reason.
    pub fn of(file: &File, progress: FileProgress<'_>) -> io::Result<Self> {
        let size = file.metadata()?.len();
        let examined = file_pages::tells_cached(file).and_then(|told| match told {
            true => Examination::of(file, size, progress),
            false => {
                let seen =
                    "since Linux 5.2, mincore tells only owners of a file and those who may write to it";
                Ok(Self::untold(size, seen, &Fix::Root { or: None }))
            }
        });
        let mut residence = examined.unwrap_or_else(|error| {
            let fix = Fix::Step("check the file system of the file".to_owned());
            Self::untold(size, &format!("its pages cannot be mapped or examined ({error})"), &fix)
        });
        let after = file.metadata()?.len();
        residence.changed = (after != size).then_some(after);
        Ok(residence)
    }

    /// Bytes on a node, if known.
    pub fn on(&self, node: u32) -> Option<u64> {
        self.nodes.as_ref().ok().map(|nodes| nodes.get(&node).copied().unwrap_or(0))
    }

    fn untold(size: u64, seen: &str, fix: &Fix) -> Self {
        let why = || Unavailable::new("what is cached of the file", seen, fix.clone());
        Self {
            size,
            changed: None,
            cached: Err(why()),
            nodes: Err(why()),
            huge: Err(why()),
            pieces: if size > 0 { vec![Piece::Unknown] } else { Vec::new() },
        }
    }
}

/// How the nodes of pages are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// Page by page, by move_pages.
    Pages,
    /// Window by window, by numa_maps: where move_pages is refused.
    Windows,
}

struct Examination {
    method: Method,
    /// Pages in a piece.
    piece: u64,
    cached: u64,
    nodes: BTreeMap<u32, u64>,
    huge: Option<u64>,
    pieces: Vec<Option<Piece>>,
}

impl Examination {
    fn of(file: &File, size: u64, progress: FileProgress<'_>) -> io::Result<FileResidence> {
        let page = sched::page_size();
        let pages = size.div_ceil(page);
        // A piece consists of whole huge pages if it is larger than one.
        let piece = match pages.div_ceil(PIECES).max(1) {
            large if large > 512 => large.next_multiple_of(512),
            small => small,
        };
        let method = if answers(file, size)? { Method::Pages } else { Method::Windows };
        let limit = if method == Method::Pages { u64::MAX } else { piece * page };
        let pieces = vec![None; pages.div_ceil(piece) as usize];
        let mut all = Self { method, piece, cached: 0, nodes: BTreeMap::new(), huge: Some(0), pieces };
        window::each(file, size, limit, |window, first| {
            all.add(window, first)?;
            progress(((first + u64::from(window.pages())) * page).min(size), size);
            Ok::<(), io::Error>(())
        })?;
        Ok(all.finish(size))
    }

    fn add(&mut self, window: &FileWindow, first: u64) -> io::Result<()> {
        let page = sched::page_size();
        let cached = window::cached(window)?;
        self.cached += cached.len() as u64 * page;
        window.touch(&cached)?;
        match self.method {
            Method::Pages => {
                let mut states = vec![Piece::Absent; window.pages() as usize];
                for (at, state) in cached.iter().zip(window.nodes(&cached)?) {
                    if let PageState::Node(node) = state {
                        *self.nodes.entry(node).or_default() += page;
                        states[*at as usize] = Piece::Node(node);
                    }
                }
                (first..).zip(states).for_each(|(at, state)| self.note(at, state));
            }
            Method::Windows => {
                let nodes = window::on_nodes(window)?;
                nodes.iter().for_each(|(node, bytes)| *self.nodes.entry(*node).or_default() += bytes);
                let state = match nodes[..] {
                    [] => Piece::Absent,
                    [(node, bytes)] if bytes == u64::from(window.pages()) * page => Piece::Node(node),
                    _ => Piece::Mixed,
                };
                self.note(first, state);
            }
        }
        if let (Some(sum), false) = (self.huge, cached.is_empty()) {
            self.huge = window::in_huge_pages(window)?.map(|bytes| sum + bytes);
        }
        Ok(())
    }

    fn note(&mut self, page: u64, state: Piece) {
        if let Some(piece) = self.pieces.get_mut((page / self.piece) as usize) {
            *piece = Some(piece.map_or(state, |known| known.and(state)));
        }
    }

    fn finish(self, size: u64) -> FileResidence {
        let huge = self.huge.ok_or_else(|| {
            let fix = Fix::OtherKernel("of 5.4 or newer".to_owned());
            Unavailable::new("huge pages of the file", "/proc/self/smaps has no FilePmdMapped", fix)
        });
        FileResidence {
            size,
            changed: None,
            cached: Ok(self.cached),
            nodes: Ok(self.nodes),
            huge,
            pieces: self.pieces.into_iter().map(|piece| piece.unwrap_or(Piece::Absent)).collect(),
        }
    }
}

/// Whether the kernel answers move_pages for this file.
fn answers(file: &File, size: u64) -> io::Result<bool> {
    if size == 0 {
        return Ok(true);
    }
    Ok(FileWindow::map(file, 0, 1)?.nodes(&[0]).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FoundFile;
    use crate::window::testing::Scratch;

    fn opened(scratch: &Scratch) -> File {
        FoundFile { path: scratch.0.clone(), id: (0, 0) }.open().unwrap()
    }

    #[test]
    fn a_file_that_was_written_is_cached_whole_by_both_methods() {
        let scratch = Scratch::file("whole", 3_000_001);
        let file = opened(&scratch);
        let mut calls = Vec::new();
        let residence = FileResidence::of(&file, &mut |done, all| calls.push((done, all))).unwrap();
        let whole = 3_000_001u64.next_multiple_of(sched::page_size());
        assert_eq!((residence.size, residence.changed, &residence.cached), (3_000_001, None, &Ok(whole)));
        assert_eq!(residence.nodes.as_ref().unwrap().values().sum::<u64>(), whole);
        assert_eq!(calls, [(3_000_001, 3_000_001)]);
        assert!(residence.pieces.len() as u64 <= PIECES && residence.pieces.len() > 100);
        let mut windows = Examination {
            method: Method::Windows,
            piece: whole,
            cached: 0,
            nodes: BTreeMap::new(),
            huge: Some(0),
            pieces: vec![None],
        };
        window::each(&file, 3_000_001, u64::MAX, |window, first| windows.add(window, first)).unwrap();
        let windows = windows.finish(3_000_001);
        assert_eq!((&windows.nodes, &windows.huge), (&residence.nodes, &residence.huge));
        let all = residence.pieces.iter().copied().reduce(Piece::and);
        assert_eq!(all, windows.pieces.first().copied());
    }

    #[test]
    fn only_what_is_cached_is_cached_afterwards() {
        let scratch = Scratch::file("part", 4 << 20);
        let file = opened(&scratch);
        file_pages::evict(&file).unwrap();
        let once = || FileResidence::of(&file, &mut |_, _| ()).unwrap();
        let before = once();
        if before.cached != Ok(0) && scratch.may_stay() {
            return numakit_skips::MACHINE.skip("the temporary folder is memory, which is never evicted");
        }
        assert_eq!((&before.cached, before.nodes.as_ref().unwrap().len()), (&Ok(0), 0));
        assert!(before.pieces.iter().all(|piece| *piece == Piece::Absent));
        let mut byte = [0];
        std::os::unix::fs::FileExt::read_at(&file, &mut byte, 2 << 20).unwrap();
        let after = once();
        assert!(*after.cached.as_ref().unwrap() > 0 && *after.cached.as_ref().unwrap() < 4 << 20);
        assert_eq!(after, once());
        assert!(after.pieces.contains(&Piece::Absent));
    }

    #[test]
    fn an_empty_file_has_nothing() {
        let scratch = Scratch::file("empty", 0);
        let file = opened(&scratch);
        let residence = FileResidence::of(&file, &mut |_, _| ()).unwrap();
        assert_eq!((residence.cached, residence.pieces), (Ok(0), Vec::new()));
    }

    #[test]
    fn pieces_together_are_mixed_unless_they_are_alike() {
        use Piece::{Absent, Mixed, Node, Unknown};
        assert_eq!(Node(1).and(Node(1)), Node(1));
        assert_eq!(Node(1).and(Node(2)), Mixed);
        assert_eq!(Absent.and(Node(2)), Mixed);
        assert_eq!(Mixed.and(Unknown), Unknown);
    }
}
