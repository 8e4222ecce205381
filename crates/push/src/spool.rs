//! What waits for an engine: rows in a folder of files, the newest also in memory.
//!
//! Every row is written to the folder when it arrives, so that a killed process loses none that is complete. A row leaves when
//! the engine has acknowledged it. The spool is bounded: when its limit or the disk is full, the oldest file is removed, and its
//! rows are counted. Where nothing can be written, rows wait in memory, within a limit.
//!
//! This protects against a killed process, not against a power failure: nothing waits for the disk.

mod rows;
mod segment;
#[cfg(test)]
mod tests;

pub use rows::MalformedRows;
pub(crate) use rows::{decode as decode_rows, encode as encode_rows};
pub use segment::{SegmentRecord, SpoolFile};

use numakit_recording::{Batch, Header};
use numakit_sys::file::{NO_FOLLOW, open_to_read};
use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// The smallest limit of a spool in bytes.
pub const MIN_LIMIT: u64 = 1 << 20;
/// The default limit: an hour of 5,000 series at 1 second takes a sixth of it.
pub const DEFAULT_LIMIT: u64 = 256 << 20;
/// A file is complete when its rows have this length, or an eighth of the limit or of the room on the disk.
const SEGMENT: u64 = 1 << 20;
/// Of large machines, when they are as long as this number of descriptions, of which each file has one; but never longer than
/// this part of the limit or of the room on the disk, since a file is dropped whole.
const DESCRIPTIONS: u64 = 8;
const LARGEST_PART: u64 = 4;
const EXTENSION: &str = "spool";
const POSITION: &str = "acknowledged";

/// Why a spool cannot be used.
#[derive(Debug, Error)]
pub enum SpoolError {
    /// The folder cannot be used.
    #[error("cannot use the spool {path}: {error}; name a folder that you may write to with --spool")]
    Folder {
        /// The folder or a file of it.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Another process sends from it.
    #[error("another process uses the spool {0}; name another folder with --spool")]
    Busy(PathBuf),
    /// It is too small.
    #[error("a spool of {0} bytes is too small; give at least {MIN_LIMIT}")]
    Limit(u64),
}

/// What happened to the rows of a spool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpoolCounts {
    /// Rows that wait.
    pub waiting: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// Rows of an earlier process that were found.
    pub found: u64,
    /// Rows that were dropped since the spool or the disk was full.
    pub dropped: u64,
    /// Rows that were lost since a file was damaged.
    pub damaged: u64,
    /// Files whose number of rows is unknown, since their start was damaged.
    pub unreadable: u64,
}

/// Rows that are next, without being removed.
#[derive(Debug, Clone)]
pub struct SpooledRows {
    /// What they are of.
    pub header: Arc<Header>,
    /// The rows.
    pub batch: Batch,
    /// What to acknowledge when they have arrived.
    pub end: u64,
}

/// A complete file.
#[derive(Debug)]
struct Stored {
    first: u64,
    bytes: u64,
    path: PathBuf,
}

/// The file that grows, with its rows in memory.
#[derive(Debug)]
struct Growing {
    header: Arc<Header>,
    first: u64,
    /// `None` if it cannot be written.
    file: Option<(File, PathBuf)>,
    /// Bytes of the file, and how many of them are the description.
    bytes: u64,
    start: u64,
    rows: VecDeque<Kept>,
}

#[derive(Debug)]
struct Kept {
    sequence: u64,
    rows: u64,
    record: Vec<u8>,
    stored: bool,
}

impl Kept {
    fn end(&self) -> u64 {
        self.sequence + self.rows
    }
}

/// A folder with rows that wait. One process uses it at a time.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    position: File,
    limit: u64,
    stored: VecDeque<Stored>,
    /// The oldest file, while it is sent.
    loaded: Option<(u64, SpoolFile)>,
    growing: Option<Growing>,
    next: u64,
    acknowledged: u64,
    counts: SpoolCounts,
    /// Rows in memory that were lost at the end.
    given_up: u64,
    /// What the files can have together: the limit, or what they and the disk's free space have.
    room: u64,
    trouble: Option<io::Error>,
}

