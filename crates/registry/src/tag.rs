//! What programs of a registry are told by, also where it is not there any more.

use crate::record::fnv;
use numakit_sys::{clock, tag};

/// Bits that tell one program of a registry from another.
const PROGRAM: u32 = 28;
/// Bits that tell one registry from another.
const REGISTRY: u64 = (1 << 20) - 1;

/// A tag that no other program of the registry of this identity has.
pub fn fresh(identity: u64) -> u64 {
    let process = u64::from(std::process::id()).to_le_bytes();
    let program = fnv(process.into_iter().chain(clock::utc().to_le_bytes()));
    tag::of_number((identity & REGISTRY) << PROGRAM | program & ((1 << PROGRAM) - 1))
}

/// Whether a program is of one of these registries.
pub fn is_of(tag: u64, identities: &[u64]) -> bool {
    identities.iter().any(|identity| tag >> PROGRAM & REGISTRY == identity & REGISTRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_tells_its_registry_and_no_other_program_has_it() {
        let tags = [7, 7, 8].map(fresh);
        assert!(tags[0] != tags[1] && is_of(tags[0], &[1, 7]) && is_of(tags[1], &[7]));
        assert!(!is_of(tags[2], &[7]) && !is_of(tags[0], &[]));
    }
}
