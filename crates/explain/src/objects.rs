//! Which object of a process an address belonged to at a time: a block of the heap, a variable, a stack, a file.
//!
//! Addresses are used again, so an object has its addresses from one time to another. All is computed from what is
//! added, in order of time; there is no clock and no I/O. A forked child has a clone of its parent's timeline; a process
//! that executes another program begins with an empty one.

mod callers;
mod origin;
mod piece;
mod reuse;
mod small;

pub use self::callers::{DifferingCalls, SiteCallers};
pub use self::origin::{MMAP_OF_FILE, ObjectKind, ObjectOrigin, SHARED_MMAP};
pub use self::piece::ObjectBlock;
pub use self::reuse::{AllocatingThread, BlockOrigins};
pub use self::small::{SiteBlocks, SmallBlocks};

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

const LAYERS: usize = 4;
const CLASSES: usize = u64::BITS as usize;

/// An object of one timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(usize);

/// An object, with all of its pieces together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRow {
    /// What it is.
    pub origin: ObjectOrigin,
    /// How often it was added: the blocks of an allocation site, for example.
    pub pieces: u64,
    /// Its bytes now.
    pub bytes: u64,
    /// The maximum of its bytes at one time.
    pub max_bytes: u64,
    /// Who allocated it, if it is blocks.
    pub blocks: BlockOrigins,
}

/// What a timeline does not know because of its limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimelineLosses {
    /// Pieces that had ended, and were dropped to make room, those first that ended first.
    pub dropped: u64,
    /// What had ended up to this time may be missing.
    pub dropped_until: Option<u64>,
    /// Pieces that found no room: their addresses are taken for those of a lower layer, or of no object.
    pub refused: u64,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    end: u64,
    until: Option<u64>,
    object: ObjectId,
    /// The node whose threads allocated the piece's memory when its addresses were used for the first time.
    node: Option<u32>,
}

/// Where a piece is.
#[derive(Debug, Clone, Copy)]
struct PieceKey {
    layer: usize,
    class: usize,
    start: u64,
    since: u64,
}

/// The pieces of one layer.
#[derive(Debug, Clone)]
struct Layer {
    /// The pieces by start and time. Map N has the pieces of 2^N to 2^(N+1) - 1 bytes, so that a piece that contains an
    /// address begins at most that many bytes before it.
    classes: Vec<BTreeMap<(u64, u64), Piece>>,
    /// The pieces that have not ended, by start: the map of each, and its time.
    live: BTreeMap<u64, (usize, u64)>,
}

/// The objects of a process over time, in bounded memory.
#[derive(Debug, Clone)]
pub struct ObjectTimeline {
    layers: Vec<Layer>,
    rows: Vec<ObjectRow>,
    by_origin: HashMap<ObjectOrigin, ObjectId>,
    /// The pieces that have ended, in the order in which they ended.
    ended: VecDeque<PieceKey>,
    pieces: usize,
    limit: usize,
    /// The time of the last event. Logs of several threads may be slightly out of order: an event with an earlier time
    /// counts as one of this time.
    now: u64,
    losses: TimelineLosses,
}

impl ObjectTimeline {
    /// An empty one, with a limit for the number of pieces and for that of objects.
    pub fn new(limit: usize) -> Self {
        let layer = Layer { classes: vec![BTreeMap::new(); CLASSES], live: BTreeMap::new() };
        Self {
            layers: vec![layer; LAYERS],
            rows: Vec::new(),
            by_origin: HashMap::new(),
            ended: VecDeque::new(),
            pieces: 0,
            limit,
            now: 0,
            losses: TimelineLosses::default(),
        }
    }

    /// From this time on, these addresses are the object's. What had them in the same layer ends there: its end was not
    /// seen. `None` if there is no room, or no address.
    pub fn add(&mut self, addresses: Range<u64>, since: u64, origin: &ObjectOrigin) -> Option<ObjectId> {
        self.add_by(addresses, since, origin, None)
    }

