//! The member of a variable at an offset, such as `[3].hits`, by the variable's type in the debug information of its file.

pub mod layout;
pub mod pointee;

use crate::debug_file;
use addr2line::gimli::{
    self, AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, Expression, Operation,
    RunTimeEndian, SectionId, Unit, UnitOffset,
};
use numakit_sys::file::open_to_read;
use object::{Object, ObjectSection, ReadCache, ReadRef};
use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;

/// A file with more debug information is not read: the answer would take seconds.
const MAX_BYTES: u64 = 256 << 20;
/// Entries of debug information that are looked at, at most.
const MAX_ENTRIES: u64 = 20_000_000;
/// Maximum number of members and dimensions that are looked at in a compilation unit: in damaged debug information, types
/// may contain each other.
const MAX_CHILDREN: u64 = 4_000_000;
/// Maximum depth of types that refer to each other: in damaged debug information, they may form a circle.
const MAX_DEPTH: usize = 32;
/// Rust's types whose inside belongs to the library.
const RUST_CELLS: [&str; 5] = ["Atomic", "UnsafeCell", "Cell", "Mutex<", "RwLock<"];

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;
/// Called with a variable and its address; false: it needs no more of them.
type Look<'f> = dyn for<'a> FnMut(&Types<'a, '_>, &Entry<'a>, u64) -> bool + 'f;

/// A byte of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VariableByte {
    /// The address of the variable, in the file's own terms.
    pub variable: u64,
    /// Bytes from its begin.
    pub offset: u64,
}

/// The members at these bytes, as what follows the name of the variable; it is empty for a variable without members. What
/// the file does not describe is not in it, and a file with damaged debug information describes what comes before the damage.
pub fn of_file(path: &Path, wanted: &[VariableByte]) -> HashMap<VariableByte, String> {
    let debug = debug_file::of(path);
    match open_to_read(debug.as_deref().unwrap_or(path)) {
        Ok(file) => of_elf(&ReadCache::new(file), wanted),
        Err(_) => HashMap::new(),
    }
}

/// The same members as [`of_file`], from the content of a file.
pub fn of_elf<'a>(data: impl ReadRef<'a>, wanted: &[VariableByte]) -> HashMap<VariableByte, String> {
    let mut found = HashMap::new();
    each_variable(data, &mut |types, entry, address| {
        for byte in wanted.iter().filter(|byte| byte.variable == address) {
            if let Some(members) = types.of_variable(entry, byte.offset) {
                found.entry(*byte).or_insert(members);
            }
        }
        found.len() < wanted.len()
    });
    found
}

/// Calls `look` with each variable of the content of a file and its address, until that returns false or the file is damaged.
fn each_variable<'a>(data: impl ReadRef<'a>, look: &mut Look<'_>) {
    with_debug(data, &mut |dwarf| go_through(dwarf, look));
}

/// Calls `read` with the debug information of the content of a file, unless there is too much of it.
fn with_debug<'a>(data: impl ReadRef<'a>, read: &mut dyn FnMut(&Dwarf<Slice<'_>>) -> gimli::Result<()>) {
    // A damaged file has no members.
    _ = object::File::parse(data).ok().and_then(|elf| {
        let debug = elf.sections().filter(|s| s.name().is_ok_and(|name| name.starts_with(".debug_")));
        let bytes = debug.map(|section| section.size()).fold(0, u64::saturating_add);
        let dwarf = if bytes <= MAX_BYTES { sections(&elf) } else { None }?;
        read(&dwarf).ok()
    });
}

fn sections<'a, R: ReadRef<'a>>(elf: &object::File<'a, R>) -> Option<Dwarf<Slice<'a>>> {
    let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let section = |id: SectionId| -> Result<Slice<'a>, gimli::Error> {
        // Compressed sections are absent.
        let data = elf.section_by_name(id.name()).and_then(|section| section.data().ok());
        Ok(EndianSlice::new(data.unwrap_or(&[]), endian))
    };
    Dwarf::load(section).ok()
}

