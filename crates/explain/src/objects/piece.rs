//! The pieces of an object, whenever they were there.

use super::{ObjectId, ObjectTimeline};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// A piece of an object, such as one of its blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectBlock {
    /// Its addresses.
    pub addresses: Range<u64>,
    /// When it began.
    pub since: u64,
}

impl ObjectTimeline {
    /// The piece of an object that had an address at a time; the last one that had it if the object was found later.
    pub fn block_at(&self, object: ObjectId, address: u64, time: u64) -> Option<ObjectBlock> {
        let layer = &self.layers[self.row(object)?.origin.layer()];
        let at = |time: u64| layer.piece(address, time).filter(|(.., piece)| piece.object == object);
        let (start, since, piece) = at(time).or_else(|| at(u64::MAX - 1))?;
        Some(ObjectBlock { addresses: start..piece.end, since })
    }

    /// For each of these objects the numbers of its pieces in the order in which they began, by time and first address.
    pub fn numbered(&self, objects: &HashSet<ObjectId>) -> HashMap<ObjectId, HashMap<(u64, u64), u64>> {
        let mut begins: HashMap<ObjectId, Vec<(u64, u64)>> = HashMap::new();
        for ((start, since), piece) in self.layers.iter().flat_map(|layer| &layer.classes).flatten() {
            if objects.contains(&piece.object) {
                begins.entry(piece.object).or_default().push((*since, *start));
            }
        }
        let numbered = |(object, mut begins): (ObjectId, Vec<(u64, u64)>)| {
            begins.sort_unstable();
            (object, begins.into_iter().zip(0..).collect())
        };
        begins.into_iter().map(numbered).collect()
    }

    /// The piece of an object that had this address at some time; `None` if different pieces of the object had it at
    /// different times.
    pub fn piece_of(&self, object: ObjectId, address: u64) -> Option<Range<u64>> {
        let layer = &self.layers[self.row(object)?.origin.layer()];
        let mut found = layer.classes.iter().enumerate().flat_map(|(class, pieces)| {
            let lowest = Self::lowest(address, class);
            let here = pieces.range((lowest, 0)..=(address, u64::MAX));
            here.filter(move |(_, piece)| piece.object == object && address < piece.end)
                .map(|((start, _), piece)| *start..piece.end)
        });
        let first = found.next()?;
        found.all(|other| other.start == first.start).then_some(first)
    }
}
