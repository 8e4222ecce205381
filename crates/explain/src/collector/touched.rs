//! Page faults and call chains.

use super::{Collector, ObservedProcesses};
use crate::call_tree::NO_CHAIN;
use crate::first_touch::FaultingThread;
use crate::objects::ObjectKind;
use numakit_sampling::faults::FaultSample;
use numakit_sampling::operand::sampled::{self, SampledMemory};
use numakit_sampling::operand::{AccessKind, MemoryAccess, Operand, Reach, RecoveryRule};
use numakit_sampling::{Sample, StackPiece};
use numakit_sys::registers::UserRegisters;

/// Maximum number of a thread's next writes that are looked at, to find one that is not on the thread's stack.
const MAX_CANDIDATES: usize = 16;

impl Collector {
    /// Adds a page fault, and returns the thread that caused it, with its call chain.
    pub fn touch(&mut self, fault: &FaultSample, processes: &mut dyn ObservedProcesses) -> FaultingThread {
        let node = fault.cpu.and_then(|cpu| processes.node_of_cpu(cpu));
        let chain = self.chain(fault.process, &fault.registers, &fault.stack, processes);
        let by = FaultingThread { thread: fault.thread, node, chain };
        if let Some(object) = self.object_at(fault.process, fault.address, fault.time, processes) {
            self.touches.add(object, by, fault.weight);
        }
        by
    }

    /// Adds the page faults that a sample counts since its thread's last sample, as faults of the memory that the thread
    /// writes at that moment: programs touch memory in loops, so that the thread still writes there. While the kernel
    /// handles a fault, the registers are those of the instruction that will be executed again, and its address is exact, on
    /// emulated processors too. Only as many of these samples are looked at as of other samples: a thread that initialises
    /// memory has faults in nearly all.
    pub fn touch_sampled(&mut self, sample: &Sample, processes: &mut dyn ObservedProcesses) {
        if sample.faults == 0 || !self.lists || processes.has_ended(sample.process) {
            return;
        }
        self.faulting += 1;
        if !self.faulting.is_multiple_of(self.pace) {
            return;
        }
        let Some(object) = self.faulting_object(sample, processes) else { return };
        let node = sample.cpu.and_then(|cpu| processes.node_of_cpu(cpu));
        let chain = self.chain(sample.process, &sample.registers, &sample.stack, processes);
        let by = FaultingThread { thread: sample.thread, node, chain };
        self.sampled_touches.add(object, by, u64::from(sample.faults) * self.pace);
    }

    /// The object at which a thread has page faults: the memory that it is about to write, or has just written. If it writes
    /// only to its stack, the memory for which the kernel loads a page.
    fn faulting_object(&mut self, sample: &Sample, processes: &mut dyn ObservedProcesses) -> Option<u32> {
        let landing = self.landing;
        let decoder = self.decoder(sample, processes);
        let space = SampledMemory { now: processes.space(sample), stack: &sample.stack };
        if sampled::is_behind_call(sample.registers.ip, &space) {
            // What the kernel touches for the program is not in the registers.
            return None;
        }
        let registers = sampled::registers(&sample.registers);
        let before = match decoder.recover(&registers, &space, landing) {
            Operand::Memory(access) => Some(access),
            _ => None,
        };
        let ahead = decoder.ahead(&registers, &space, Reach::NEAR).accesses;
        let next = ahead.iter().take_while(|access| access.instruction == sample.registers.ip);
        let next: Vec<MemoryAccess> = next.copied().collect();
        let candidates: Vec<MemoryAccess> = next
            .iter()
            .chain(&before)
            .chain(ahead)
            .filter(|access| writes(access) && access.rule != RecoveryRule::Stack)
            .take(MAX_CANDIDATES)
            .copied()
            .collect();
        for access in &candidates {
            let object = self.object_at(sample.process, access.address, sample.time, processes)?;
            let is_exact = sample.in_kernel && access.instruction == sample.registers.ip;
            if is_exact || !self.is_stack(object, processes) {
                return Some(object);
            }
        }
        let loaded = next.first().filter(|_| sample.in_kernel)?;
        self.object_at(sample.process, loaded.address, sample.time, processes)
    }

    fn is_stack(&self, place: u32, processes: &dyn ObservedProcesses) -> bool {
        let row = self.listed(place).next().and_then(|(process, object)| processes.row(process, object));
        row.is_some_and(|row| row.origin.kind() == ObjectKind::Stack)
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
        found.map(|found| self.objects.place(process, Some(found), processes))
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

fn writes(access: &MemoryAccess) -> bool {
    matches!(access.kind, AccessKind::Store | AccessKind::Update | AccessKind::Atomic)
}
