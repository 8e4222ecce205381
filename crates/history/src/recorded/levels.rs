//! The file `FILE.levels` next to a recording: a cache of the result of reading the recording,
//! for this version of the program only. It is not used if anything in it is unexpected.

use super::Content;
use crate::block::Block;
use crate::level::{Level, Span};
use crate::store::{Keep, Store};
use numakit_recording::{BatchPosition, tail_of};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Name of the format and its version.
const MAGIC: &[u8; 8] = b"numalvl2";
/// Recordings of fewer bytes are read as quickly as their levels.
const MIN_SIZE: u64 = 1 << 20;
/// The fastest zstd level with a good ratio.
const ZSTD_LEVEL: i32 = 1;
/// Maximum length of a text that is read back.
const MAX_TEXT: u32 = 1 << 20;

/// The file of the levels of a recording.
pub fn levels_of(recording: &Path) -> PathBuf {
    let mut name = recording.as_os_str().to_owned();
    name.push(".levels");
    name.into()
}

/// Identifies an unchanged recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    length: u64,
    changed: u64,
}

impl Stamp {
    /// `None` for recordings that need no levels, and for those that still grow.
    pub fn of(recording: &Path) -> Option<Self> {
        let data = recording.metadata().ok().filter(|m| m.is_file() && m.len() >= MIN_SIZE)?;
        if tail_of(recording).exists() {
            return None;
        }
        let changed = data.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Self { length: data.len(), changed: u64::try_from(changed.as_nanos()).ok()? })
    }
}

/// Writes the levels next to the recording; a failure leaves no file.
pub(super) fn write(recording: &Path, stamp: Stamp, identity: u64, content: &Content) {
    let target = levels_of(recording);
    let mut name = target.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let unfinished = PathBuf::from(name);
    let written = File::options().write(true).create_new(true).open(&unfinished).and_then(|file| {
        let mut packer = zstd::stream::write::Encoder::new(BufWriter::new(file), ZSTD_LEVEL)?;
        packer.include_checksum(true)?;
        put_all(&mut packer, stamp, identity, content)?;
        packer.finish()?.flush()
    });
    if written.and_then(|()| std::fs::rename(&unfinished, target)).is_err() {
        let _ = std::fs::remove_file(unfinished);
    }
}

fn put_all(to: &mut impl Write, stamp: Stamp, identity: u64, content: &Content) -> io::Result<()> {
    to.write_all(MAGIC)?;
    for word in [stamp.length, stamp.changed, identity] {
        to.write_all(&word.to_le_bytes())?;
    }
    put_bytes(to, content.damage.as_deref().unwrap_or_default().as_bytes())?;
    put_count(to, content.positions.len())?;
    for position in &content.positions {
        for word in [position.position, position.rows, position.labels] {
            to.write_all(&word.to_le_bytes())?;
        }
    }
    put_count(to, content.labels.len())?;
    for (time, text) in &content.labels {
        to.write_all(&time.to_le_bytes())?;
        put_bytes(to, text.as_bytes())?;
    }
    put_count(to, content.store.blocks().len())?;
    for block in content.store.blocks() {
        to.write_all(&block.first_row.to_le_bytes())?;
        put_level(to, &block.whole)?;
        put_level(to, block.groups.as_deref().unwrap_or(&Level::default()))?;
    }
    Ok(())
}

fn put_level(to: &mut impl Write, level: &Level) -> io::Result<()> {
    put_count(to, level.spans.len())?;
    for span in &level.spans {
        to.write_all(&span.first.to_le_bytes())?;
        to.write_all(&span.last.to_le_bytes())?;
        to.write_all(&span.rows.to_le_bytes())?;
    }
    put_bytes(to, level.as_bytes())
}

fn put_bytes(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    put_count(to, bytes.len())?;
    to.write_all(bytes)
}

fn put_count(to: &mut impl Write, count: usize) -> io::Result<()> {
    to.write_all(&u32::try_from(count).map_err(io::Error::other)?.to_le_bytes())
}

/// The levels of a recording, if they belong to it.
pub(super) fn read(
    recording: &Path,
    stamp: Stamp,
    identity: u64,
    series: usize,
    budget: usize,
) -> Option<Content> {
    let levels = levels_of(recording);
    // Opening a FIFO would block.
    if !levels.metadata().ok()?.is_file() {
        return None;
    }
    let file = BufReader::with_capacity(1 << 18, File::open(levels).ok()?);
    let packed = zstd::stream::read::Decoder::with_buffer(file).ok()?;
    // A block takes about as much here as in memory.
    let mut from = packed.take((budget as u64).saturating_mul(4).max(64 << 20));
    let content = take_all(&mut from, stamp, identity, series, budget)?;
    // The checksum is compared at the end only.
    (from.read(&mut [0]).ok()? == 0 && from.limit() > 0).then_some(content)
}

fn take_all(
    from: &mut impl Read,
    stamp: Stamp,
    identity: u64,
    series: usize,
    budget: usize,
) -> Option<Content> {
    if take(from)? != *MAGIC
        || [word(from)?, word(from)?, word(from)?] != [stamp.length, stamp.changed, identity]
    {
        return None;
    }
    let damage = Some(text(from)?).filter(|text| !text.is_empty());
    let mut positions = Vec::new();
    for _ in 0..count(from)? {
        positions.push(BatchPosition { position: word(from)?, rows: word(from)?, labels: word(from)? });
    }
    let mut labels = Vec::new();
    for _ in 0..count(from)? {
        labels.push((word(from)?, text(from)?));
    }
    let mut store = Store::new(series, budget, Keep::All);
    for _ in 0..count(from)? {
        let block = block(from, series)?;
        let follows = store.span().is_none_or(|(_, last)| last < block.span().first);
        if !follows || block.first_row != store.rows() {
            return None;
        }
        store.add(block);
    }
    Some(Content { store, positions, labels, damage, ends: None })
}

