//! The jumps in a page of code: which instructions are labels.

use super::code::{Code, LONGEST, PAGE, decode, target};
use super::instruction::Flow;
use crate::operand::AddressSpace;

/// Bytes before the page from which decoding starts, so that it is aligned where the page begins.
const LEAD: u64 = 64;
/// Pages before and behind a page whose jumps to it are known.
pub const NEAR: u64 = 2;
/// Bytes before a page where a jump that is kept may lead. Targets are kept as numbers from there on.
const BEFORE: u64 = NEAR * PAGE;
const REACHED: u64 = (2 * NEAR + 1) * PAGE;

/// The jumps that stand in a page.
#[derive(Debug, Default)]
pub struct Jumps {
    start: u64,
    /// The target and the place of each jump that leads near the page, in bytes from the start of what is near and of the page;
    /// sorted.
    to: Box<[(u16, u16)]>,
    /// Jumps through memory.
    pub through_memory: Box<[u64]>,
}

impl Jumps {
    /// Decodes a page from before its start on. Decoding that started at a wrong byte is aligned after a few
    /// instructions.
    pub fn of_page(start: u64, code: &mut Code, space: &dyn AddressSpace) -> Self {
        let (mut near, mut through_memory) = (Vec::new(), Vec::new());
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
                        near.extend(distance(start, to).map(|to| (to, (raw.ip() - start) as u16)));
                    }
                    Some(_) if raw.op0_kind() == iced_x86::OpKind::Memory => through_memory.push(raw.ip()),
                    _ => {}
                }
            }
            at += raw.len();
        }
        near.sort_unstable();
        Self { start, to: near.into(), through_memory: through_memory.into() }
    }

    /// The jumps to an address, which is at most [`NEAR`] pages away.
    pub fn to(&self, address: u64) -> impl Iterator<Item = u64> + '_ {
        let wanted = distance(self.start, address);
        let first = wanted.map_or(self.to.len(), |wanted| self.to.partition_point(|(to, _)| *to < wanted));
        let those = self.to.iter().skip(first).take_while(move |(to, _)| Some(*to) == wanted);
        those.map(|(_, from)| self.start + u64::from(*from))
    }
}

/// Where an address is near the page that starts there; `None` if it is far.
fn distance(start: u64, address: u64) -> Option<u16> {
    let bytes = address.wrapping_add(BEFORE).wrapping_sub(start);
    (bytes < REACHED).then_some(bytes as u16)
}
