//! The type of a block, by the variable of its allocator's caller that points to it: the code behind the call tells where the
//! result goes, and debug information which variable is there.

use super::layout::VariableLayout;
use super::{Entry, MAX_DEPTH, Types, unit_offset, with_debug};
use crate::debug_file;
use addr2line::gimli::{self, Operation, UnitOffset};
use numakit_sampling::result_flow::ResultPlace;
use numakit_sys::file::open_to_read;
use object::{Object, ObjectSegment, ReadCache, ReadRef};
use std::collections::HashMap;
use std::path::Path;

/// Entries of debug information that are looked at, at most, of units with calls that are asked for.
const MAX_ENTRIES: u64 = 5_000_000;

/// A call that returned a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    /// The address behind the call in the process.
    pub after: u64,
    /// The same in the file, as an offset.
    pub offset: u64,
    /// The places that have the result.
    pub places: Vec<ResultPlace>,
}

/// A function around an entry.
struct Around {
    depth: isize,
    ranges: Vec<gimli::Range>,
    /// Bytes from the frame pointer to where the distances of its variables begin.
    base: Option<i64>,
}

impl Around {
    /// Whether a variable at this distance in the frame is that at another one from the frame pointer, at an address.
    fn has(&self, at: u64, from_pointer: i64, in_frame: i64) -> bool {
        let is_here = self.ranges.iter().any(|range| contains(range, at));
        is_here && self.base.and_then(|base| from_pointer.checked_sub(base)) == Some(in_frame)
    }
}

/// The layouts of what the results of these calls point to, by the addresses behind them. Calls whose result has no variable with
/// members are not in it.
pub fn of_file(path: &Path, calls: &[CallResult]) -> HashMap<u64, VariableLayout> {
    let Ok(file) = open_to_read(path) else { return HashMap::new() };
    let cache = ReadCache::new(file);
    let Ok(elf) = object::File::parse(&cache) else { return HashMap::new() };
    // From addresses in the process to those of the file.
    let shifted: Vec<(u64, CallResult)> = calls.iter().filter_map(|call| in_file(&elf, call)).collect();
    match debug_file::of(path).map(|debug| open_to_read(&debug)) {
        None => of_elf(&cache, &shifted),
        Some(Ok(debug)) => of_elf(&ReadCache::new(debug), &shifted),
        Some(Err(_)) => HashMap::new(),
    }
}

/// A call with addresses in the file's own terms, and the address behind it in the process.
fn in_file<'a, R: ReadRef<'a>>(elf: &object::File<'a, R>, call: &CallResult) -> Option<(u64, CallResult)> {
    let after = elf.segments().find_map(|segment| {
        let (offset, size) = segment.file_range();
        let from = call.offset.checked_sub(offset).filter(|from| *from < size)?;
        segment.address().checked_add(from)
    })?;
    let move_to = |address: u64| address.wrapping_sub(call.after).wrapping_add(after);
    let moved = |place: &ResultPlace| match *place {
        ResultPlace::Register { number, at } => ResultPlace::Register { number, at: move_to(at) },
        ResultPlace::Frame { offset, at } => ResultPlace::Frame { offset, at: move_to(at) },
        ResultPlace::Memory { address } => ResultPlace::Memory { address: move_to(address) },
    };
    let places = call.places.iter().map(moved).collect();
    Some((call.after, CallResult { after, offset: call.offset, places }))
}

fn of_elf<'a>(data: impl ReadRef<'a>, calls: &[(u64, CallResult)]) -> HashMap<u64, VariableLayout> {
    let mut found = HashMap::new();
    with_debug(data, &mut |dwarf| {
        let (mut units, mut left) = (dwarf.units(), MAX_ENTRIES);
        while let Some(header) = units.next()? {
            let unit = dwarf.unit(header)?;
            let mut ranges = dwarf.unit_ranges(&unit)?;
            let mut here: Vec<&(u64, CallResult)> = Vec::new();
            while let Some(range) = ranges.next()? {
                here.extend(calls.iter().filter(|(_, call)| contains(&range, call.after.saturating_sub(1))));
            }
            if !here.is_empty() {
                in_unit(&Types::new(dwarf, &unit), &here, &mut left, &mut found)?;
            }
        }
        Ok(())
    });
    found
}

