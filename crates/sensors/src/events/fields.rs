//! From an event of a table to fields with values, with the kernel's help where only it knows.

use super::PlatformEvent;
use crate::pmu::{TermError, Terms};
use std::collections::BTreeMap;
use thiserror::Error;

/// An event without all of its fields.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FieldsError {
    /// The kernel does not name it.
    #[error("the kernel has no event '{event}' for this PMU")]
    Missing {
        /// Its name.
        event: String,
    },
    /// The kernel names it in a way that is not understood.
    #[error("the event '{event}' of the kernel: {error}")]
    Terms {
        /// Its name.
        event: String,
        /// What is wrong.
        error: TermError,
    },
    /// The kernel wants a value that the table does not give.
    #[error("the event '{event}' of the kernel needs a value for '{field}'")]
    Open {
        /// Its name.
        event: String,
        /// The field.
        field: String,
    },
}

type Fields = Vec<(String, u64)>;

pub(super) fn fields(
    event: &PlatformEvent,
    index: u32,
    chip: Option<u32>,
    known: &BTreeMap<String, String>,
) -> Result<Fields, FieldsError> {
    let mut fields = Fields::new();
    let mut holes = Vec::new();
    let kernel = event.known.as_ref().map(|name| name.replace("[i]", &index.to_string()));
    if let Some(name) = &kernel {
        let text = known.get(name).ok_or_else(|| FieldsError::Missing { event: name.clone() })?;
        holes = read(name, text, &mut fields)?;
    }
    if let Some(terms) = &event.terms {
        terms.at(index.into()).for_each(|(field, value)| set(&mut fields, field, value));
    }
    if let Some(chip) = chip {
        set(&mut fields, "chip", chip.into());
    }
    match holes.into_iter().find(|hole| !fields.iter().any(|(field, _)| field == hole)) {
        Some(field) => Err(FieldsError::Open { event: kernel.unwrap_or_default(), field }),
        None => Ok(fields),
    }
}

/// Reads the kernel's terms; those that it leaves open (`chip=?`) are the answer.
fn read(event: &str, text: &str, fields: &mut Fields) -> Result<Vec<String>, FieldsError> {
    let (open, given): (Vec<&str>, Vec<&str>) =
        text.trim().split(',').partition(|term| term.trim().ends_with("=?"));
    if !given.is_empty() {
        let terms = Terms::parse(&given.join(","))
            .map_err(|error| FieldsError::Terms { event: event.to_owned(), error })?;
        terms.at(0).for_each(|(field, value)| set(fields, field, value));
    }
    Ok(open.iter().map(|term| term.trim().trim_end_matches("=?").to_owned()).collect())
}

fn set(fields: &mut Fields, field: &str, value: u64) {
    match fields.iter_mut().find(|(name, _)| name == field) {
        Some((_, old)) => *old = value,
        None => fields.push((field.to_owned(), value)),
    }
}
