//! Files of `name value` lines, such as /proc/vmstat and nodeN/meminfo, read in one pass.
//!
//! The kernel prints the same names in the same order at every read. A [`FileLayout`] stores them,
//! so that a read only compares the expected name and parses the digits after it. If the names
//! differ, it looks them up and stores the new order.

pub use numakit_sys::proc::digits;
use numakit_sys::root::PATIENCE;
use std::collections::HashMap;

/// Maximum number of lines that are read. Real files have a few hundred.
pub const MAX_LINES: usize = 4096;

/// Maximum length of a name of a series.
const MAX_NAME: usize = 64;

/// A line of such a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLine<'a> {
    /// The start of the line, up to the spaces before the value: `Node 0 MemFree:`.
    pub key: &'a [u8],
    /// The name: `MemFree`.
    pub name: &'a str,
    /// Whether `kB` follows the value.
    pub kibibytes: bool,
}

/// The lines of a file with a name and a number; others are ignored.
pub fn entries(text: &[u8]) -> impl Iterator<Item = FileLine<'_>> {
    text.split_inclusive(|&b| b == b'\n').take(MAX_LINES).filter_map(entry)
}

fn entry(line: &[u8]) -> Option<FileLine<'_>> {
    let key = key_of(line);
    let (_, kibibytes) = number(&line[key.len()..])?;
    let text = std::str::from_utf8(key).ok()?;
    let text = match text.strip_prefix("Node ") {
        Some(rest) => rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start(),
        None => text,
    };
    let name = text.strip_suffix(':').unwrap_or(text);
    let sound = |c: u8| c.is_ascii_alphanumeric() || b"_()-.".contains(&c);
    (!name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(sound)).then_some(FileLine {
        key,
        name,
        kibibytes,
    })
}

/// The part before the value, or the whole line (without its end) without a value.
fn key_of(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let words = line.strip_suffix(b" kB").unwrap_or(line);
    let Some(space) = words.iter().rposition(|&b| b == b' ') else { return line };
    let end = words[..space].iter().rposition(|&b| b != b' ').map_or(0, |last| last + 1);
    &words[..end]
}

/// The number after a key: spaces, digits, optionally ` kB`, line end. Without the line end, digits
/// may be missing, so it is not used.
#[inline]
fn number(rest: &[u8]) -> Option<(u64, bool)> {
    let start = rest.iter().position(|&b| b != b' ')?;
    let (value, after) = digits(&rest[start..])?;
    match after {
        [b'\n', ..] => Some((value, false)),
        [b' ', b'k', b'B', b'\n', ..] => Some((value, true)),
        _ => None,
    }
}

/// The order of the lines, and the slot of each value.
#[derive(Debug, Default)]
pub struct FileLayout {
    // The keys of all lines, concatenated.
    keys: Vec<u8>,
    lines: Vec<Line>,
    // Selected keys that the file did not have at the last lookup.
    missing_keys: Vec<(Box<[u8]>, u32)>,
    // Reads until the next lookup.
    wait: u32,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    key_len: u32,
    slot: u32,
}

/// The slot of lines that are not selected.
const NO_SLOT: u32 = u32::MAX;

impl FileLayout {
    /// The layout of this content; each of these keys has a slot of the output.
    pub fn new<'a>(text: &[u8], wanted: impl IntoIterator<Item = (&'a [u8], usize)>) -> Self {
        let missing_keys = wanted.into_iter().map(|(key, slot)| (key.into(), slot as u32)).collect();
        let mut layout = Self { missing_keys, ..Self::default() };
        layout.learn(text);
        layout
    }

    /// Moves values to other slots; keys whose slot has no successor are dropped.
    pub fn keep(&mut self, successor: &dyn Fn(usize) -> Option<usize>) {
        let moved = |slot: u32| successor(slot as usize).map_or(NO_SLOT, |s| s as u32);
        for line in self.lines.iter_mut().filter(|l| l.slot != NO_SLOT) {
            line.slot = moved(line.slot);
        }
        for (_, slot) in &mut self.missing_keys {
            *slot = moved(*slot);
        }
        self.missing_keys.retain(|(_, slot)| *slot != NO_SLOT);
        self.forget_tail();
    }

    /// Whether no key is left.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.missing_keys.is_empty()
    }

    /// A key that the last content did not have.
    pub fn missing(&self) -> Option<&[u8]> {
        self.missing_keys.first().map(|(key, _)| &**key)
    }

    /// Parses the selected values. Slots without a valid value do not change.
    pub fn read(&mut self, text: &[u8], out: &mut [Option<u64>]) {
        self.wait = self.wait.saturating_sub(1);
        let lookup_due = self.wait == 0 && !self.missing_keys.is_empty();
        if lookup_due || !self.pass(text, out) {
            self.learn(text);
            self.pass(text, out);
        }
    }

    /// One pass in the stored order. False as soon as a line is not the expected one.
    fn pass(&self, mut text: &[u8], out: &mut [Option<u64>]) -> bool {
        let mut keys = self.keys.as_slice();
        for line in &self.lines {
            let (key, further) = keys.split_at(line.key_len as usize);
            keys = further;
            let Some(rest) = text.strip_prefix(key) else { return false };
            if !matches!(rest.first(), None | Some(b' ' | b'\n')) {
                return false;
            }
            if line.slot != NO_SLOT
                && let Some((value, _)) = number(rest)
                && let Some(slot) = out.get_mut(line.slot as usize)
            {
                *slot = Some(value);
            }
            text = rest.iter().position(|&b| b == b'\n').map_or(&[], |end| &rest[end + 1..]);
        }
        true
    }

    /// Stores the order of this content.
    fn learn(&mut self, text: &[u8]) {
        let mut wanted: HashMap<Box<[u8]>, u32> = self.missing_keys.drain(..).collect();
        let mut at = 0;
        for line in self.lines.drain(..) {
            let key = &self.keys[at..at + line.key_len as usize];
            at += key.len();
            if line.slot != NO_SLOT {
                wanted.insert(key.into(), line.slot);
            }
        }
        self.keys.clear();
        for line in text.split_inclusive(|&b| b == b'\n').take(MAX_LINES) {
            let key = key_of(line);
            let slot = wanted.remove(key).unwrap_or(NO_SLOT);
            self.keys.extend_from_slice(key);
            self.lines.push(Line { key_len: key.len() as u32, slot });
        }
        self.missing_keys = wanted.into_iter().collect();
        self.missing_keys.sort_by_key(|(_, slot)| *slot);
        self.wait = PATIENCE;
        self.forget_tail();
    }

    /// Lines after the last selected one need not be read.
    fn forget_tail(&mut self) {
        let used = self.lines.iter().rposition(|l| l.slot != NO_SLOT).map_or(0, |last| last + 1);
        self.lines.truncate(used);
        self.keys.truncate(self.lines.iter().map(|l| l.key_len as usize).sum());
    }
}

#[cfg(test)]
mod tests;
