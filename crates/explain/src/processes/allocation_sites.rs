//! Which code a block belongs to: not the wrapper that passes a size on to `malloc`, but the first function that does more.
//!
//! Programs allocate through `xmalloc`, `zmalloc`, `operator new` or a method of `std::vector`. All their blocks would be
//! one object. So the call chain is followed outwards, as long as a function only passes its arguments on, or belongs to the
//! library of a language. No function is known by its name.

use super::Processes;
use crate::code::CodeNames;
use crate::collector::ObservedProcesses;
use crate::objects::DifferingCalls;
use numakit_sampling::StackPiece;
use numakit_sampling::argument_flow::{self, ArgumentOrigin, Arguments};
use numakit_sampling::operand::STACK_POINTER;
use numakit_sampling::process::ObservedProcess;
use numakit_sys::allocation_log::{AllocationCall, AllocationFunction};
use numakit_sys::registers::UserRegisters;
use std::collections::HashMap;
use std::ops::Range;

/// Functions that are followed outwards. Wrappers of wrappers are two or three.
const MAX_DEPTH: usize = 12;
/// Calls that are remembered of a process.
const MAX_CALLS: usize = 1 << 16;
/// Libraries that stand between the program and the allocator.
const ALLOCATORS: [&str; 2] = ["libnumaexplain", "libnumalloc"];
/// The libraries of C++ and Rust, by the first part of the names in them.
const LIBRARIES: [&str; 6] = ["std::", "__gnu_cxx::", "core::", "alloc::", "hashbrown::", "operator new"];
#[cfg(target_arch = "x86_64")]
const FRAME_POINTER: usize = 5;
#[cfg(target_arch = "aarch64")]
const FRAME_POINTER: usize = 29;

/// What a function does with the size that it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It passes these of its arguments on.
    Passes(Arguments),
    /// It allocates for its caller, and what it does with the size tells nothing of that: it belongs to the library of a
    /// language, or the compiler has made it for this caller.
    ForCaller,
    /// It decides.
    Decides,
}

/// What is known of the calls of one process.
#[derive(Debug, Default)]
pub(super) struct KnownCalls {
    steps: HashMap<(u64, Option<Arguments>), Step>,
    /// The addresses behind jumps that lead from a called function to the one that a chain has next.
    jumps: HashMap<(u64, u64), Option<u64>>,
}

/// The calls that asked for a block.
#[derive(Debug)]
pub(super) struct AllocationChain {
    /// The addresses behind the calls and jumps, from the first function on that does more than to pass a size on.
    pub(super) told: Vec<u64>,
    /// The addresses that calls have pushed, from the direct caller of the allocator on, as far as they are of that moment.
    pub(super) pushed: Vec<u64>,
    /// How many calls lead to the first address of `told`.
    pub(super) deciding: usize,
}

impl Processes {
    /// The addresses behind the calls that asked for a block, from the first function on that does more than to pass a size
    /// on; from the outermost known one if all pass it on. Only that one address unless the whole chain is asked for.
    pub(super) fn allocation_chain(
        &mut self,
        pid: u32,
        call: &AllocationCall,
        whole: bool,
    ) -> Option<AllocationChain> {
        let direct = call.frames().first().copied()?;
        self.know(pid, direct);
        let (mut wanted, mut callee) = (Some(sizes(call.function)), None);
        let is_direct = |processes: &mut Self| {
            processes.jump(pid, direct, &None).is_none()
                && processes.step(pid, direct, wanted) == Step::Decides
        };
        if !whole && is_direct(self) {
            return Some(AllocationChain { told: vec![direct], pushed: vec![direct], deciding: 1 });
        }
        let (mut chain, mut depths) = (Vec::new(), Vec::new());
        let (found, certain) = self.chain_of(pid, direct, call);
        for (nth, after) in found.iter().copied().enumerate() {
            let jump = self.jump(pid, after, &callee);
            // Functions that have returned since left their frames to others.
            if nth >= certain && jump.is_none() && self.calls_another(pid, after, &callee) {
                break;
            }
            chain.extend(jump.into_iter().chain([after]));
            depths.resize(chain.len(), nth + 1);
            callee = self.function(pid, after);
        }
        let mut at = 0;
        while at + 1 < chain.len() {
            match self.step(pid, chain[at], wanted) {
                Step::Passes(arguments) => wanted = Some(arguments),
                Step::ForCaller => wanted = None,
                Step::Decides => break,
            }
            at += 1;
        }
        let deciding = depths.get(at).copied().unwrap_or(1);
        let pushed = found.into_iter().take(certain.max(1)).collect();
        let told = if chain.is_empty() { vec![direct] } else { chain.split_off(at) };
        Some(AllocationChain { told, pushed, deciding })
    }

