//! A round of AES, as its instruction does it: hash functions take the place of an entry from it.

/// The lowest bits of the polynomial by which bytes are multiplied.
const POLYNOMIAL: u8 = 0x1b;

/// What AESENC makes of a state and a key.
pub fn round(state: u128, key: u128) -> u128 {
    let bytes = state.to_le_bytes();
    let mut mixed = [0; 16];
    for column in 0..4 {
        // Each row was turned by its number.
        let s = [0, 1, 2, 3].map(|row| substituted(bytes[(4 * (column + row) + row) % 16]));
        for row in 0..4 {
            let next = |by: usize| s[(row + by) % 4];
            mixed[4 * column + row] = product(s[row], 2) ^ product(next(1), 3) ^ next(2) ^ next(3);
        }
    }
    u128::from_le_bytes(mixed) ^ key
}

/// The byte's inverse, with its bits mixed.
fn substituted(byte: u8) -> u8 {
    // Of 255 powers the last is 1, so the one before is the inverse.
    let inverse = (0..254).fold(1, |power, _| product(power, byte));
    let turned = (1..5).map(|by| inverse.rotate_left(by));
    turned.fold(inverse ^ 0x63, |all, bits| all ^ bits)
}

fn product(a: u8, b: u8) -> u8 {
    let doubled = |value: u8| value << 1 ^ if value & 0x80 == 0 { 0 } else { POLYNOMIAL };
    let mut power = a;
    let mut sum = 0;
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            sum ^= power;
        }
        power = doubled(power);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Intel's description of the instruction, and the ends of the table of bytes.
    #[test]
    fn a_round_is_that_of_the_processor() {
        let (state, key) =
            (0x7b5b_5465_7374_5665_6374_6f72_5d53_475d, 0x4869_2853_6861_7929_5b47_7565_726f_6e5d);
        assert_eq!(round(state, key), 0xa831_1c2f_9fdb_a3c5_8b10_4b58_ded7_e595);
        assert_eq!([0, 1, 0x53, 0xff].map(substituted), [0x63, 0x7c, 0xed, 0x16]);
    }
}
