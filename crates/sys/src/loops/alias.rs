//! Loads that follow stores to other memory whose addresses have the same low bits.

use super::Region;
use std::io;

/// Two addresses look alike if they are equal modulo this number of bytes.
const PERIOD: usize = 4096;
const STEP: usize = size_of::<usize>();
/// Where the loads begin; the stores are before it.
const LOADS: usize = 2 * PERIOD;

/// Memory that is stored to, and other memory, which stays zero, that is loaded from.
#[derive(Debug)]
pub struct StoresAndLoads {
    region: Region,
}

impl StoresAndLoads {
    /// Maps the memory of stores and that of loads. All pages are there afterwards.
    pub fn map() -> io::Result<Self> {
        let mut region = Region::map(LOADS + 2 * PERIOD)?;
        region.doubles_mut().fill(0.0);
        Ok(Self { region })
    }

    /// Stores to each word of 4 KiB. After each store, loads a word of other memory: the one that is `offset` ahead, modulo
    /// 4 KiB and rounded down to a word. Each load needs the result of the load before, and each store that of the last
    /// load. Returns the number of stores.
    pub fn pass(&mut self, offset: usize) -> usize {
        let (to, from) =
            (self.region.start(), self.region.start().wrapping_add(LOADS + offset % PERIOD / STEP * STEP));
        let mut value: usize = 0;
        for at in (0..PERIOD).step_by(STEP) {
            // SAFETY: stores are below `PERIOD`; loads are between `LOADS` and the region's end, as their memory has only zeros
            // and nobody else can write it: the value that is added is zero.
            unsafe {
                to.add(at).cast::<usize>().write_volatile(value);
                value = from.add(at).add(value).cast::<usize>().read_volatile();
            }
        }
        PERIOD / STEP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_stored_to_and_those_that_are_loaded_stay_zero() {
        let mut memory = StoresAndLoads::map().unwrap();
        let words = PERIOD / STEP;
        memory.region.doubles_mut()[..words].fill(1.0);
        for offset in [0, 8, 4095, 4096, usize::MAX] {
            assert_eq!(memory.pass(offset), words);
        }
        assert!(memory.region.doubles().iter().all(|word| *word == 0.0));
    }
}
