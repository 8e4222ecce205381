//! Tags, by which the programs of a registry are recognised even if its file was removed.

use crate::record::fnv;
use numakit_sys::{clock, tag};

/// Number of bits that identify the program.
const PROGRAM: u32 = 28;
/// Mask of the bits that identify the registry.
const REGISTRY: u64 = (1 << 20) - 1;

/// A new tag for a program of the registry of this identity.
pub fn new(identity: u64) -> u64 {
    let process = u64::from(std::process::id()).to_le_bytes();
    let program = fnv(process.into_iter().chain(clock::utc().to_le_bytes()));
    tag::of_number((identity & REGISTRY) << PROGRAM | program & ((1 << PROGRAM) - 1))
}

/// Whether a tag belongs to one of these registries.
pub fn is_of(tag: u64, identities: &[u64]) -> bool {
    identities.iter().any(|identity| tag >> PROGRAM & REGISTRY == identity & REGISTRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_unique_and_identifies_its_registry() {
        let tags = [7, 7, 8].map(new);
        assert!(tags[0] != tags[1] && is_of(tags[0], &[1, 7]) && is_of(tags[1], &[7]));
        assert!(!is_of(tags[2], &[7]) && !is_of(tags[0], &[]));
    }
}
