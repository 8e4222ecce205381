//! Hint faults: the kernel's NUMA balancing marks pages, and the next use of each is a page fault. The event of page faults
//! sees them with address, thread and CPU.

use crate::faults::PageTouch;
use crate::method::MethodError;
use numakit_model::CpuSet;
use numakit_sys::perf::record::PerfRecord;
use numakit_sys::perf::sampling::{SampleContent, SampledEvent, SampledRings, SampledTasks, SamplingRequest};

/// Pages of the ring of a CPU: 10,000 faults. Drained every 5 ms, that is 2 million a second.
const PAGES: usize = 128;

/// The page faults of everything that runs on some CPUs, which root may see. These include first touches: the caller must
/// know which pages were in memory before.
#[derive(Debug)]
pub struct HintFaultRings {
    rings: SampledRings,
    lost: u64,
}

impl HintFaultRings {
    /// Opens the rings of these CPUs.
    pub fn open(cpus: &CpuSet) -> Result<Self, MethodError> {
        let rings = SampledRings::open(&SamplingRequest {
            events: &[SampledEvent::page_faults(1)],
            tasks: SampledTasks::Machine(cpus),
            content: SampleContent::Address,
            pages: PAGES,
        })?;
        Ok(Self { rings, lost: 0 })
    }

    /// Takes the faults since the last call.
    pub fn drain(&mut self, take: &mut dyn FnMut(PageTouch)) {
        let Self { rings, lost } = self;
        rings.drain(&mut |record, _| match record {
            PerfRecord::Sample(raw) => PageTouch::of(raw).into_iter().for_each(&mut *take),
            PerfRecord::Lost(records) => *lost += records,
            _ => {}
        });
    }

    /// Faults that found no room.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::loops::{Advice, Region};

    #[test]
    fn measuring_faults_of_the_machine_are_seen_with_address_and_cpu() {
        let cpus = numakit_sys::sched::affinity().unwrap();
        let mut rings = match HintFaultRings::open(&cpus) {
            Ok(rings) => rings,
            Err(error) => return numakit_skips::PRIVILEGES.skip(error),
        };
        // Small pages: each has a fault of its own.
        let (pages, page) = (300, numakit_sys::sched::page_size());
        let mut block = Region::map(pages * page as usize).unwrap();
        block.advise(Advice::Small).unwrap();
        let start = block.doubles().as_ptr() as u64;
        let range = start..start + pages as u64 * page;
        block.touch(page as usize);
        let mut seen = 0;
        rings.drain(&mut |used| {
            let is_own = used.process == std::process::id() && range.contains(&used.address);
            seen += usize::from(is_own && used.cpu.is_some() && used.time > 0);
        });
        assert_eq!((seen, rings.lost()), (pages, 0));
    }
}