impl Spool {
    /// Opens a folder, which is created if necessary, with what an earlier process left.
    pub fn open(folder: &Path, limit: u64) -> Result<Self, SpoolError> {
        if limit < MIN_LIMIT {
            return Err(SpoolError::Limit(limit));
        }
        let fail = |error| SpoolError::Folder { path: folder.to_owned(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fail)?;
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_FOLLOW);
        let position = options.open(folder.join(POSITION)).map_err(fail)?;
        position.try_lock().map_err(|refused| match refused {
            TryLockError::WouldBlock => SpoolError::Busy(folder.to_owned()),
            TryLockError::Error(error) => fail(error),
        })?;
        let stored = segments(folder).map_err(fail)?;
        let mut spool = Self {
            folder: folder.to_owned(),
            acknowledged: read_position(&position).unwrap_or(0),
            position,
            limit,
            stored,
            loaded: None,
            growing: None,
            next: 0,
            counts: SpoolCounts::default(),
            given_up: 0,
            room: limit,
            trouble: None,
        };
        spool.look_for_room();
        spool.find_end();
        spool.counts.found = spool.waiting();
        Ok(spool)
    }

    /// Opens the folder of that name, or one with a number where another process uses that: the first with rows that wait, else
    /// the first that is free.
    pub fn open_free(folder: &Path, limit: u64) -> Result<Self, SpoolError> {
        let numbered = (2..100).map(|number| folder.with_extension(number.to_string()));
        let (mut free, mut busy) = (None, None);
        for folder in std::iter::once(folder.to_owned()).chain(numbered) {
            // Behind the first number that no folder has there is none.
            let is_new = !folder.exists();
            if is_new && free.is_some() {
                break;
            }
            match Self::open(&folder, limit) {
                Err(error @ SpoolError::Busy(_)) => busy = busy.or(Some(error)),
                Ok(spool) if !is_new && spool.counts.found == 0 => free = free.or(Some(spool)),
                opened => return opened,
            }
        }
        free.ok_or_else(|| busy.unwrap_or(SpoolError::Busy(folder.to_owned())))
    }

    /// Finds the number of the next row, and removes files without any.
    fn find_end(&mut self) {
        while let Some(last) = self.stored.back() {
            match read_segment(&last.path).map(|segment| segment.records.last().map(SegmentRecord::end)) {
                Ok(Some(end)) => {
                    self.next = end.max(last.first);
                    break;
                }
                Ok(None) => {}
                Err(_) => self.counts.unreadable += 1,
            }
            self.next = self.next.max(last.first);
            let _ = fs::remove_file(&last.path);
            self.stored.pop_back();
        }
        // The position is not to be believed if it is beyond the rows, unless there are none.
        if self.stored.is_empty() {
            self.next = self.next.max(self.acknowledged);
            self.acknowledged = self.next;
        }
        let first = self.stored.front().map_or(self.next, |first| first.first);
        if self.acknowledged > self.next {
            self.acknowledged = first;
        }
        self.acknowledged = self.acknowledged.max(first);
        self.remove_acknowledged();
    }

    /// Adds rows at the end. What cannot be kept is counted.
    pub fn append(&mut self, header: &Arc<Header>, batch: &Batch) {
        if batch.is_empty() {
            return;
        }
        let sequence = self.next;
        self.next += batch.len() as u64;
        let Some(record) = segment::record(sequence, batch) else {
            self.counts.dropped += batch.len() as u64;
            return;
        };
        let room = self.room;
        let is_full = |growing: &Growing| {
            !crate::rows::are_described_by(Some(&growing.header), header)
                || growing.bytes - growing.start >= complete_length(room, growing.start)
                    && growing.rows.iter().all(|kept| kept.stored)
        };
        if self.growing.as_ref().is_some_and(is_full) {
            self.complete();
        }
        let growing = self.growing.get_or_insert_with(|| Growing {
            header: Arc::clone(header),
            first: sequence,
            file: None,
            bytes: 0,
            start: 0,
            rows: VecDeque::new(),
        });
        let size = record.len() as u64;
        growing.rows.push_back(Kept { sequence, rows: batch.len() as u64, record, stored: false });
        self.make_room(size);
        self.write();
        self.bound_memory(SEGMENT.min(self.limit / 8));
    }