    /// Adds a piece as [`add`](Self::add) does, allocated by this thread.
    pub fn add_by(
        &mut self,
        addresses: Range<u64>,
        since: u64,
        origin: &ObjectOrigin,
        by: Option<AllocatingThread>,
    ) -> Option<ObjectId> {
        if addresses.is_empty() {
            return None;
        }
        let layer = origin.layer();
        let since = self.advance(since);
        self.end_in(layer, addresses.clone(), since);
        let Some(object) = self.object(origin) else {
            self.losses.refused += 1;
            return None;
        };
        let bytes = addresses.end - addresses.start;
        let earlier = by.and_then(|_| self.earlier_block(addresses.start + bytes / 2)?.node);
        let node = earlier.or(by.map(|by| by.node));
        self.insert(layer, addresses, since, object, node).then(|| {
            let row = &mut self.rows[object.0];
            row.pieces += 1;
            by.into_iter().for_each(|by| row.blocks.add(by, bytes, earlier));
            object
        })
    }

    /// Adds a piece as [`add`](Self::add) does, unless the object has these addresses already.
    pub fn add_known(
        &mut self,
        addresses: Range<u64>,
        since: u64,
        origin: &ObjectOrigin,
    ) -> Option<ObjectId> {
        let known = self.find(addresses.start, self.now).filter(|known| self.rows[known.0].origin == *origin);
        known.or_else(|| self.add(addresses, since, origin))
    }

    /// An object whose addresses are not known. `None` if there is no room.
    pub fn name(&mut self, origin: &ObjectOrigin) -> Option<ObjectId> {
        self.object(origin)
    }

    /// The block that begins at this address is freed. False if none is known.
    pub fn free(&mut self, start: u64, time: u64) -> bool {
        let layer = LAYERS - 1;
        let is_known = self.layers[layer].live.contains_key(&start);
        if is_known {
            let time = self.advance(time);
            self.end(layer, start, time);
        }
        is_known
    }

    /// Ends all pieces at these addresses, since they are unmapped. Pieces of the same objects at other addresses stay.
    pub fn unmap(&mut self, addresses: &Range<u64>, time: u64) {
        let time = self.advance(time);
        for layer in 0..LAYERS {
            self.end_in(layer, addresses.clone(), time);
        }
    }

    /// The innermost object that had this address at this time.
    pub fn find(&self, address: u64, time: u64) -> Option<ObjectId> {
        self.layers.iter().rev().find_map(|layer| layer.find(address, time))
    }

    /// The file of which a mapping had this address at this time, whatever the program has told of the mapping.
    pub fn file(&self, address: u64, time: u64) -> Option<ObjectId> {
        let mapped = self.layers.first()?.find(address, time)?;
        matches!(self.rows[mapped.0].origin, ObjectOrigin::File { .. }).then_some(mapped)
    }

    /// An object of this timeline.
    pub fn row(&self, object: ObjectId) -> Option<&ObjectRow> {
        self.rows.get(object.0)
    }

    /// All objects.
    pub fn rows(&self) -> impl Iterator<Item = (ObjectId, &ObjectRow)> {
        self.rows.iter().enumerate().map(|(number, row)| (ObjectId(number), row))
    }

    /// What the timeline does not know because of its limits.
    pub fn losses(&self) -> TimelineLosses {
        self.losses
    }

    /// The lowest start that a piece of this class can have if it contains the address.
    fn lowest(address: u64, class: usize) -> u64 {
        address.saturating_sub(u64::MAX >> (CLASSES - 1 - class))
    }

    fn advance(&mut self, time: u64) -> u64 {
        self.now = self.now.max(time);
        self.now
    }

    fn object(&mut self, origin: &ObjectOrigin) -> Option<ObjectId> {
        if let Some(object) = self.by_origin.get(origin) {
            return Some(*object);
        }
        let object = ObjectId(self.rows.len());
        (self.rows.len() < self.limit).then(|| {
            let blocks = BlockOrigins::default();
            self.rows.push(ObjectRow { origin: origin.clone(), pieces: 0, bytes: 0, max_bytes: 0, blocks });
            self.by_origin.insert(origin.clone(), object);
            object
        })
    }

