//! The decoders of the observed processes.

use numakit_sampling::operand::Decoder;
use std::collections::HashMap;

/// A decoder for each process. What they keep of code is bounded if a limit is set: where programs come and go, as under a compiler,
/// each sample is at new code.
#[derive(Debug, Default)]
pub struct Decoders {
    all: HashMap<u32, Decoder>,
    /// Bytes that all may keep.
    limit: Option<usize>,
    /// Bytes that they keep, but for what the last one has read since.
    size: usize,
    /// The one that was used last, and its size before.
    last: Option<(u32, usize)>,
}

impl Decoders {
    /// No decoders yet, which may keep this number of bytes.
    pub fn bounded(limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// The decoder of a process. When all keep more than they may, all begin anew.
    pub fn of(&mut self, process: u32) -> &mut Decoder {
        self.count_last();
        if self.limit.is_some_and(|limit| self.size > limit) {
            self.all = HashMap::new();
            self.size = 0;
        }
        let decoder = self.all.entry(process).or_default();
        self.last = self.limit.map(|_| (process, decoder.size()));
        decoder
    }

    /// Forgets the code of a process.
    pub fn forget(&mut self, process: u32) {
        self.count_last();
        let size = self.all.remove(&process).map_or(0, |decoder| decoder.size());
        self.size = self.size.saturating_sub(size);
    }

    fn count_last(&mut self) {
        let Some((process, before)) = self.last.take() else { return };
        let now = self.all.get(&process).map_or(0, Decoder::size);
        self.size = (self.size + now).saturating_sub(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sampling::operand::{AddressSpace, Landing, X86Registers};

    /// Code without an end: loads, each from another register.
    #[derive(Debug)]
    struct Loads;

    impl AddressSpace for Loads {
        fn code(&self, address: u64, into: &mut [u8]) -> usize {
            let load = [0x48, 0x8b, 0x03, 0x90];
            (address..).zip(into.iter_mut()).for_each(|(at, byte)| *byte = load[(at % 4) as usize]);
            into.len()
        }

        fn read(&self, _: u64, _: &mut [u8]) -> bool {
            false
        }
    }

    #[test]
    fn what_is_kept_of_code_is_bounded_if_there_is_a_limit() {
        let look = |decoders: &mut Decoders, process: u32, page: u64| {
            let registers = X86Registers { ip: 0x40_0000 + page * 4096, ..X86Registers::default() };
            decoders.of(process).recover(&registers, &Loads, Landing::Behind);
        };
        let (mut bounded, mut free) = (Decoders::bounded(200_000), Decoders::default());
        let mut largest = 0;
        for n in 0..400 {
            look(&mut bounded, n % 7, u64::from(n) * 16);
            look(&mut free, n % 7, u64::from(n) * 16);
            largest = largest.max(bounded.all.values().map(Decoder::size).sum());
        }
        let all: usize = free.all.values().map(Decoder::size).sum();
        assert!(all > 5_000_000, "{all}");
        // A sample reads some pages.
        assert!((100_000..300_000).contains(&largest), "{largest}");
        bounded.count_last();
        assert_eq!(bounded.size, bounded.all.values().map(Decoder::size).sum::<usize>());
        (0..7).for_each(|process| bounded.forget(process));
        assert_eq!((bounded.size, bounded.all.len()), (0, 0));
    }
}
