//! The base page size.

use crate::reader::Reader;
use numakit_sys::proc::TaskDir;

/// The page size that is assumed for captures that do not have it.
const DEFAULT: u64 = 4096;
const AT_PAGESZ: u64 = 6;

/// Reads the page size: of this machine from the system, of a capture from its auxiliary vector.
pub(crate) fn read(reader: &mut Reader<'_>) -> u64 {
    if reader.root.is_host() {
        return numakit_sys::sched::page_size();
    }
    // Not through `bytes`, which would trim zeros of the vector.
    TaskDir::own(reader.root).bytes("auxv").ok().and_then(|vector| of_vector(&vector)).unwrap_or(DEFAULT)
}

/// The page size in an auxiliary vector of 64-bit words.
pub fn of_vector(vector: &[u8]) -> Option<u64> {
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or(0);
    let pairs = vector.chunks_exact(16).map(|pair| (word(&pair[..8]), word(&pair[8..])));
    let size = pairs.take_while(|(key, _)| *key != 0).find(|(key, _)| *key == AT_PAGESZ)?.1;
    (size.is_power_of_two() && (512..=1 << 30).contains(&size)).then_some(size)
}

/// An auxiliary vector with only the page size: the rest of a real one is about the process.
pub fn vector_of(size: u64) -> Vec<u8> {
    [AT_PAGESZ, size, 0, 0].into_iter().flat_map(u64::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_says_the_page_size() {
        assert_eq!(of_vector(&vector_of(65536)), Some(65536));
        assert_eq!(of_vector(&vector_of(65535)), None);
        assert_eq!(of_vector(b""), None);
        assert_eq!(of_vector(&[0; 64]), None);
        assert_eq!(of_vector(&[6; 15]), None);
    }
}