fn block(from: &mut impl Read, series: usize) -> Option<Block> {
    let first_row = word(from)?;
    let whole = level(from, series)?.filter(|level| level.spans.len() == 1)?;
    let groups = level(from, series)?;
    let all = whole.spans[0];
    if let Some(groups) = &groups {
        let (first, last) = (groups.spans.first()?, groups.spans.last()?);
        let rising = groups.spans.windows(2).all(|w| w[0].last < w[1].first);
        let rows: u64 = groups.spans.iter().map(|s| u64::from(s.rows)).sum();
        if !rising || (first.first, last.last, rows) != (all.first, all.last, u64::from(all.rows)) {
            return None;
        }
    }
    Some(Block { first_row, full: None, groups: groups.map(Arc::new), whole: Arc::new(whole) })
}

/// A level; `Some(None)` if the block has none.
fn level(from: &mut impl Read, series: usize) -> Option<Option<Level>> {
    let mut spans = Vec::new();
    for _ in 0..count(from)? {
        let span = Span { first: word(from)?, last: word(from)?, rows: u16::from_le_bytes(take(from)?) };
        if span.last < span.first || span.rows == 0 {
            return None;
        }
        spans.push(span);
    }
    let bytes = bytes(from, u32::MAX)?;
    if spans.is_empty() {
        return bytes.is_empty().then_some(None);
    }
    Level::of_bytes(spans, series, bytes).map(Some)
}

fn text(from: &mut impl Read) -> Option<String> {
    String::from_utf8(bytes(from, MAX_TEXT)?).ok()
}

/// Allocates with the bytes that are read, not with a length that may be wrong.
fn bytes(from: &mut impl Read, max: u32) -> Option<Vec<u8>> {
    let length = count(from).filter(|length| *length <= max)?;
    let mut bytes = Vec::with_capacity(length.min(1 << 20) as usize);
    from.take(u64::from(length)).read_to_end(&mut bytes).ok()?;
    (bytes.len() == length as usize).then(|| {
        bytes.shrink_to_fit();
        bytes
    })
}

fn count(from: &mut impl Read) -> Option<u32> {
    take(from).map(u32::from_le_bytes)
}

fn word(from: &mut impl Read) -> Option<u64> {
    take(from).map(u64::from_le_bytes)
}

fn take<const N: usize>(from: &mut impl Read) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::Gather;
    use crate::grid::Grid;
    use proptest::prelude::*;

    const STAMP: Stamp = Stamp { length: 1, changed: 2 };
    const SERIES: usize = 3;

    fn content() -> Content {
        let mut store = Store::new(SERIES, usize::MAX, Keep::All);
        for row in 0..1500u64 {
            let spike = row.is_multiple_of(100).then_some(row as f64);
            store.push(row * 10, &[Some(1.0), spike, (row > 70).then_some(row as f64)]);
        }
        store.seal();
        let positions = vec![
            BatchPosition { position: 9, rows: 0, labels: 0 },
            BatchPosition { position: 99, rows: 1000, labels: 1 },
        ];
        let labels = vec![(50, "here".into())];
        Content { store, positions, labels, damage: Some("cut".into()), ends: None }
    }

    fn bytes_of(content: &Content) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_all(&mut bytes, STAMP, 3, content).unwrap();
        bytes
    }

    fn read_buckets(content: &Content) -> Vec<f32> {
        let series = [0, 1, 2];
        let mut gather = Gather::new(Grid::over(5, 20_000, 30), &series);
        let (blocks, tail) = content.store.within(&series, 5, 20_000);
        blocks.iter().for_each(|block| gather.block(&Block { full: None, ..block.clone() }));
        gather.tail(&tail);
        gather.finish().columns.into_iter().flat_map(|c| [c.min, c.max, c.mean].concat()).collect()
    }

    #[test]
    fn levels_come_back() {
        let content = content();
        let bytes = bytes_of(&content);
        let again = take_all(&mut &bytes[..], STAMP, 3, SERIES, usize::MAX).unwrap();
        assert_eq!(
            (&again.positions, &again.labels, &again.damage),
            (&content.positions, &content.labels, &content.damage)
        );
        assert_eq!(again.store.rows(), 1500);
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(read_buckets(&again)), bits(read_buckets(&content)));
        let other = Stamp { changed: 5, ..STAMP };
        assert!(take_all(&mut &bytes[..], other, 3, SERIES, usize::MAX).is_none());
        assert!(take_all(&mut &bytes[..], STAMP, 4, SERIES, usize::MAX).is_none());
        assert!(take_all(&mut &bytes[..], STAMP, 3, SERIES + 1, usize::MAX).is_none());
    }

    proptest! {
        #[test]
        fn damaged_bytes_do_not_panic(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4), cut: prop::sample::Index) {
            let mut bytes = bytes_of(&content());
            for (at, value) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *value;
            }
            if changes.len() > 2 {
                bytes.truncate(cut.index(bytes.len()));
            }
            if let Some(content) = take_all(&mut &bytes[..], STAMP, 3, SERIES, 10_000) {
                read_buckets(&content);
            }
        }
    }
}