    fn insert(
        &mut self,
        layer: usize,
        addresses: Range<u64>,
        since: u64,
        object: ObjectId,
        node: Option<u32>,
    ) -> bool {
        if self.pieces >= self.limit && !self.drop_oldest() {
            self.losses.refused += 1;
            return false;
        }
        let bytes = addresses.end - addresses.start;
        let class = bytes.ilog2() as usize;
        let Layer { classes, live } = &mut self.layers[layer];
        classes[class]
            .insert((addresses.start, since), Piece { end: addresses.end, until: None, object, node });
        live.insert(addresses.start, (class, since));
        self.pieces += 1;
        let row = &mut self.rows[object.0];
        row.bytes = row.bytes.saturating_add(bytes);
        row.max_bytes = row.max_bytes.max(row.bytes);
        true
    }

    /// Drops the piece that ended first. False if no piece has ended.
    fn drop_oldest(&mut self) -> bool {
        let Some(PieceKey { layer, class, start, since }) = self.ended.pop_front() else { return false };
        if let Some(piece) = self.layers[layer].classes[class].remove(&(start, since)) {
            self.pieces -= 1;
            self.losses.dropped += 1;
            self.losses.dropped_until = self.losses.dropped_until.max(piece.until);
        }
        true
    }

    /// Ends the live piece with this start, and returns it.
    fn end(&mut self, layer: usize, start: u64, time: u64) -> Option<Piece> {
        let Layer { classes, live } = &mut self.layers[layer];
        let (class, since) = live.remove(&start)?;
        let piece = classes[class].get_mut(&(start, since))?;
        piece.until = Some(time);
        let ended = *piece;
        if time > since {
            self.ended.push_back(PieceKey { layer, class, start, since });
        } else {
            // The piece began at this time too, so it never had the addresses.
            classes[class].remove(&(start, since));
            self.pieces -= 1;
        }
        let row = &mut self.rows[ended.object.0];
        row.bytes = row.bytes.saturating_sub(ended.end - start);
        Some(ended)
    }

    fn end_in(&mut self, layer: usize, addresses: Range<u64>, time: u64) {
        while let Some(start) = self.layers[layer].live_within(&addresses) {
            let Some(Piece { end, object, node, .. }) = self.end(layer, start, time) else { continue };
            for rest in [start..addresses.start, addresses.end..end] {
                if rest.start < rest.end {
                    self.insert(layer, rest, time, object, node);
                }
            }
        }
    }
}

impl Layer {
    /// The start of the last live piece that has some of these addresses.
    fn live_within(&self, addresses: &Range<u64>) -> Option<u64> {
        let (start, (class, since)) = self.live.range(..addresses.end).next_back()?;
        let piece = self.classes[*class].get(&(*start, *since))?;
        (piece.end > addresses.start && !addresses.is_empty()).then_some(*start)
    }

    fn find(&self, address: u64, time: u64) -> Option<ObjectId> {
        self.piece(address, time).map(|(.., piece)| piece.object)
    }

    /// The piece that had this address at this time, with its start and the time when it began.
    fn piece(&self, address: u64, time: u64) -> Option<(u64, u64, &Piece)> {
        self.classes.iter().enumerate().find_map(|(class, pieces)| {
            if pieces.is_empty() {
                return None;
            }
            let lowest = ObjectTimeline::lowest(address, class);
            // Of the pieces with one start, only the last before that time can have been there still.
            let mut from = (address, time);
            while from >= (lowest, 0) {
                let (&(start, since), piece) = pieces.range((lowest, 0)..=from).next_back()?;
                let is_there = since <= time && piece.until.is_none_or(|until| time < until);
                if is_there && address < piece.end {
                    return Some((start, since, piece));
                }
                from = if since > time { (start, time) } else { (start.checked_sub(1)?, u64::MAX) };
            }
            None
        })
    }
}

#[cfg(test)]
mod tests;
