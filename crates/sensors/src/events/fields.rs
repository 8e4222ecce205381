//! The fields and values of an event, from a table and the kernel's `events/NAME`.

use super::PlatformEvent;
use crate::pmu::{TermError, Terms};
use std::collections::BTreeMap;
use thiserror::Error;

/// Why an event cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FieldsError {
    /// The kernel has no such event.
    #[error("the kernel has no event '{event}' for this PMU")]
    Missing {
        /// Its name.
        event: String,
    },
    /// The kernel's terms cannot be parsed.
    #[error("the event '{event}' of the kernel: {error}")]
    Terms {
        /// Its name.
        event: String,
        /// The error.
        error: TermError,
    },
    /// The kernel needs a value that the table does not have.
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

/// Parses the kernel's terms; returns the fields without a value (`chip=?`).
fn read(event: &str, text: &str, fields: &mut Fields) -> Result<Vec<String>, FieldsError> {
    let (open, complete): (Vec<&str>, Vec<&str>) =
        text.trim().split(',').partition(|term| term.trim().ends_with("=?"));
    if !complete.is_empty() {
        let terms = Terms::parse(&complete.join(","))
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
