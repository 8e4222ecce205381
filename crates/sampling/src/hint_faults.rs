//! Hint faults: the kernel's NUMA balancing marks pages, and the next use of each is a page fault. The event of page faults
//! sees them with address, thread and CPU.

use crate::faults::PageTouch;
use crate::road::RoadError;
use numakit_model::CpuSet;
use numakit_sys::perf::record::PerfRecord;
use numakit_sys::perf::sampling::{SampleContent, SampledEvent, SampledRings, SampledTasks, SamplingRequest};

/// Pages of the ring of a CPU: 10,000 faults. Drained every 5 ms, that is 2 million a second.
const PAGES: usize = 128;

/// The page faults of everything on some CPUs, which root may see. First touches are among them: who takes them knows the
/// pages that were in memory before.
#[derive(Debug)]
pub struct HintFaultRings {
    rings: SampledRings,
    lost: u64,
}

impl HintFaultRings {
    /// Opens them.
    pub fn open(cpus: &CpuSet) -> Result<Self, RoadError> {
        let rings = SampledRings::open(&SamplingRequest {
            events: &[SampledEvent::page_faults(1)],
            tasks: SampledTasks::Machine(cpus),
            content: SampleContent::Address,
            pages: PAGES,
        })?;
        Ok(Self { rings, lost: 0 })
    }

    /// Takes those since the last call.
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

    #[test]
    fn faults_of_the_machine_are_seen_with_address_and_cpu() {
        let cpus = numakit_sys::sched::affinity().unwrap();
        let mut rings = match HintFaultRings::open(&cpus) {
            Ok(rings) => rings,
            Err(error) => return numakit_skips::PRIVILEGES.skip(error),
        };
        let block = std::hint::black_box(vec![1u8; 300 * 4096]);
        let range = block.as_ptr() as u64..block.as_ptr() as u64 + block.len() as u64;
        let mut seen = 0;
        rings.drain(&mut |used| {
            let is_own = used.process == std::process::id() && range.contains(&used.address);
            seen += usize::from(is_own && used.cpu.is_some() && used.time > 0);
        });
        assert!(seen > 0 && rings.lost() == 0, "{seen}");
    }
}
