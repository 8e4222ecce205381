//! The pieces of an object, whenever they were there.

use super::{ObjectId, ObjectTimeline};
use std::ops::Range;

impl ObjectTimeline {
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
