//! The flags that arithmetic leaves, and the conditions that read them.

use crate::operand::memory::truncate;
use iced_x86::ConditionCode;

pub const CARRY: u64 = 1;
pub const PARITY: u64 = 1 << 2;
pub const ZERO: u64 = 1 << 6;
pub const SIGN: u64 = 1 << 7;
pub const DIRECTION: u64 = 1 << 10;
pub const OVERFLOW: u64 = 1 << 11;
/// The flags that conditions read.
pub const STATUS: u64 = CARRY | PARITY | ZERO | SIGN | OVERFLOW;

/// A result with the flags that it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    pub value: u64,
    pub flags: u64,
}

fn sign(value: u64, bytes: usize) -> bool {
    bytes != 0 && value >> (8 * bytes.min(8) - 1) & 1 == 1
}

/// The flags that depend on the result alone.
fn of_result(value: u64, bytes: usize) -> u64 {
    let mut flags = 0;
    if value == 0 {
        flags |= ZERO;
    }
    if sign(value, bytes) {
        flags |= SIGN;
    }
    if (value as u8).count_ones().is_multiple_of(2) {
        flags |= PARITY;
    }
    flags
}

/// a + b + carry.
pub fn add(a: u64, b: u64, carry: bool, bytes: usize) -> Outcome {
    let (a, b) = (truncate(a, bytes), truncate(b, bytes));
    let wide = u128::from(a) + u128::from(b) + u128::from(carry);
    let value = truncate(wide as u64, bytes);
    let mut flags = of_result(value, bytes);
    if wide >> (8 * bytes) != 0 {
        flags |= CARRY;
    }
    if sign((a ^ value) & (b ^ value), bytes) {
        flags |= OVERFLOW;
    }
    Outcome { value, flags }
}

/// a - b - borrow.
pub fn subtract(a: u64, b: u64, borrow: bool, bytes: usize) -> Outcome {
    let (a, b) = (truncate(a, bytes), truncate(b, bytes));
    let value = truncate(a.wrapping_sub(b).wrapping_sub(u64::from(borrow)), bytes);
    let mut flags = of_result(value, bytes);
    if u128::from(a) < u128::from(b) + u128::from(borrow) {
        flags |= CARRY;
    }
    if sign((a ^ b) & (a ^ value), bytes) {
        flags |= OVERFLOW;
    }
    Outcome { value, flags }
}

/// The result of and, or, xor.
pub fn logic(value: u64, bytes: usize) -> Outcome {
    let value = truncate(value, bytes);
    Outcome { value, flags: of_result(value, bytes) }
}

/// Whether the flags fulfil a condition.
pub fn fulfils(flags: u64, condition: ConditionCode) -> Option<bool> {
    let has = |flag| flags & flag != 0;
    let less = has(SIGN) != has(OVERFLOW);
    Some(match condition {
        ConditionCode::None => return None,
        ConditionCode::o => has(OVERFLOW),
        ConditionCode::no => !has(OVERFLOW),
        ConditionCode::b => has(CARRY),
        ConditionCode::ae => !has(CARRY),
        ConditionCode::e => has(ZERO),
        ConditionCode::ne => !has(ZERO),
        ConditionCode::be => has(CARRY) || has(ZERO),
        ConditionCode::a => !has(CARRY) && !has(ZERO),
        ConditionCode::s => has(SIGN),
        ConditionCode::ns => !has(SIGN),
        ConditionCode::p => has(PARITY),
        ConditionCode::np => !has(PARITY),
        ConditionCode::l => less,
        ConditionCode::ge => !less,
        ConditionCode::le => less || has(ZERO),
        ConditionCode::g => !less && !has(ZERO),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Conditions after a comparison say what the numbers are.
        #[test]
        fn comparisons_compare(a: u64, b: u64, size in 0usize..4, close in 0u64..3) {
            let bytes = 1 << size;
            let b = if close == 0 { b } else { a.wrapping_add(close - 1) };
            let (a, b) = (truncate(a, bytes), truncate(b, bytes));
            let signed = |v| crate::operand::memory::extend(v, bytes) as i64;
            let flags = subtract(a, b, false, bytes).flags;
            let holds = |condition| fulfils(flags, condition).unwrap();
            prop_assert_eq!(holds(ConditionCode::e), a == b);
            prop_assert_eq!(holds(ConditionCode::b), a < b);
            prop_assert_eq!(holds(ConditionCode::a), a > b);
            prop_assert_eq!(holds(ConditionCode::be), a <= b);
            prop_assert_eq!(holds(ConditionCode::l), signed(a) < signed(b));
            prop_assert_eq!(holds(ConditionCode::ge), signed(a) >= signed(b));
            prop_assert_eq!(holds(ConditionCode::g), signed(a) > signed(b));
        }

        /// Sums and differences in parts of registers are those of wide numbers, and undo one another.
        #[test]
        fn sums_are_those_of_wide_numbers(a: u64, b: u64, carry: bool, size in 0usize..4) {
            let bytes = 1 << size;
            let (a, b) = (truncate(a, bytes), truncate(b, bytes));
            let sum = add(a, b, carry, bytes);
            let wide = u128::from(a) + u128::from(b) + u128::from(carry);
            prop_assert_eq!(u128::from(sum.value), wide & ((1 << (8 * bytes)) - 1));
            prop_assert_eq!(sum.flags & CARRY != 0, wide >> (8 * bytes) != 0);
            let signed = |v| i128::from(crate::operand::memory::extend(v, bytes) as i64);
            let exact = signed(a) + signed(b) + i128::from(carry);
            prop_assert_eq!(sum.flags & OVERFLOW != 0, exact != signed(sum.value));
            prop_assert_eq!(subtract(sum.value, b, carry, bytes).value, a);
        }
    }
}