fn contains(range: &gimli::Range, address: u64) -> bool {
    (range.begin..range.end).contains(&address)
}

/// Looks for the variables of one unit that have the results of these calls.
fn in_unit<'a>(
    types: &Types<'a, '_>,
    calls: &[&(u64, CallResult)],
    left: &mut u64,
    found: &mut HashMap<u64, VariableLayout>,
) -> gimli::Result<()> {
    let mut entries = types.unit.entries();
    let mut around: Vec<Around> = Vec::new();
    while let Some(entry) = entries.next_dfs()? {
        let Some(rest) = left.checked_sub(1) else { return Ok(()) };
        *left = rest;
        let depth = entry.depth();
        around.retain(|function| function.depth < depth);
        match entry.tag() {
            gimli::DW_TAG_subprogram => around.push(function(types, entry, depth)?),
            gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                for (process, call) in calls {
                    if !found.contains_key(process) && has(types, entry, call, around.last()) {
                        let layout = pointee(types, entry).and_then(|pointee| types.layout(pointee));
                        found.extend(layout.map(|layout| (*process, layout)));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn function<'a>(types: &Types<'a, '_>, entry: &Entry<'a>, depth: isize) -> gimli::Result<Around> {
    /// The number of the frame pointer of x86-64.
    const FRAME_POINTER: gimli::Register = gimli::Register(6);
    let mut iterator = types.dwarf.die_ranges(types.unit, entry)?;
    let mut ranges = Vec::new();
    while let Some(range) = iterator.next()? {
        ranges.push(range);
    }
    let base = entry.attr_value(gimli::DW_AT_frame_base).and_then(|value| value.exprloc_value());
    let base = match base.and_then(|base| types.only_operation(base)) {
        // Behind the return address and the frame pointer of the caller.
        Some(Operation::CallFrameCFA) => Some(16),
        Some(Operation::Register { register }) if register == FRAME_POINTER => Some(0),
        _ => None,
    };
    Ok(Around { depth, ranges, base })
}

/// Whether a variable has the result of a call.
fn has<'a>(types: &Types<'a, '_>, entry: &Entry<'a>, call: &CallResult, function: Option<&Around>) -> bool {
    let Some(location) = entry.attr_value(gimli::DW_AT_location) else { return false };
    if let Some(expression) = location.exprloc_value() {
        let operation = types.only_operation(expression);
        return call.places.iter().any(|place| match (place, &operation) {
            (ResultPlace::Memory { address }, Some(Operation::Address { address: at })) => address == at,
            (ResultPlace::Frame { offset, at }, Some(Operation::FrameOffset { offset: own })) => {
                function.is_some_and(|function| function.has(*at, *offset, *own))
            }
            _ => false,
        });
    }
    has_in_list(types, location, call).unwrap_or(false)
}

/// Whether one of the registers in which a variable is at times has the result then.
fn has_in_list<'a>(
    types: &Types<'a, '_>,
    location: gimli::AttributeValue<super::Slice<'a>>,
    call: &CallResult,
) -> Option<bool> {
    let mut list = types.dwarf.attr_locations(types.unit, location).ok()??;
    while let Some(part) = list.next().ok()? {
        let Some(Operation::Register { register }) = types.only_operation(part.data) else { continue };
        let is_it = |place: &ResultPlace| match *place {
            ResultPlace::Register { number, at } => number == register.0 && contains(&part.range, at),
            ResultPlace::Frame { .. } | ResultPlace::Memory { .. } => false,
        };
        if call.places.iter().any(is_it) {
            return Some(true);
        }
    }
    Some(false)
}

/// What a variable points to; `None` if it is no pointer.
fn pointee<'a>(types: &Types<'a, '_>, variable: &Entry<'a>) -> Option<UnitOffset> {
    let mut of_type = types.type_of(variable)?;
    for _ in 0..MAX_DEPTH {
        let entry = types.unit.entry(of_type).ok()?;
        of_type = unit_offset(&entry, gimli::DW_AT_type)?;
        match entry.tag() {
            gimli::DW_TAG_pointer_type => return Some(of_type),
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type => {}
            _ => return None,
        }
    }
    None
}