    /// The caller of an allocation site in words. Calls of one line are numbered in their order in the code.
    pub(super) fn caller_name(&mut self, place: u32, calls: &DifferingCalls) -> String {
        let mut name = |after: u64| CodeNames::name(self, place, after.saturating_sub(1));
        let own = name(calls.own);
        let alike: Vec<u64> = calls.all.iter().copied().filter(|after| name(*after) == own).collect();
        match alike.iter().position(|after| *after == calls.own) {
            Some(at) if alike.len() > 1 => format!("{own}, call {} of {}", at + 1, alike.len()),
            _ => own.to_string(),
        }
    }

    /// The addresses behind the calls that led to an allocation, innermost first, and how many of them are from that moment: all
    /// others are what the stack has now.
    fn chain_of(&mut self, pid: u32, direct: u64, call: &AllocationCall) -> (Vec<u64>, usize) {
        let mut registers = UserRegisters { ip: direct, ..UserRegisters::default() };
        registers.general[STACK_POINTER] = call.stack_pointer;
        registers.general[FRAME_POINTER] = call.frame_pointer;
        let stack = StackPiece { address: call.stack_pointer, bytes: call.stack().to_vec() };
        let chain = self.call_chain(pid, &registers, &stack);
        let process = self.open.get(&pid).and_then(Option::as_ref);
        let certain = process.map_or(0, |process| self.chains.certain(process, &registers, &stack));
        (chain.iter().copied().take(MAX_DEPTH).collect(), certain)
    }

    /// Whether the call before an address is known to call another function than the one that a chain has before it.
    fn calls_another(&self, pid: u32, after: u64, callee: &Option<Range<u64>>) -> bool {
        let process = self.open.get(&pid).and_then(Option::as_ref);
        let called = process.and_then(|process| argument_flow::called(after, process));
        called.zip(callee.as_ref()).is_some_and(|(called, callee)| !callee.contains(&called))
    }

    /// The address behind the jump of a function that is called before `after` and goes on as `callee` without a frame of its
    /// own. Without a callee, it goes on as the allocator.
    fn jump(&mut self, pid: u32, after: u64, callee: &Option<Range<u64>>) -> Option<u64> {
        let key = (after, callee.as_ref().map_or(0, |callee| callee.start));
        if let Some(known) = self.known_calls(pid).jumps.get(&key) {
            return *known;
        }
        let found = self.find_jump(pid, after, callee);
        self.known_calls(pid).jumps.insert(key, found);
        found
    }

    fn find_jump(&mut self, pid: u32, after: u64, callee: &Option<Range<u64>>) -> Option<u64> {
        let process = self.open.get(&pid)?.as_ref()?;
        let called = argument_flow::called(after, process)?;
        let is_callee = |to: u64| match callee {
            Some(callee) => callee.contains(&to),
            None => is_allocator(process, to),
        };
        if is_callee(called) {
            return None;
        }
        let function = self.chains.function(process, called).filter(|function| function.start == called)?;
        argument_flow::tail_jump(function, &is_callee, process)
    }

