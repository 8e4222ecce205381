//! Moving the cached pages of a file to nodes: in place, or by removing and reading them again.

use crate::{FileProgress, FileResidence, FilesError, FoundFile, Reading, UsePlan, evict, load, window};
use numakit_sys::file_pages::{self, FileWindow, PageState};
use numakit_sys::sched;
use std::fs::File;
use std::io;

/// Where pages are to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// All pages on one node.
    Node(u32),
    /// Page by page on these nodes in turn.
    Spread(Vec<u32>),
    /// Each page on the node of its users.
    ByUse(UsePlan),
}

impl Destination {
    /// The node of a page of the file; `None` for a page that is to stay. `block` pages together have one node.
    fn node(&self, page: u64, block: u64) -> Option<u32> {
        match self {
            Self::Node(node) => Some(*node),
            Self::Spread(nodes) => nodes.get((page / block % nodes.len() as u64) as usize).copied(),
            Self::ByUse(plan) => plan.node(page, block),
        }
    }
}

/// How pages moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In memory, by move_pages.
    InPlace,
    /// Removed from the cache and read again, as move_pages is refused.
    ReadAgain,
    /// Not at all: move_pages is refused, and the file cannot be read again while processes map it.
    Refused,
}

/// Pages that were moved, or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Relocation {
    /// Pages that moved to their node.
    pub moved: u64,
    /// Pages that were on their node already.
    pub there: u64,
    /// Pages on other nodes that other processes map. Moving them needs CAP_SYS_NICE.
    pub mapped: u64,
    /// Pages elsewhere that were in use.
    pub busy: u64,
    /// Pages elsewhere as the node has no free memory.
    pub full: u64,
    /// Pages that left the cache meanwhile.
    pub gone: u64,
    /// Pages that the plan leaves where they are.
    pub kept: u64,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relocated {
    /// Where the file was before.
    pub before: FileResidence,
    /// Where the file is now.
    pub after: FileResidence,
    /// How pages moved.
    pub way: Way,
    /// How many pages moved. Pages that were read again are not counted.
    pub pages: Relocation,
    /// Consecutive pages that have one node: more than one if the file system caches in larger units.
    pub block: u64,
    /// Whether the whole file was read, since the kernel does not tell this user which pages are cached.
    pub read_whole: bool,
}

impl Relocated {
    /// Moves the cached pages of a file. `reading` says how to read them again if move_pages is refused and `mapped` is
    /// false, so that no process maps the file. A plan that gives each page a node of its own can only be done in memory.
    pub fn of(
        (found, file): (&FoundFile, &File),
        target: &Destination,
        reading: &Reading,
        mapped: bool,
        progress: FileProgress<'_>,
    ) -> Result<Self, FilesError> {
        let fail = |error| found.error("its page cache cannot be examined", error);
        let before = FileResidence::of(file, &mut |_, _| ()).map_err(fail)?;
        let told = file_pages::tells_cached(file).map_err(fail)?;
        let mut mover =
            Mover { target, is_told: told, block: 1, moves_mapped: true, pages: Relocation::default() };
        let way = match mover.file(file, before.size, &mut *progress) {
            Ok(()) => Way::InPlace,
            Err(error) if is_refused(&error) && (mapped || matches!(target, Destination::ByUse(_))) => {
                Way::Refused
            }
            Err(error) if is_refused(&error) => {
                evict(found, file)?;
                load(found, file, reading, progress)?;
                Way::ReadAgain
            }
            Err(error) => return Err(found.error("its pages cannot be moved", error)),
        };
        let after = FileResidence::of(file, &mut |_, _| ()).map_err(fail)?;
        let read_whole = !told && way != Way::Refused;
        Ok(Self { before, after, way, pages: mover.pages, block: mover.block, read_whole })
    }

    /// Pages that are cached on other nodes than planned, as far as pages were counted.
    pub fn left(&self) -> u64 {
        self.pages.mapped + self.pages.busy + self.pages.full
    }
}

/// A container's filter refuses the call.
fn is_refused(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported)
}

/// Pages of a call that could not be moved together are tried in smaller calls: the kernel gives up at one that stays.
const CALLS: [usize; 3] = [usize::MAX, 64, 1];

/// Pages of the units in which file systems may cache; then a huge page.
const BLOCKS: [u64; 4] = [1, 16, 64, 512];

struct Mover<'a> {
    target: &'a Destination,
    /// Whether the kernel tells which pages are cached.
    is_told: bool,
    block: u64,
    /// Whether pages that other processes map may be moved, as far as that is known.
    moves_mapped: bool,
    pages: Relocation,
}

