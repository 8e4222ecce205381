//! What a variable consists of: its type, and the members of each of its elements.

use super::{Entry, MAX_DEPTH, Types, each_variable, is_fortran, is_reserved, member_offset, unit_offset};
use crate::debug_file;
use addr2line::gimli::{self, UnitOffset};
use numakit_sys::file::open_to_read;
use object::{ReadCache, ReadRef};
use std::collections::HashMap;
use std::path::Path;

/// Members of a type, those of its members among them, at most.
const MAX_MEMBERS: usize = 1000;

/// A member of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutMember {
    /// Its name as it follows that of the variable: `.x`, or `.start.x`.
    pub name: String,
    /// Bytes from the begin of the element.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
}

/// The type of a variable that has members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableLayout {
    /// The type, such as `struct point[100]`.
    pub name: String,
    /// Bytes of an element; of the variable, if it is no array.
    pub element: u64,
    /// The members of an element. Those of a union have the same bytes.
    pub members: Vec<LayoutMember>,
}

impl VariableLayout {
    /// The member that has the byte at an offset in the variable; `None` between members. It is the first one where several
    /// have the byte, as in a union.
    pub fn member(&self, offset: u64) -> Option<&LayoutMember> {
        let offset = offset % self.element.max(1);
        self.members
            .iter()
            .find(|member| (member.offset..member.offset.saturating_add(member.size)).contains(&offset))
    }
}

/// The layouts of the variables at these addresses, in the file's own terms. Variables without members, and those that the file
/// does not describe, are not in it.
pub fn of_file(path: &Path, variables: &[u64]) -> HashMap<u64, VariableLayout> {
    let debug = debug_file::of(path);
    match open_to_read(debug.as_deref().unwrap_or(path)) {
        Ok(file) => of_elf(&ReadCache::new(file), variables),
        Err(_) => HashMap::new(),
    }
}

/// The same layouts as [`of_file`], from the content of a file.
pub fn of_elf<'a>(data: impl ReadRef<'a>, variables: &[u64]) -> HashMap<u64, VariableLayout> {
    let (mut found, mut seen) = (HashMap::new(), 0);
    each_variable(data, &mut |types, entry, address| {
        if variables.contains(&address) && !found.contains_key(&address) {
            let layout = types.type_of(entry).and_then(|of_type| types.layout(of_type));
            seen += usize::from(layout.is_some());
            found.extend(layout.map(|layout| (address, layout)));
        }
        seen < variables.len()
    });
    found
}

impl<'a> Types<'a, '_> {
    /// The layout of a type; `None` if it has no members that can be told.
    pub(super) fn layout(&self, of_type: UnitOffset) -> Option<VariableLayout> {
        let (mut of_type, mut alias, mut counts) = (of_type, None, String::new());
        for _ in 0..MAX_DEPTH {
            let entry = self.unit.entry(of_type).ok()?;
            match entry.tag() {
                gimli::DW_TAG_array_type if !entry.has_attr(gimli::DW_AT_byte_stride) => {
                    for count in self.counts(&entry)? {
                        counts.push_str(&if count == 0 { "[]".to_owned() } else { format!("[{count}]") });
                    }
                }
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                    let name = alias.or_else(|| self.record_name(&entry));
                    let mut members = Vec::new();
                    self.add_members(&entry, 0, "", &mut members, MAX_DEPTH)?;
                    let element = self.size(of_type, MAX_DEPTH).filter(|size| *size > 0)?;
                    let name = format!("{}{counts}", name.unwrap_or_else(|| "struct".to_owned()));
                    return (!members.is_empty()).then_some(VariableLayout { name, element, members });
                }
                gimli::DW_TAG_typedef => alias = alias.or_else(|| self.name(&entry)),
                _ if !is_qualifier(&entry) => return None,
                _ => {}
            }
            of_type = unit_offset(&entry, gimli::DW_AT_type)?;
        }
        None
    }

    /// The name of a structure as its language writes it.
    fn record_name(&self, record: &Entry<'a>) -> Option<String> {
        let name = self.name(record)?;
        let is_c = [
            gimli::DW_LANG_C89,
            gimli::DW_LANG_C,
            gimli::DW_LANG_C99,
            gimli::DW_LANG_C11,
            gimli::DW_LANG_C17,
        ]
        .into_iter()
        .any(|language| self.language() == Some(language));
        let word = match record.tag() {
            _ if !is_c => "",
            gimli::DW_TAG_union_type => "union ",
            _ => "struct ",
        };
        Some(format!("{word}{name}"))
    }

    /// Adds the members of a structure that begins at `at`. `None` if its type cannot be read, or is inside of a library.
    fn add_members(
        &self,
        record: &Entry<'a>,
        at: u64,
        prefix: &str,
        to: &mut Vec<LayoutMember>,
        depth: usize,
    ) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        if self.is_cell(record) || self.language().is_some_and(is_fortran) {
            return None;
        }
        for child in self.children(record)? {
            let is_base = child.tag() == gimli::DW_TAG_inheritance;
            if child.tag() != gimli::DW_TAG_member && !is_base {
                continue;
            }
            let Some(of_type) = unit_offset(&child, gimli::DW_AT_type) else { continue };
            let Some(offset) = member_offset(record, &child) else { continue };
            let own = self.name(&child);
            if own.as_deref().is_some_and(is_reserved) {
                return None;
            }
            let name = own.map_or_else(|| prefix.to_owned(), |own| format!("{prefix}.{own}"));
            let (offset, known) = (at.checked_add(offset)?, to.len());
            let is_record = self.record(of_type).is_some_and(|inner| {
                self.add_members(&inner, offset, &name, to, depth).is_some() && to.len() > known
            });
            if !is_record {
                to.truncate(known);
                let size = self.size(of_type, MAX_DEPTH).unwrap_or(0);
                to.push(LayoutMember { name, offset, size });
            }
            if to.len() > MAX_MEMBERS {
                return None;
            }
        }
        Some(())
    }

    /// The structure that a type is, whatever its names and qualifiers.
    fn record(&self, of_type: UnitOffset) -> Option<Entry<'a>> {
        let mut of_type = of_type;
        for _ in 0..MAX_DEPTH {
            let entry = self.unit.entry(of_type).ok()?;
            match entry.tag() {
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                    return Some(entry);
                }
                gimli::DW_TAG_typedef => {}
                _ if !is_qualifier(&entry) => return None,
                _ => {}
            }
            of_type = unit_offset(&entry, gimli::DW_AT_type)?;
        }
        None
    }
}

fn is_qualifier(entry: &Entry<'_>) -> bool {
    [
        gimli::DW_TAG_const_type,
        gimli::DW_TAG_volatile_type,
        gimli::DW_TAG_restrict_type,
        gimli::DW_TAG_atomic_type,
    ]
    .contains(&entry.tag())
}
