//! Simulated NumaConnect2 cards: files with their registers.

use numakit_sys::root::FileTree;

/// The windows of cards, each a file whose name is its address.
const FOLDER: &str = "/dev/mem";
/// The window of the card that the CPUs of the first board see.
const LOCAL: u64 = 0xf000_0000;
const LENGTH: usize = 0x4000;
const IDENTITY: u32 = 0x0700_1b47;
/// Bits 4-15: position of the first card.
const FIRST: usize = 0x10a4;
/// Bits 0-11: position of the next card; bits 12-14: the link.
const NEXT: usize = 0x10a8;
/// The position after the last card.
const LAST: u32 = 0xfff;
/// The control register, and its value while the counters count.
const CONTROL: (usize, u32) = (0x3058, 5);
/// Counters of 48 bits, in words of 64.
const COUNTERS: std::ops::Range<usize> = 0x3100..0x3690;
const BITS: u8 = 48;

/// The HyperTransport link of these cards.
const LINK: u32 = 2;
/// Positions in the fabric from one card to the next.
const STEP: u32 = 0x10;

/// Adds this many cards to a machine. Their counters have the values of [`counter_value`] after
/// `steps` steps; they start shortly before they wrap. To advance, put the cards again.
pub fn put(tree: &mut FileTree, count: u32, steps: u64) {
    let position = |card: u32| if card < count { card * STEP } else { LAST };
    tree.file(&format!("{FOLDER}/{LOCAL:#x}.bin"), window(0, position(0), steps));
    for card in 0..count {
        let address = 0x3f00_0000_0000 | u64::from(position(card)) << 28 | (23 + u64::from(LINK)) << 15;
        tree.file(&format!("{FOLDER}/{address:#x}.bin"), window(card, position(card + 1), steps));
    }
}

/// The increment of the counter at this register per step: 200,000 (1 ms) for the clock, a
/// different number for each other counter.
pub fn step(card: u32, register: usize) -> u64 {
    match (register - COUNTERS.start) / 8 {
        0 => 200_000,
        counter => 1000 * u64::from(card) + counter as u64,
    }
}

/// The value of the counter at this register after N steps.
pub fn counter_value(card: u32, register: usize, steps: u64) -> u64 {
    let step = step(card, register);
    let start = (1u64 << BITS) - 3 * step;
    start.wrapping_add(steps.wrapping_mul(step)) & ((1 << BITS) - 1)
}

fn window(card: u32, next: u32, steps: u64) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH];
    let mut set = |offset: usize, word: u32| {
        if let Some(place) = bytes.get_mut(offset..offset + 4) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    };
    set(0, IDENTITY);
    // Only the local card's register is read: the first card is at position 0.
    set(FIRST, 0);
    set(NEXT, LINK << 12 | next);
    set(CONTROL.0, CONTROL.1);
    for register in COUNTERS.step_by(8) {
        let value = counter_value(card, register, steps);
        set(register, value as u32);
        set(register + 4, (value >> 32) as u32);
    }
    bytes
}