    /// What the function does that calls before this address, where these arguments of the call are sizes. A library passes
    /// nothing on that could be followed.
    fn step(&mut self, pid: u32, after: u64, wanted: Option<Arguments>) -> Step {
        if let Some(known) = self.known_calls(pid).steps.get(&(after, wanted)) {
            return *known;
        }
        let origin = wanted.and_then(|wanted| {
            let function = self.function(pid, after)?;
            let process = self.open.get(&pid)?.as_ref()?;
            // The decoder is one for x86-64.
            let is_known = cfg!(target_arch = "x86_64");
            is_known.then(|| argument_flow::origin(function.start, after, wanted, process))
        });
        let name = self.function_name(pid, after).unwrap_or_default();
        let step = match origin {
            Some(ArgumentOrigin::PassedOn(arguments)) => Step::Passes(arguments),
            Some(ArgumentOrigin::Constant) if is_clone(&name) => Step::ForCaller,
            _ if is_of_library(&name) => Step::ForCaller,
            _ => Step::Decides,
        };
        self.known_calls(pid).steps.insert((after, wanted), step);
        step
    }

    fn function_name(&mut self, pid: u32, after: u64) -> Option<String> {
        let place = self.place(pid);
        CodeNames::name(self, place, after.saturating_sub(1)).function
    }

    fn function(&mut self, pid: u32, after: u64) -> Option<Range<u64>> {
        let process = self.open.get(&pid)?.as_ref()?;
        self.chains.function(process, after.saturating_sub(1))
    }

    fn known_calls(&mut self, pid: u32) -> &mut KnownCalls {
        let known = self.calls.entry(pid).or_default();
        if known.steps.len() + known.jumps.len() >= MAX_CALLS {
            *known = KnownCalls::default();
        }
        known
    }
}

fn is_allocator(process: &ObservedProcess, address: u64) -> bool {
    process
        .mapping(address)
        .is_some_and(|mapping| ALLOCATORS.iter().any(|library| mapping.name.contains(library)))
}

/// The arguments that are sizes.
fn sizes(of: AllocationFunction) -> Arguments {
    match of {
        AllocationFunction::Malloc | AllocationFunction::Valloc | AllocationFunction::Pvalloc => {
            Arguments::at(&[0])
        }
        AllocationFunction::Calloc => Arguments::at(&[0, 1]),
        AllocationFunction::PosixMemalign | AllocationFunction::Mremap => Arguments::at(&[2]),
        AllocationFunction::Realloc
        | AllocationFunction::Memalign
        | AllocationFunction::AlignedAlloc
        | AllocationFunction::Mmap => Arguments::at(&[1]),
        AllocationFunction::Free | AllocationFunction::Munmap => Arguments::default(),
    }
}

/// Whether a function is a copy that the compiler has made for callers which pass constants: these are in its code.
fn is_clone(name: &str) -> bool {
    name.contains(".constprop")
}

/// Whether a function belongs to the library of a language. C++ puts the type that a template returns before its name, and
/// Rust an implementation's type in angle brackets.
fn is_of_library(name: &str) -> bool {
    let path = match name.strip_prefix('<') {
        Some(of_type) => of_type.split([' ', '<', '>']).next(),
        None if name.starts_with("operator ") => Some(name),
        None => name.split(['(', '<']).next().and_then(|path| path.rsplit(' ').next()),
    };
    path.is_some_and(|path| LIBRARIES.iter().any(|library| path.starts_with(library)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_told_from_programs_that_use_them() {
        for name in [
            "std::vector<long, std::allocator<long> >::reserve(unsigned long)",
            "void std::vector<double>::_M_realloc_insert<double const&>(double const&)",
            "<alloc::vec::Vec<T> as alloc::vec::spec_from_iter::SpecFromIter<T,I>>::from_iter",
            "alloc::raw_vec::RawVecInner<A>::try_allocate_in",
            "operator new(unsigned long)",
            "std::__detail::_Hashtable_alloc<A>::_M_allocate_node",
        ] {
            assert!(is_of_library(name), "{name}");
        }
        for name in [
            "make_index",
            "app::fill<std::vec::Vec<u8>>",
            "Table<std::string>::grow(std::string)",
            "void fill(std::vector<long>&)",
            "<app::Table as core::default::Default>::default",
            "standard::table",
        ] {
            assert!(!is_of_library(name), "{name}");
        }
    }
}