/// Goes through all entries once.
fn go_through(dwarf: &Dwarf<Slice<'_>>, look: &mut Look<'_>) -> gimli::Result<()> {
    let (mut units, mut left) = (dwarf.units(), MAX_ENTRIES);
    while let Some(header) = units.next()? {
        let unit = dwarf.unit(header)?;
        let types = Types::new(dwarf, &unit);
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            left -= 1;
            if left == 0 {
                return Ok(());
            }
            if let Some(address) = types.address(entry)
                && !look(&types, entry, address)
            {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The types of one compilation unit.
struct Types<'a, 'u> {
    dwarf: &'u Dwarf<Slice<'a>>,
    unit: &'u Unit<Slice<'a>>,
    /// How many of [`MAX_CHILDREN`] may still be looked at.
    left: Cell<u64>,
}

impl<'a, 'u> Types<'a, 'u> {
    fn new(dwarf: &'u Dwarf<Slice<'a>>, unit: &'u Unit<Slice<'a>>) -> Self {
        Self { dwarf, unit, left: Cell::new(MAX_CHILDREN) }
    }
}

impl<'a> Types<'a, '_> {
    /// The address of a variable that has one for as long as the program runs.
    fn address(&self, entry: &Entry<'a>) -> Option<u64> {
        if entry.tag() != gimli::DW_TAG_variable {
            return None;
        }
        let location = entry.attr_value(gimli::DW_AT_location)?.exprloc_value()?;
        match self.only_operation(location)? {
            Operation::Address { address } => Some(address),
            Operation::AddressIndex { index } => self.dwarf.address(self.unit, index).ok(),
            _ => None,
        }
    }

    /// The operation of an expression that has one.
    fn only_operation(&self, expression: Expression<Slice<'a>>) -> Option<Operation<Slice<'a>>> {
        let mut operations = expression.operations(self.unit.encoding());
        let first = operations.next().ok()??;
        operations.next().ok()?.is_none().then_some(first)
    }

    /// The member of a variable.
    fn of_variable(&self, entry: &Entry<'a>, offset: u64) -> Option<String> {
        let mut members = String::new();
        self.member(self.type_of(entry)?, offset, &mut members, MAX_DEPTH)?;
        Some(members)
    }

    /// The type of a variable, which may be at its declaration.
    fn type_of(&self, entry: &Entry<'a>) -> Option<UnitOffset> {
        let mut entry = entry.clone();
        for _ in 0..MAX_DEPTH {
            if let Some(of_type) = unit_offset(&entry, gimli::DW_AT_type) {
                return Some(of_type);
            }
            let origin = [gimli::DW_AT_specification, gimli::DW_AT_abstract_origin];
            entry = self.unit.entry(origin.iter().find_map(|name| unit_offset(&entry, *name))?).ok()?;
        }
        None
    }

    /// Adds the member at an offset of a type. `None` if the type cannot be read.
    fn member(&self, of_type: UnitOffset, offset: u64, to: &mut String, depth: usize) -> Option<()> {
        let (entry, depth) = (self.unit.entry(of_type).ok()?, depth.checked_sub(1)?);
        match entry.tag() {
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type => {
                self.member(unit_offset(&entry, gimli::DW_AT_type)?, offset, to, depth)
            }
            gimli::DW_TAG_array_type => self.element(&entry, offset, to, depth),
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                if !self.is_cell(&entry) {
                    self.field(&entry, offset, to, depth)?;
                }
                Some(())
            }
            _ => Some(()),
        }
    }

    /// Adds the field of a structure. Several fields of a union have the same bytes: all of them are named then.
    fn field(&self, record: &Entry<'a>, offset: u64, to: &mut String, depth: usize) -> Option<()> {
        let mut here = Vec::new();
        for child in self.children(record)? {
            let is_base = child.tag() == gimli::DW_TAG_inheritance;
            if child.tag() != gimli::DW_TAG_member && !is_base {
                continue;
            }
            let Some(of_type) = unit_offset(&child, gimli::DW_AT_type) else { continue };
            let Some(begin) = member_offset(record, &child) else { continue };
            let size = self.size(of_type, MAX_DEPTH).unwrap_or(0);
            if (begin..begin.saturating_add(size)).contains(&offset) {
                here.push((self.name(&child), of_type, offset - begin));
            }
        }
        if here.iter().any(|(name, ..)| name.as_deref().is_some_and(is_reserved)) {
            return Some(());
        }
        match here.as_slice() {
            [(name, of_type, rest)] => {
                to.extend(name.iter().flat_map(|name| [".", name]));
                self.member(*of_type, *rest, to, depth)?;
            }
            [] => {}
            several => {
                let names: Vec<&str> = several.iter().filter_map(|(name, ..)| name.as_deref()).collect();
                if names.len() == several.len() {
                    to.push_str(&format!(".{}", names.join("|")));
                }
            }
        }
        Some(())
    }

    /// Adds the element of an array, whose last index is the fastest, and its member.
    fn element(&self, array: &Entry<'a>, offset: u64, to: &mut String, depth: usize) -> Option<()> {
        // Fortran counts otherwise, and slices have strides.
        let language = self.language();
        if language.is_some_and(is_fortran) || array.has_attr(gimli::DW_AT_byte_stride) {
            return Some(());
        }
        let of_type = unit_offset(array, gimli::DW_AT_type)?;
        let size = self.size(of_type, MAX_DEPTH).filter(|size| *size > 0)?;
        let mut index = offset / size;
        let mut indices = Vec::new();
        for count in self.counts(array)?.iter().skip(1).rev() {
            indices.push(index % (*count).max(1));
            index /= (*count).max(1);
        }
        indices.push(index);
        to.extend(indices.iter().rev().map(|index| format!("[{index}]")));
        self.member(of_type, offset % size, to, depth)
    }

    /// The number of elements of each dimension; 0 where it is not known.
    fn counts(&self, array: &Entry<'a>) -> Option<Vec<u64>> {
        let number = |entry: &Entry<'a>, name| entry.attr_value(name).and_then(|value| value.udata_value());
        let count = |entry: &Entry<'a>| {
            let last = || number(entry, gimli::DW_AT_upper_bound)?.checked_add(1);
            number(entry, gimli::DW_AT_count).or_else(last).unwrap_or(0)
        };
        let ranges = self.children(array)?;
        Some(ranges.iter().filter(|child| child.tag() == gimli::DW_TAG_subrange_type).map(count).collect())
    }

    fn size(&self, of_type: UnitOffset, depth: usize) -> Option<u64> {
        let (entry, depth) = (self.unit.entry(of_type).ok()?, depth.checked_sub(1)?);
        if let Some(size) = entry.attr_value(gimli::DW_AT_byte_size) {
            return size.udata_value();
        }
        match entry.tag() {
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type => {
                Some(self.unit.encoding().address_size.into())
            }
            gimli::DW_TAG_array_type => {
                let element = self.size(unit_offset(&entry, gimli::DW_AT_type)?, depth)?;
                self.counts(&entry)?.into_iter().try_fold(element, u64::checked_mul)
            }
            _ => self.size(unit_offset(&entry, gimli::DW_AT_type)?, depth),
        }
    }

    fn children(&self, entry: &Entry<'a>) -> Option<Vec<Entry<'a>>> {
        let mut tree = self.unit.entries_tree(Some(entry.offset())).ok()?;
        let mut children = tree.root().ok()?.children();
        let mut all = Vec::new();
        while let Some(child) = children.next().ok()? {
            self.left.set(self.left.get().checked_sub(1)?);
            all.push(child.entry().clone());
        }
        Some(all)
    }

    fn name(&self, entry: &Entry<'a>) -> Option<String> {
        let name = self.dwarf.attr_string(self.unit, entry.attr_value(gimli::DW_AT_name)?).ok()?;
        Some(name.to_string_lossy().into_owned()).filter(|name| !name.is_empty())
    }

    fn language(&self) -> Option<gimli::DwLang> {
        let root = self.unit.entry(self.unit.header.root_offset()).ok()?;
        match root.attr_value(gimli::DW_AT_language)? {
            AttributeValue::Language(language) => Some(language),
            _ => None,
        }
    }

    /// Whether a type's inside is known only to the language's library.
    fn is_cell(&self, entry: &Entry<'a>) -> bool {
        let is_named = |name: String| RUST_CELLS.iter().any(|cell| name.starts_with(cell));
        self.language() == Some(gimli::DW_LANG_Rust) && self.name(entry).is_some_and(is_named)
    }
}

/// An attribute that refers to an entry of the same unit.
fn unit_offset(entry: &Entry<'_>, name: gimli::DwAt) -> Option<UnitOffset> {
    match entry.attr_value(name)? {
        AttributeValue::UnitRef(offset) => Some(offset),
        _ => None,
    }
}

/// Names of the compiler and of its library say nothing to a user.
fn is_reserved(name: &str) -> bool {
    name.starts_with("__") || name.starts_with("_M_")
}

/// Where a member begins; `None` for one that is a variable of its own.
fn member_offset(record: &Entry<'_>, member: &Entry<'_>) -> Option<u64> {
    let number = |name| member.attr_value(name).and_then(|value| value.udata_value());
    let bits = || number(gimli::DW_AT_data_bit_offset).map(|bits| bits / 8);
    let is_union = record.tag() == gimli::DW_TAG_union_type;
    number(gimli::DW_AT_data_member_location).or_else(bits).or(is_union.then_some(0))
}

fn is_fortran(language: gimli::DwLang) -> bool {
    [
        gimli::DW_LANG_Fortran77,
        gimli::DW_LANG_Fortran90,
        gimli::DW_LANG_Fortran95,
        gimli::DW_LANG_Fortran03,
        gimli::DW_LANG_Fortran08,
    ]
    .contains(&language)
}

#[cfg(test)]
mod tests;