impl Mover<'_> {
    fn file(&mut self, file: &File, size: u64, progress: FileProgress<'_>) -> io::Result<()> {
        let page = sched::page_size();
        window::each(file, size, u64::MAX, |window, first| {
            self.window(window, first)?;
            progress(((first + u64::from(window.pages())) * page).min(size), size);
            Ok(())
        })
    }

    fn window(&mut self, window: &FileWindow, first: u64) -> io::Result<()> {
        let cached = if self.is_told { window::cached(window)? } else { (0..window.pages()).collect() };
        window.touch(&cached)?;
        let before = window.nodes(&cached)?;
        let mut after = self.attempt(window, first, &cached, &before)?;
        // If the file system caches in larger units, all pages of a unit move together.
        while self.has_strays(first, &cached, &after)
            && let Some(block) = BLOCKS.into_iter().find(|block| *block > self.block)
        {
            self.block = block;
            after = self.attempt(window, first, &cached, &after)?;
        }
        self.count(first, &cached, &before, &after);
        Ok(())
    }

    /// Whether pages that moved are not on the node that they were to go to.
    fn has_strays(&self, first: u64, pages: &[u32], after: &[PageState]) -> bool {
        let wrong = |(page, state): (&u32, &PageState)| matches!(state, PageState::Node(node) if self.wanted(first, *page).is_some_and(|wanted| wanted != *node));
        !matches!(self.target, Destination::Node(_)) && pages.iter().zip(after).any(wrong)
    }

    fn wanted(&self, first: u64, page: u32) -> Option<u32> {
        self.target.node(first + u64::from(page), self.block)
    }

    /// Moves pages. Returns where they are, or the reason for those that are not where they should be.
    fn attempt(
        &mut self,
        window: &FileWindow,
        first: u64,
        pages: &[u32],
        before: &[PageState],
    ) -> io::Result<Vec<PageState>> {
        let mut states = before.to_vec();
        for most in CALLS {
            let mut wrong: Vec<usize> = (0..pages.len())
                .filter(|at| match states[*at] {
                    _ if self.wanted(first, pages[*at]).is_none() => false,
                    PageState::Node(node) => self.wanted(first, pages[*at]) != Some(node),
                    PageState::Absent => false,
                    PageState::Mapped => self.moves_mapped,
                    PageState::Busy | PageState::NoMemory | PageState::Unreached => true,
                })
                .collect();
            if wrong.is_empty() {
                break;
            }
            // Pages of one node are moved after those of another, so that a unit of the cache moves at most once for each
            // node.
            wrong.sort_by_key(|at| (self.wanted(first, pages[*at]), *at));
            let mut reasons = Vec::with_capacity(wrong.len());
            for part in wrong.chunks(most) {
                let moved: Vec<u32> = part.iter().map(|at| pages[*at]).collect();
                let nodes: Vec<u32> = moved.iter().filter_map(|page| self.wanted(first, *page)).collect();
                reasons.extend(self.call(window, &moved, &nodes)?);
            }
            states = window.nodes(pages)?;
            for (at, reason) in wrong.into_iter().zip(reasons) {
                let is_there = self.wanted(first, pages[at]).map(PageState::Node) == Some(states[at]);
                if !is_there && !matches!(reason, PageState::Node(_)) {
                    states[at] = reason;
                }
            }
            if self.has_strays(first, pages, &states) {
                break;
            }
        }
        Ok(states)
    }

    fn call(&mut self, window: &FileWindow, pages: &[u32], nodes: &[u32]) -> io::Result<Vec<PageState>> {
        match window.relocate(pages, nodes, self.moves_mapped) {
            // Only CAP_SYS_NICE permits moving pages of other processes; a filter refuses the call with either flag.
            Err(error) if self.moves_mapped && error.kind() == io::ErrorKind::PermissionDenied => {
                self.moves_mapped = false;
                window.relocate(pages, nodes, false)
            }
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                Ok(vec![PageState::NoMemory; pages.len()])
            }
            result => result,
        }
    }

    fn count(&mut self, first: u64, pages: &[u32], before: &[PageState], after: &[PageState]) {
        for ((page, before), after) in pages.iter().zip(before).zip(after) {
            let Some(wanted) = self.wanted(first, *page).map(PageState::Node) else {
                self.pages.kept += 1;
                continue;
            };
            let count = match after {
                after if *after == wanted && before == after => &mut self.pages.there,
                after if *after == wanted => &mut self.pages.moved,
                PageState::Mapped => &mut self.pages.mapped,
                PageState::NoMemory => &mut self.pages.full,
                PageState::Absent => &mut self.pages.gone,
                PageState::Node(_) | PageState::Busy | PageState::Unreached => &mut self.pages.busy,
            };
            *count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::testing::Scratch;
    use numakit_model::CpuSet;
    use numakit_skips::rounds;
    use numakit_sys::policy::MemoryPolicy;

    /// Whether the kernel, or a filter, refuses move_pages.
    fn move_pages_is_refused(file: &File) -> bool {
        let window = FileWindow::map(file, 0, sched::page_size() as usize).unwrap();
        window.touch(&[0]).unwrap();
        window.relocate(&[0], &[0], false).is_err_and(|error| is_refused(&error))
    }

    #[test]
    fn pages_take_turns_in_blocks() {
        let spread = Destination::Spread(vec![0, 2, 3]);
        let nodes = |block| (0..8).map(|page| spread.node(page, block).unwrap()).collect::<Vec<u32>>();
        assert_eq!(nodes(1), [0, 2, 3, 0, 2, 3, 0, 2]);
        assert_eq!(nodes(4), [0, 0, 0, 0, 2, 2, 2, 2]);
        assert_eq!(Destination::Node(5).node(77, 16), Some(5));
    }

    #[test]
    fn pages_that_are_on_the_node_already_are_not_moved() {
        let scratch = Scratch::file("there", (3 << 20) + 1);
        let found = FoundFile { path: scratch.0.clone(), id: (0, 0) };
        let file = found.open().unwrap();
        let policy = MemoryPolicy::bind(&CpuSet::range(0, 0));
        let reading = Reading { policy, cpus: None };
        let once = |target| Relocated::of((&found, &file), &target, &reading, false, &mut |_, _| ());
        let one = once(Destination::Node(0)).unwrap();
        let pages = (3 << 20) / sched::page_size() + 1;
        match one.way {
            Way::InPlace => assert_eq!(one.pages.there + one.pages.moved, pages, "{one:?}"),
            _ => {
                assert!(move_pages_is_refused(&file), "{one:?}");
                numakit_skips::PRIVILEGES.skip_part("move_pages is refused here");
            }
        }
        assert_eq!((one.after.on(0), one.left()), (Some(pages * sched::page_size()), 0));
        let again = once(Destination::Spread(vec![0])).unwrap();
        assert_eq!((again.block, again.left(), again.pages.moved), (1, 0, 0));
        assert_eq!(again.before, one.after);
    }

    #[test]
    fn a_node_that_is_not_there_is_an_error() {
        let scratch = Scratch::file("nonode", 100_000);
        let found = FoundFile { path: scratch.0.clone(), id: (0, 0) };
        let file = found.open().unwrap();
        let reading = Reading { policy: MemoryPolicy::bind(&CpuSet::range(900, 900)), cpus: None };
        let result = Relocated::of((&found, &file), &Destination::Node(900), &reading, false, &mut |_, _| ());
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: ", scratch.0.display())), "{error}");
    }

    #[test]
    fn a_file_that_grows_and_shrinks_meanwhile_ends_nothing() {
        let scratch = Scratch::file("changes", 8 << 20);
        let found = FoundFile { path: scratch.0.clone(), id: (0, 0) };
        let file = found.open().unwrap();
        let reading = Reading { policy: MemoryPolicy::bind(&CpuSet::range(0, 0)), cpus: None };
        let other = File::options().write(true).open(&scratch.0).unwrap();
        let in_use = std::sync::Arc::new(());
        let watched = std::sync::Arc::downgrade(&in_use);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while watched.strong_count() > 0 {
                    [0, 12 << 20, 5000, 8 << 20].into_iter().for_each(|size| other.set_len(size).unwrap());
                }
            });
            // Dropped by a failed check too: else the thread, and with it the test, would never end.
            let _in_use = in_use;
            for _ in 0..rounds(20, 200) {
                let residence = FileResidence::of(&file, &mut |_, _| ()).unwrap();
                assert!(residence.cached.is_ok(), "{residence:?}");
                let target = Destination::Node(0);
                let moved = Relocated::of((&found, &file), &target, &reading, false, &mut |_, _| ()).unwrap();
                assert_eq!(moved.left(), moved.pages.busy, "{moved:?}");
                load(&found, &file, &reading, &mut |_, _| ()).unwrap();
            }
        });
    }
}
