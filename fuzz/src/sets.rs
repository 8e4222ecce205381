//! CPU and node sets as the kernel writes them.

use numakit_model::CpuSet;

/// `0-3,8`: a parsed list prints and parses to the same set.
pub fn list(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(set) = CpuSet::parse_list(&text) {
        assert_eq!(CpuSet::parse_list(&set.to_string()), Ok(set));
    }
}

/// `ffff,00000001`.
pub fn mask(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(set) = CpuSet::parse_mask(&text) {
        assert_eq!(set.len(), set.iter().count());
    }
}
