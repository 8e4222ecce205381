//! The record of a process that was moved: where its threads and pages were before. It is written before anything changes, so
//! that it is there even if this program is killed.

use numakit_model::CpuSet;
use numakit_sys::cache::{newest_first, state_folder, store_privately};
use numakit_sys::file::{named_text, remove_own};
use numakit_sys::proc::TaskDir;
use numakit_sys::{SysRoot, sched, user};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The version of the form.
const VERSION: u32 = 1;
/// The folder below that of results.
const FOLDER: &str = "moved";
const ENDING: &str = ".json";
/// Maximum length of a file in bytes.
const MAX_FILE: u64 = 32 << 20;
/// Maximum numbers of ranges and threads.
pub const MAX_RANGES: usize = 1 << 18;
const MAX_THREADS: usize = 1 << 17;
/// Maximum number of nodes of the kernel.
const MAX_NODES: u32 = 1024;
/// The end of the addresses of programs, with five levels of page tables.
const MAX_ADDRESS: u64 = 1 << 56;

/// What is wrong with a record.
#[derive(Debug, Error)]
pub enum RecordError {
    /// There is none.
    #[error(
        "nothing of process {0} is to be undone: this user did not move it, or it was moved back, or those of its processes that were \
         moved have ended; 'numa doctor' lists what can be undone"
    )]
    None(u32),
    /// There is no folder for results.
    #[error("there is no folder for the record of what is changed; set HOME or XDG_STATE_HOME")]
    NoFolder,
    /// It is not what this program writes.
    #[error("{path}: {problem}; remove it")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// It cannot be written or read.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// What is wrong with the content of a record.
#[derive(Debug, Error)]
pub enum MalformedRecord {
    /// It has another form.
    #[error("it is no record: {0}")]
    Form(#[from] serde_json::Error),
    /// Another program wrote it.
    #[error("it has version {0}, and this program reads {VERSION}")]
    Version(u32),
    /// It is too large.
    #[error("it has {ranges} ranges and {threads} threads, which is too many")]
    TooMany {
        /// The number of ranges.
        ranges: usize,
        /// The number of threads.
        threads: usize,
    },
    /// A thread cannot be restored.
    #[error("a thread has no number or no CPUs")]
    Thread,
    /// Pages cannot be.
    #[error("the pages {:#x}-{:#x} of node {} are out of order or range", .0.start, .0.end, .0.node)]
    Pages(PageRange),
}

/// A thread before it was moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadMask {
    /// The thread.
    pub thread: u32,
    /// Its start, in ticks since the boot: threads get the numbers of those that have ended.
    pub start: u64,
    /// The CPUs on which it might run.
    pub cpus: CpuSet,
}

/// Pages before these were moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRange {
    /// The address of the first.
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// Their node.
    pub node: u32,
}

/// What was changed of a process, as it was before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveRecord {
    version: u32,
    /// The process.
    pub process: u32,
    /// Its start, in ticks since the boot.
    pub start: u64,
    /// The name of its program.
    pub command: String,
    /// When pages moved last, in ns of the monotonic clock.
    pub moved: u64,
    /// Threads that were bound.
    pub threads: Vec<ThreadMask>,
    /// Pages that were moved, in order.
    pub pages: Vec<PageRange>,
    /// Bytes that were moved whose nodes had no room here.
    pub forgotten: u64,
}

/// A record whose process still runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRecord {
    /// The process.
    pub process: u32,
    /// The name of its program.
    pub command: String,
    /// The command that undoes the move.
    pub undo: String,
}

impl MoveRecord {
    /// An empty record of a process that runs; none if it has ended.
    pub fn of(process: u32) -> Option<Self> {
        let stat = TaskDir::of(&SysRoot::host(), process).stat().ok()?;
        let command = stat.name();
        Some(Self { version: VERSION, process, start: stat.start, command, ..Self::default() })
    }