    /// Writes the record of the newest rows; on a full disk, at the cost of the oldest.
    fn write(&mut self) {
        loop {
            let Some(growing) = &mut self.growing else { return };
            let error = match growing.write(&self.folder) {
                Ok(()) => {
                    self.trouble = None;
                    return;
                }
                Err(error) => error,
            };
            let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            self.trouble = Some(error);
            if is_full {
                self.look_for_room();
            }
            if !is_full || !(self.drop_oldest() || self.set_aside()) {
                return;
            }
        }
    }

    /// Rows that are in memory only are few.
    fn bound_memory(&mut self, limit: u64) {
        let Some(growing) = &mut self.growing else { return };
        let mut size: u64 = growing.rows.iter().filter(|kept| !kept.stored).map(Kept::size).sum();
        while size > limit
            && let Some(oldest) = growing.rows.pop_front()
        {
            let lost = oldest.end().saturating_sub(oldest.sequence.max(self.acknowledged));
            self.counts.dropped += lost;
            self.acknowledged = self.acknowledged.max(oldest.end());
            size -= if oldest.stored { 0 } else { oldest.size() };
        }
    }

    /// Removes the oldest files until these bytes fit.
    fn make_room(&mut self, bytes: u64) {
        while self.bytes() + bytes > self.limit && self.drop_oldest() {}
    }

    /// Removes the oldest file; false if only the one that grows is left.
    fn drop_oldest(&mut self) -> bool {
        let Some(oldest) = self.stored.pop_front() else { return false };
        let _ = fs::remove_file(&oldest.path);
        let end = self.first_after(0);
        self.counts.dropped += end.saturating_sub(self.acknowledged.max(oldest.first));
        self.acknowledged = self.acknowledged.max(end);
        self.loaded = None;
        true
    }

    /// Ends the file that grows with what is written of it, so that it can be removed; false if nothing is.
    fn set_aside(&mut self) -> bool {
        let Some(growing) = &mut self.growing else { return false };
        let next = growing.rows.iter().find(|kept| !kept.stored).map_or(self.next, |kept| kept.sequence);
        if next == growing.first {
            return false;
        }
        let Some((_, path)) = growing.file.take() else { return false };
        growing.rows.retain(|kept| kept.sequence >= next);
        self.stored.push_back(Stored { first: growing.first, bytes: growing.bytes, path });
        (growing.first, growing.bytes, growing.start) = (next, 0, 0);
        true
    }

    /// Counts what is in memory only: the process ends.
    pub fn give_up(&mut self) {
        let Some(growing) = &mut self.growing else { return };
        let left = growing.rows.iter().filter(|kept| !kept.stored);
        let lost: u64 =
            left.map(|kept| kept.end().saturating_sub(kept.sequence.max(self.acknowledged))).sum();
        growing.rows.retain(|kept| kept.stored);
        self.counts.dropped += lost;
        self.given_up += lost;
    }

    /// The first row of the file at that index, counted from the oldest.
    fn first_after(&self, index: usize) -> u64 {
        let stored = self.stored.get(index).map(|stored| stored.first);
        stored.or_else(|| Some(self.growing.as_ref()?.first)).unwrap_or(self.next)
    }

    /// Others fill and empty the disk, too.
    fn look_for_room(&mut self) {
        let free = numakit_sys::file::free_bytes(&self.folder).unwrap_or(u64::MAX);
        self.room = self.limit.min(free.saturating_add(self.bytes()));
    }

