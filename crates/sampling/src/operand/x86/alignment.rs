//! Which instructions stand before an address. Instructions have no marks at their start, so the bytes before the address
//! are decoded from each of them: decodings from wrong starts meet the true instructions after a few steps, so that most
//! decodings run through the true instructions.

use super::code::{Code, LONGEST, PAGE, decode};
use crate::operand::AddressSpace;
use std::cmp::Reverse;

/// Bytes before the address that are decoded.
const WINDOW: usize = 128;
/// Instructions nearer to the start of the window than this have met too few others.
const MARGIN: usize = 48;

/// The starts of the instructions before an address, the nearest first. Empty if no decoding arrives there.
pub fn starts_before(address: u64, code: &mut Code, space: &dyn AddressSpace) -> Vec<u64> {
    let mut buffer = [0; WINDOW + LONGEST];
    let mut from = address.saturating_sub(WINDOW as u64);
    let mut count = code.bytes(from, &mut buffer, space);
    // Mappings begin with a page.
    if count == 0 {
        from = address & !(PAGE - 1);
        count = code.bytes(from, &mut buffer, space);
    }
    let Ok(end) = usize::try_from(address - from) else { return Vec::new() };
    if count < end {
        return Vec::new();
    }
    let mut lengths = [0u8; WINDOW];
    let mut support = [0u32; WINDOW + 1];
    for at in 0..end {
        let Some(raw) = decode(&buffer[at..count], from + at as u64) else { continue };
        let next = at + raw.len();
        if next > end {
            continue;
        }
        lengths[at] = raw.len() as u8;
        support[next] = support[next].saturating_add(support[at]).saturating_add(1);
    }
    let margin = if end == WINDOW { MARGIN } else { 0 };
    chain(&lengths[..end], &support, end, margin).into_iter().map(|at| from + at as u64).collect()
}

/// The instructions from the end backward. Of the instructions that may stand before the next one, the one through which
/// most decodings run is taken; among equals the longest, since an instruction without its prefix is an instruction too.
fn chain(lengths: &[u8], support: &[u32], end: usize, margin: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut next = end;
    while next > margin {
        let first = next.saturating_sub(LONGEST);
        let before = (first..next).filter(|&at| at + usize::from(lengths[at]) == next && lengths[at] > 0);
        let Some(best) = before.max_by_key(|&at| (support[at], Reverse(at))) else { break };
        found.push(best);
        next = best;
    }
    found
}
