//! Maps with addresses as keys: a look-up costs a multiplication.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map with addresses as keys. Its hash is simple: the addresses are those of one observed program, which could only make
/// its own look-ups slow.
pub(crate) type AddressMap<T> = HashMap<u64, T, BuildHasherDefault<AddressHasher>>;

/// Spreads an address over all bits.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The map takes its place from the lowest bits and a tag from the highest.
        self.0 = mixed ^ mixed >> 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::Hash;

    #[test]
    fn neighbours_get_different_places() {
        let place = |address: u64| {
            let mut hasher = AddressHasher::default();
            address.hash(&mut hasher);
            hasher.finish() % 4096
        };
        for step in [1u64, 4, 16, 64, 4096, 1 << 21] {
            let places: HashSet<u64> = (0..2048).map(|n| place(0x7f00_0000_0000 + n * step)).collect();
            // Of numbers without pattern 1,611 would differ.
            assert!(places.len() > 1200, "{step}: {}", places.len());
        }
    }
}