    fn complete(&mut self) {
        self.look_for_room();
        let Some(growing) = self.growing.take() else { return };
        let lost: u64 = growing.rows.iter().filter(|kept| !kept.stored).map(|kept| kept.rows).sum();
        self.counts.dropped += lost;
        if let Some((_, path)) = growing.file {
            self.stored.push_back(Stored { first: growing.first, bytes: growing.bytes, path });
        }
    }

    /// The oldest rows, at most `max` unless a record has more.
    pub fn peek(&mut self, max: usize) -> Option<SpooledRows> {
        while let Some(oldest) = self.stored.front() {
            if self.loaded.as_ref().is_none_or(|(first, _)| *first != oldest.first) {
                match read_segment(&oldest.path) {
                    Ok(segment) => self.loaded = Some((oldest.first, segment)),
                    Err(error) => {
                        self.trouble = Some(error);
                        self.skip_file();
                        continue;
                    }
                }
            }
            match self.peek_loaded(max) {
                Some(rows) => return Some(rows),
                None => self.skip_file(),
            }
        }
        let growing = self.growing.as_ref()?;
        let left = growing.rows.iter().filter(|kept| kept.end() > self.acknowledged);
        let columns = growing.header.series.len();
        let parts = left.filter_map(|kept| Some((kept.sequence, segment::rows_of(&kept.record, columns)?)));
        let (rows, first) = joined(Arc::clone(&growing.header), parts, max)?;
        self.count_gap(first);
        Some(rows)
    }

    fn peek_loaded(&mut self, max: usize) -> Option<SpooledRows> {
        let (_, segment) = self.loaded.as_ref()?;
        let left = segment.records.iter().filter(|record| record.end() > self.acknowledged);
        let decoded = left.filter_map(|record| Some((record.sequence, segment.rows(record)?)));
        let (rows, first) = joined(Arc::clone(&segment.header), decoded, max)?;
        self.count_gap(first);
        Some(rows)
    }

    /// The rest of the oldest file is not readable.
    fn skip_file(&mut self) {
        let end = self.first_after(1);
        self.count_gap(end);
        if let Some(oldest) = self.stored.pop_front() {
            let _ = fs::remove_file(oldest.path);
        }
        self.loaded = None;
    }

    /// Rows before this one are lost.
    fn count_gap(&mut self, first: u64) {
        self.counts.damaged += first.saturating_sub(self.acknowledged);
        self.acknowledged = self.acknowledged.max(first);
    }

    /// All rows before `end` have arrived.
    pub fn acknowledge(&mut self, end: u64) {
        self.acknowledged = self.acknowledged.max(end.min(self.next));
        // If this fails, rows are sent twice after the next start.
        let _ = self.position.write_all_at(&position_bytes(self.acknowledged), 0);
        self.remove_acknowledged();
    }

    fn remove_acknowledged(&mut self) {
        while !self.stored.is_empty() && self.first_after(1) <= self.acknowledged {
            if let Some(oldest) = self.stored.pop_front() {
                let _ = fs::remove_file(oldest.path);
            }
            self.loaded = None;
        }
        if let Some(growing) = &mut self.growing {
            while growing.rows.front().is_some_and(|kept| kept.end() <= self.acknowledged) {
                growing.rows.pop_front();
            }
        }
    }

    fn waiting(&self) -> u64 {
        self.next.saturating_sub(self.acknowledged).saturating_sub(self.given_up)
    }

    fn bytes(&self) -> u64 {
        self.stored.iter().map(|stored| stored.bytes).sum::<u64>()
            + self.growing.as_ref().map_or(0, |growing| growing.bytes)
    }

    /// What happened so far.
    pub fn counts(&self) -> SpoolCounts {
        SpoolCounts { waiting: self.waiting(), bytes: self.bytes(), ..self.counts }
    }

