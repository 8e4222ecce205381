//! NumaConnect2 cards that do not exist, as files of their registers.

use crate::numaconnect2::find::{FOLDER, LOCAL, address};
use crate::numaconnect2::registers::{BITS, CONTROL, FIRST, IDENTITY, LAST, LENGTH, NEXT, RUN};
use crate::numaconnect2::table::COUNTERS;
use numakit_sys::root::Tree;

/// The HyperTransport link of fabricated cards.
const LINK: u32 = 2;
/// Positions in the fabric from one card to the next.
const STEP: u32 = 0x10;

/// Gives a machine so many cards. Their counters stand where [`counted`] has them `steps` steps
/// after a start shortly before they wrap; cards put again with more steps have gone on.
pub fn cards(tree: &mut Tree, count: u32, steps: u64) {
    let position = |card: u32| if card < count { card * STEP } else { LAST };
    tree.file(&format!("{FOLDER}/{LOCAL:#x}.bin"), window(0, position(0), steps));
    for card in 0..count {
        let content = window(card, position(card + 1), steps);
        tree.file(&format!("{FOLDER}/{:#x}.bin", address(position(card), LINK)), content);
    }
}

/// What a counter of a fabricated card stands at: each goes on by its own number with every step,
/// the clock by 200,000 (1 ms).
pub fn counted(card: u32, counter: usize, steps: u64) -> u64 {
    let step = if counter == 0 { 200_000 } else { 1000 * u64::from(card) + counter as u64 };
    let start = (1u64 << BITS) - 3 * step;
    start.wrapping_add(steps.wrapping_mul(step)) & ((1 << BITS) - 1)
}

fn window(card: u32, next: u32, steps: u64) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH];
    let mut put = |offset: usize, word: u32| {
        if let Some(place) = bytes.get_mut(offset..offset + 4) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    };
    put(0, IDENTITY);
    // Only that of the local card tells where the first one is: at position 0.
    put(FIRST, 0);
    put(NEXT, LINK << 12 | next);
    put(CONTROL, RUN);
    for (at, counter) in COUNTERS.iter().enumerate() {
        let value = counted(card, at, steps);
        put(counter.register, value as u32);
        put(counter.register + 4, (value >> 32) as u32);
    }
    bytes
}
