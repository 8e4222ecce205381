//! Small collectives of MPI programs within one machine: what a program gets for `--collectives`.

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
}

impl CollectivesOption {
    /// Extracts the library.
    pub fn with_library(self) -> Result<Collectives, PreloadError> {
        Ok(Collectives { library: Library::Mpi.extract()?, which: self })
    }

    /// The value of the variable that the library reads.
    pub(crate) fn value(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Small => "small",
        }
    }
}

/// The variable that the library reads.
pub(crate) const VARIABLE: &str = "NUMAMPI_COLLECTIVES";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_option() {
        for option in [CollectivesOption::Auto, CollectivesOption::Small] {
            assert_eq!(collectives(option.value()), Ok(option));
        }
        for wrong in ["", "Auto", "large", "small,auto"] {
            let error = collectives(wrong).unwrap_err().to_string();
            assert_eq!(error, format!("'{wrong}' is not auto or small"));
        }
    }
}