    /// Parses the content of a file, and checks all that is used of it.
    pub fn parse(text: &str) -> Result<Self, MalformedRecord> {
        let mut record: Self = serde_json::from_str(text)?;
        if record.version != VERSION {
            return Err(MalformedRecord::Version(record.version));
        }
        let (ranges, threads) = (record.pages.len(), record.threads.len());
        if ranges > MAX_RANGES || threads > MAX_THREADS {
            return Err(MalformedRecord::TooMany { ranges, threads });
        }
        if record.threads.iter().any(|thread| thread.thread == 0 || thread.cpus.is_empty()) {
            return Err(MalformedRecord::Thread);
        }
        let page = sched::page_size();
        let mut last = 0;
        for pages @ PageRange { start, end, node } in &record.pages {
            let is_right = *start >= last && start < end && *end <= MAX_ADDRESS && *node < MAX_NODES;
            if !is_right || start % page != 0 || end % page != 0 {
                return Err(MalformedRecord::Pages(*pages));
            }
            last = *end;
        }
        record.command.retain(|character| !character.is_control());
        Ok(record)
    }

    /// The record of a process that runs; none if there is none. One that a process with the same number left is removed.
    pub fn load(process: u32) -> Result<Option<Self>, RecordError> {
        let Some(now) = Self::of(process) else { return Ok(None) };
        let path = now.path()?;
        match Self::read(&path) {
            Ok(record) if record.process == process && record.start == now.start => Ok(Some(record)),
            Ok(_) => Err(RecordError::Damaged { path, problem: "it is of another process".to_owned() }),
            Err(RecordError::File { error, .. }) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read(path: &Path) -> Result<Self, RecordError> {
        let file = |error| RecordError::File { path: path.to_path_buf(), error };
        let damaged =
            |problem: &str| RecordError::Damaged { path: path.to_path_buf(), problem: problem.to_owned() };
        let folder = path.parent().ok_or(RecordError::NoFolder)?;
        if !user::is_trusted(folder).map_err(file)? {
            return Err(damaged("other users may write to its folder"));
        }
        Self::parse(&named_text(path, MAX_FILE).map_err(file)?)
            .map_err(|problem| damaged(&problem.to_string()))
    }

    /// Writes it. A reader sees the old content or the new one.
    pub fn store(&self) -> Result<(), RecordError> {
        let path = self.path()?;
        let file = |error: io::Error| RecordError::File { path: path.clone(), error };
        let text = serde_json::to_string(self).map_err(|error| file(error.into()))?;
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(RecordError::NoFolder);
        };
        store_privately(folder, &name.to_string_lossy(), &text).map_err(file)
    }

    /// Removes the file.
    pub fn remove(&self) -> Result<(), RecordError> {
        let path = self.path()?;
        remove_own(&path).map_err(|error| RecordError::File { path, error })
    }

    fn path(&self) -> Result<PathBuf, RecordError> {
        let folder = state_folder().ok_or(RecordError::NoFolder)?;
        Ok(folder.join(FOLDER).join(format!("{}-{}{ENDING}", self.process, self.start)))
    }

    /// Adds a thread with its CPUs, unless it is there already.
    pub fn add_thread(&mut self, thread: ThreadMask) {
        if !self.threads.iter().any(|known| (known.thread, known.start) == (thread.thread, thread.start)) {
            self.threads.push(thread);
        }
    }

    /// Adds pages with their nodes, each an address and a size, in any order. Pages that are there already keep their old node.
    pub fn add_pages(&mut self, mut pages: Vec<PageRange>) {
        pages.sort_unstable_by_key(|page| page.start);
        let old = std::mem::take(&mut self.pages);
        let mut kept = old.iter().peekable();
        let mut fresh = Vec::new();
        for page in pages {
            while kept.peek().is_some_and(|range| range.end <= page.start) {
                kept.next();
            }
            if kept.peek().is_none_or(|range| range.start >= page.end) {
                fresh.push(page);
            }
        }
        let mut all = old;
        all.append(&mut fresh);
        all.sort_unstable_by_key(|range| range.start);
        for range in all {
            let has_room = self.pages.len() < MAX_RANGES;
            match self.pages.last_mut() {
                Some(last) if last.end == range.start && last.node == range.node => last.end = range.end,
                Some(last) if last.end > range.start => {}
                _ if has_room => self.pages.push(range),
                _ => self.forgotten += range.end - range.start,
            }
        }
    }

    /// The records of processes that run. Those of processes that have ended are removed.
    pub fn kept() -> Vec<KeptRecord> {
        let Some(folder) = state_folder() else { return Vec::new() };
        let files = newest_first(&folder.join(FOLDER), ENDING).unwrap_or_default();
        let mut kept = Vec::new();
        for (_, path) in files {
            let Ok(record) = Self::read(&path) else { continue };
            let is_its_own = record.path().is_ok_and(|own| own == path);
            match Self::of(record.process) {
                Some(now) if now.start == record.start => kept.push(KeptRecord {
                    process: record.process,
                    command: record.command,
                    undo: format!("numa move --pid {} --back", record.process),
                }),
                // It stays where the process cannot be looked at.
                _ if is_its_own && !TaskDir::of(&SysRoot::host(), record.process).exists() => {
                    let _ = remove_own(&path);
                }
                Some(_) if is_its_own => _ = remove_own(&path),
                _ => {}
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pages(start: u64, count: u64, node: u32) -> PageRange {
        let page = sched::page_size();
        PageRange { start: start * page, end: (start + count) * page, node }
    }

    #[test]
    fn what_was_written_is_read() {
        let mut record = MoveRecord::of(std::process::id()).unwrap();
        let mask = ThreadMask { thread: 7, start: 5, cpus: CpuSet::range(0, 3) };
        record.add_thread(mask.clone());
        record.add_thread(ThreadMask { cpus: CpuSet::range(1, 1), ..mask.clone() });
        record.add_pages((0..8).rev().map(|page| pages(page, 1, 2)).collect());
        assert_eq!(
            (record.threads.as_slice(), record.pages.as_slice()),
            (&[mask][..], &[pages(0, 8, 2)][..])
        );
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(MoveRecord::parse(&text).unwrap(), record);
    }

    #[test]
    fn pages_keep_the_node_that_they_had_first() {
        let mut record = MoveRecord::default();
        record.add_pages(vec![pages(0, 2, 1), pages(4, 2, 1)]);
        record.add_pages(vec![pages(1, 1, 3), pages(2, 1, 0), pages(4, 1, 3), pages(9, 1, 1)]);
        assert_eq!(record.pages, [pages(0, 2, 1), pages(2, 1, 0), pages(4, 2, 1), pages(9, 1, 1)]);
    }

    #[test]
    fn ranges_are_bounded_and_what_is_left_out_is_counted() {
        let mut record = MoveRecord::default();
        record.add_pages((0..MAX_RANGES as u64 + 3).map(|page| pages(2 * page, 1, 0)).collect());
        assert_eq!((record.pages.len(), record.forgotten), (MAX_RANGES, 3 * sched::page_size()));
    }

    #[test]
    fn hostile_content_is_refused() {
        let page = sched::page_size();
        let with = |pages: &str, threads: &str| {
            format!(
                r#"{{"version":1,"process":1,"start":2,"command":"x","moved":0,"threads":[{threads}],"pages":[{pages}],"forgotten":0}}"#
            )
        };
        let range =
            |start: u64, end: u64, node: u32| format!(r#"{{"start":{start},"end":{end},"node":{node}}}"#);
        assert!(MoveRecord::parse(&with(&range(0, page, 0), "")).is_ok());
        for pages in [
            range(1, page, 0),
            range(page, page, 0),
            range(0, u64::MAX / page * page, 0),
            range(0, page, 1024),
            format!("{},{}", range(page, 2 * page, 0), range(0, page, 0)),
        ] {
            assert!(
                matches!(MoveRecord::parse(&with(&pages, "")), Err(MalformedRecord::Pages(_))),
                "{pages}"
            );
        }
        for thread in [r#"{"thread":0,"start":1,"cpus":"0"}"#, r#"{"thread":4,"start":1,"cpus":""}"#] {
            assert!(MoveRecord::parse(&with("", thread)).is_err(), "{thread}");
        }
        for text in ["", "[]", "{}", "null", &with("", "").replace("\"version\":1", "\"version\":2")] {
            assert!(MoveRecord::parse(text).is_err(), "{text}");
        }
        let escapes = with("", "").replace("\"x\"", "\"a\\u001b[2Jb\"");
        assert_eq!(MoveRecord::parse(&escapes).unwrap().command, "a[2Jb");
    }

    proptest! {
        #[test]
        fn ranges_stay_in_order(adds in proptest::collection::vec(proptest::collection::vec((0u64..40, 1u64..4, 0u32..3), 0..12), 0..6)) {
            let mut record = MoveRecord::of(std::process::id()).unwrap();
            for add in adds {
                record.add_pages(add.into_iter().map(|(start, count, node)| pages(start, count, node)).collect());
            }
            let text = serde_json::to_string(&record).unwrap();
            prop_assert_eq!(MoveRecord::parse(&text).unwrap(), record);
        }
    }
}
