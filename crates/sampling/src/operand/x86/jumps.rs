//! The jumps in a page of code: which instructions are labels.

use super::code::{Code, LONGEST, PAGE, decode, target};
use super::instruction::Flow;
use crate::operand::AddressSpace;
use std::collections::HashMap;

/// Bytes before the page from which decoding starts, so that it is aligned where the page begins.
const LEAD: u64 = 64;

/// The jumps that stand in a page.
#[derive(Debug, Default)]
pub struct Jumps {
    /// Jumps by their target.
    to: HashMap<u64, Vec<u64>>,
    /// Jumps through memory.
    pub through_memory: Vec<u64>,
}

impl Jumps {
    /// Decodes a page from before its start on. Decoding that started at a wrong byte is aligned after a few
    /// instructions.
    pub fn of_page(start: u64, code: &mut Code, space: &dyn AddressSpace) -> Self {
        let mut found = Self::default();
        let mut buffer = vec![0; LEAD as usize + PAGE as usize + LONGEST];
        let mut from = start.saturating_sub(LEAD);
        let mut count = code.bytes(from, &mut buffer, space);
        if count < LEAD as usize {
            from = start;
            count = code.bytes(from, &mut buffer, space);
        }
        let mut at = 0;
        while at < count && from + (at as u64) < start + PAGE {
            let Some(raw) = decode(&buffer[at..count], from + at as u64) else {
                at += 1;
                continue;
            };
            if raw.ip() >= start {
                match target(&raw) {
                    Some(Flow::Jump(to) | Flow::Conditional(to)) => {
                        found.to.entry(to).or_default().push(raw.ip());
                    }
                    Some(_) if raw.op0_kind() == iced_x86::OpKind::Memory => {
                        found.through_memory.push(raw.ip());
                    }
                    _ => {}
                }
            }
            at += raw.len();
        }
        found
    }

    /// The jumps to an address.
    pub fn to(&self, address: u64) -> &[u64] {
        self.to.get(&address).map_or(&[], Vec::as_slice)
    }
}
