//! The flags that arithmetic leaves, and the conditions that read them.

use super::state::truncate;
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