    /// Why rows cannot be written now, if so.
    pub fn trouble(&self) -> Option<&io::Error> {
        self.trouble.as_ref()
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let growing = self.growing.take().and_then(|growing| growing.file);
        if let Some((_, path)) = growing.filter(|_| self.waiting() == 0) {
            let _ = fs::remove_file(path);
        }
    }
}

impl Kept {
    fn size(&self) -> u64 {
        self.record.len() as u64
    }
}

impl Growing {
    /// Appends all of the newest record or nothing.
    fn write(&mut self, folder: &Path) -> io::Result<()> {
        if self.file.is_none() {
            let path = folder.join(format!("{:016x}.{EXTENSION}", self.first));
            let start = segment::start(&self.header)?;
            let mut options = File::options();
            options.write(true).create(true).truncate(true).mode(0o600).custom_flags(NO_FOLLOW);
            let mut file = options.open(&path)?;
            if let Err(error) = file.write_all(&start) {
                let _ = fs::remove_file(&path);
                return Err(error);
            }
            self.bytes = start.len() as u64;
            self.start = self.bytes;
            self.file = Some((file, path));
        }
        let (Some((file, _)), Some(newest)) = (&mut self.file, self.rows.back_mut()) else { return Ok(()) };
        if let Err(error) = file.write_all_at(&newest.record, self.bytes) {
            let _ = file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += newest.size();
        newest.stored = true;
        Ok(())
    }
}

/// Consecutive parts as one, at most `max` rows unless the first has more; and the first row's number.
fn joined(
    header: Arc<Header>,
    parts: impl Iterator<Item = (u64, Batch)>,
    max: usize,
) -> Option<(SpooledRows, u64)> {
    let mut parts = parts;
    let (first, batch) = parts.next()?;
    let end = first + batch.len() as u64;
    let mut rows = SpooledRows { header, batch, end };
    for (sequence, part) in parts {
        if rows.end != sequence || rows.batch.len() + part.len() > max {
            break;
        }
        rows.end += part.len() as u64;
        append(&mut rows.batch, part);
    }
    Some((rows, first))
}

fn append(to: &mut Batch, rows: Batch) {
    to.time.extend(rows.time);
    to.took.extend(rows.took);
    to.label.extend(rows.label);
    for (to, column) in to.columns.iter_mut().zip(rows.columns) {
        to.values.extend(column.values);
        to.valid.extend(column.valid);
    }
}

/// The length of a file's rows, of which the description has this length: where there is little room, the oldest file is
/// removed, and the others stay.
fn complete_length(room: u64, description: u64) -> u64 {
    let most = (room / LARGEST_PART).min(segment::MAX_FILE / 2);
    SEGMENT.min(room / 8).max((description * DESCRIPTIONS).min(most))
}

/// The files of a folder by their first row.
fn segments(folder: &Path) -> io::Result<VecDeque<Stored>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| stem.len() == 16);
        let first = stem.and_then(|stem| u64::from_str_radix(stem, 16).ok());
        let is_ours = path.extension().is_some_and(|extension| extension == EXTENSION);
        if let Some(first) = first.filter(|_| is_ours) {
            let bytes = fs::symlink_metadata(&path)?.len();
            found.push(Stored { first, bytes, path });
        }
    }
    found.sort_by_key(|stored| stored.first);
    Ok(found.into())
}

fn read_segment(path: &Path) -> io::Result<SpoolFile> {
    let mut content = Vec::new();
    open_to_read(path)?.take(segment::MAX_FILE).read_to_end(&mut content)?;
    SpoolFile::parse(content)
}

fn position_bytes(acknowledged: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&acknowledged.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..8]);
    bytes[8..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn read_position(file: &File) -> Option<u64> {
    let mut bytes = [0; 12];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let acknowledged = u64::from_le_bytes(*bytes.first_chunk()?);
    (position_bytes(acknowledged) == bytes).then_some(acknowledged)
}
