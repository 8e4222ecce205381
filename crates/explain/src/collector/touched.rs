//! Page faults and call chains.

use super::{Collector, ObservedProcesses};
use crate::call_tree::NO_CHAIN;
use crate::first_touch::FaultingThread;
use numakit_sampling::StackPiece;
use numakit_sampling::faults::FaultSample;
use numakit_sys::registers::UserRegisters;

impl Collector {
    /// Adds a page fault, and returns whose it is.
    pub fn touch(&mut self, fault: &FaultSample, processes: &mut dyn ObservedProcesses) -> FaultingThread {
        let node = fault.cpu.and_then(|cpu| processes.node_of_cpu(cpu));
        let chain = self.chain(fault.process, &fault.registers, &fault.stack, processes);
        let by = FaultingThread { thread: fault.thread, node, chain };
        if let Some(object) = self.object_at(fault.process, fault.address, fault.time, processes) {
            self.touches.add(object, by, fault.weight);
        }
        by
    }

    /// The place in the list of objects of what a process had at an address at a time.
    pub fn object_at(
        &mut self,
        process: u32,
        address: u64,
        time: u64,
        processes: &mut dyn ObservedProcesses,
    ) -> Option<u32> {
        let found = if self.lists { processes.object_at(process, address, time) } else { None };
        found.map(|found| self.objects.place(process, Some(found)))
    }

    /// The number of the call chain of a thread; only reports have chains.
    pub(super) fn chain(
        &mut self,
        process: u32,
        registers: &UserRegisters,
        stack: &StackPiece,
        processes: &mut dyn ObservedProcesses,
    ) -> u32 {
        if !self.lists {
            return NO_CHAIN;
        }
        let chain = processes.call_chain(process, registers, stack);
        self.calls.number(processes.place(process), &chain)
    }
}
