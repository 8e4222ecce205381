//! CPU and node sets as the kernel writes them.

use numakit_model::CpuSet;

/// `0-3,8`: a parsed list prints and parses to the same set.
pub fn list(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let Ok(set) = CpuSet::parse_list(&text) else { return false };
    assert_eq!(CpuSet::parse_list(&set.to_string()), Ok(set));
    true
}

/// `ffff,00000001`.
pub fn mask(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let Ok(set) = CpuSet::parse_mask(&text) else { return false };
    assert_eq!(set.len(), set.iter().count());
    true
}
