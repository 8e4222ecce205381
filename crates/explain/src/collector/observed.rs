//! What the collector asks about the observed processes.

use crate::identity::ObjectIdentity;
use crate::objects::{ObjectId, ObjectRow};
use numakit_sampling::operand::AddressSpace;
use numakit_sampling::process::{MemoryKind, ProcessMapping};
use numakit_sampling::{Sample, StackPiece};
use numakit_sys::registers::UserRegisters;
use std::ops::Range;
use std::sync::Arc;

/// As what an object was found: itself, an allocator's memory, or the small blocks of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundAs {
    /// Itself.
    Object,
    /// The small blocks of a site, one of which has the address.
    Block,
    /// Memory of an allocator; the block that has the address is not known.
    Heap,
}

/// An object that was accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundObject {
    /// The object, by its number in its process.
    pub id: ObjectId,
    /// As what the object was found.
    pub found_as: FoundAs,
    /// What the memory is used for, as seen from the thread.
    pub kind: MemoryKind,
}

/// The observed processes, as far as they can be read now.
pub trait ObservedProcesses {
    /// The place of a process in the list of processes, by which the names of its code are found. A process keeps its place.
    fn place(&mut self, process: u32) -> u32;
    /// The memory of the process of a sample, as it is now.
    fn space(&mut self, sample: &Sample) -> &dyn AddressSpace;
    /// The ranges in which the code of a process became another one since the last call.
    fn changed_code(&mut self, process: u32) -> Vec<Range<u64>>;
    /// The object that the thread of a sample accessed; `None` if the address is not mapped any more.
    fn object(&mut self, sample: &Sample, address: u64) -> Option<FoundObject>;
    /// The object that a process has at an address at a time.
    fn object_at(&mut self, process: u32, address: u64, time: u64) -> Option<ObjectId>;
    /// The call chain of a thread of a process with these registers, innermost first, as far as it can be followed.
    fn call_chain(&mut self, process: u32, registers: &UserRegisters, stack: &StackPiece) -> Arc<[u64]>;
    /// What is known of an object of a process.
    fn row(&self, process: u32, object: ObjectId) -> Option<&ObjectRow>;
    /// What makes an object of a process the same as objects of others; `None` if it is of this process alone.
    fn identity(&mut self, process: u32, object: ObjectId) -> Option<ObjectIdentity>;
    /// The name of an object of a process.
    fn object_name(&mut self, process: u32, object: ObjectId) -> Option<String>;
    /// Where a thread's block of thread-local storage is, if that can be found.
    fn thread_base(&mut self, sample: &Sample) -> Option<u64>;
    /// The nodes of pages; `None` for a page that is not in memory, or whose node the kernel does not tell.
    fn nodes(&mut self, process: u32, pages: &[u64]) -> Vec<Option<u32>>;
    /// The mapping of a process that has an address now.
    fn mapping(&mut self, process: u32, address: u64) -> Option<&ProcessMapping>;
    /// The node of a CPU.
    fn node_of_cpu(&self, cpu: u32) -> Option<u32>;
    /// Whether a process has ended, so that its memory cannot be read any more.
    fn has_ended(&self, process: u32) -> bool;
}
