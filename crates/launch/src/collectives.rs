//! Small collectives of MPI programs within one machine: what a program gets for `--collectives`.

use crate::Environment;
use crate::preload::{Library, PreloadError};
use std::path::PathBuf;
use thiserror::Error;

/// Which collectives are the library's, and no longer the MPI's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectivesOption {
    /// Those of which the table of the machine says that they pay.
    Auto,
    /// All up to 4 KiB.
    Small,
    /// Both are measured, and the program ends when it begins MPI. Not a value of `--collectives`: `numa bench mpi`.
    Measure,
}

/// Not a value of `--collectives`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is not auto or small")]
pub struct NotCollectives(String);

/// Parses `auto` or `small`.
pub fn collectives(text: &str) -> Result<CollectivesOption, NotCollectives> {
    match text {
        "auto" => Ok(CollectivesOption::Auto),
        "small" => Ok(CollectivesOption::Small),
        _ => Err(NotCollectives(text.to_owned())),
    }
}

/// The library that has the collectives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collectives {
    /// The library.
    pub library: PathBuf,
    /// Which ones.
    pub which: CollectivesOption,
    /// The table of the machine, or the file for what is measured.
    pub table: Option<PathBuf>,
}

impl CollectivesOption {
    /// Extracts the library.
    pub fn with_library(self) -> Result<Collectives, PreloadError> {
        Ok(Collectives { library: Library::Mpi.extract()?, which: self, table: None })
    }

    /// The value of the variable that the library reads.
    pub(crate) fn value(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Small => "small",
            Self::Measure => "measure",
        }
    }
}

impl Collectives {
    /// Sets the variables that the library reads. A table that the user names comes first.
    pub(crate) fn set(&self, environment: &mut Environment) {
        environment.set(VARIABLE, self.which.value());
        match (&self.table, self.which) {
            (Some(file), CollectivesOption::Measure) => environment.set(TABLE, file),
            (Some(file), _) => environment.set_default(TABLE, file),
            (None, _) => {}
        }
    }
}

const VARIABLE: &str = "NUMAMPI_COLLECTIVES";
const TABLE: &str = "NUMAMPI_TABLE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_option() {
        for option in [CollectivesOption::Auto, CollectivesOption::Small] {
            assert_eq!(collectives(option.value()), Ok(option));
        }
        for wrong in ["", "Auto", "large", "small,auto", "measure"] {
            let error = collectives(wrong).unwrap_err().to_string();
            assert_eq!(error, format!("'{wrong}' is not auto or small"));
        }
    }
}
