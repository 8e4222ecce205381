//! What errors of PostgreSQL mean for rows.

use numakit_push::{Delivery, EngineClientError};
use std::error::Error;
use std::io;
use std::time::Duration;
use thiserror::Error;
use tokio_postgres::error::SqlState;
use tokio_rustls::rustls;

/// Why PostgreSQL did not do what was asked.
#[derive(Debug, Error)]
pub enum PostgresError {
    /// It, or the connection to it.
    #[error("{place}: {}", said(error))]
    Engine {
        /// Host and port.
        place: String,
        /// What it says.
        error: tokio_postgres::Error,
    },
    /// It does not answer.
    #[error("cannot connect to {place}: no answer for {} s", after.as_secs())]
    Silent {
        /// Host and port.
        place: String,
        /// For how long.
        after: Duration,
    },
    /// A certificate authority is missing.
    #[error(transparent)]
    Client(#[from] EngineClientError),
    /// TLS was asked for and refused.
    #[error("--ca has no meaning with sslmode=disable; omit one of both")]
    Contradiction,
    /// A newer numa has made the tables.
    #[error(
        "its tables have version {found}, and this numa knows versions up to {known}; install the newer numa, or name another database"
    )]
    Newer {
        /// Of the tables.
        found: i32,
        /// Of this program.
        known: i32,
    },
    /// Somebody has changed the tables.
    #[error("its tables were changed by hand: {0}; undo that, or name another database")]
    Changed(String),
    /// The tables are not ours.
    #[error(
        "it has tables named numa_... that numa did not make, and no table numa_schema; rename them, or name another database"
    )]
    Foreign,
}

/// What an error says, with its causes and what to do.
fn said(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        let fix = match said.code() {
            code if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                "; as a superuser of this database, with its user for NAME: GRANT ALL ON SCHEMA public TO NAME; \
                 GRANT ALL ON ALL TABLES IN SCHEMA public TO NAME"
            }
            code if *code == SqlState::INVALID_CATALOG_NAME => "; create the database, or name another one",
            code if code.code().starts_with("28") => "; check the user, and --password-file",
            _ => "",
        };
        return format!("{} ({}){fix}", said.message(), said.code().code());
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.contains(&part) {
            text = format!("{text}: {part}");
        }
        cause = error.source();
    }
    if is_refusal(error) { text + "; check --password-file, --ca and sslmode" } else { text }
}

impl PostgresError {
    /// Whether the connection cannot be used any more, or the tables must be checked again.
    pub fn ends_session(&self) -> bool {
        !matches!(self.delivery(), Delivery::Refused(_) | Delivery::Large)
    }

    /// What it means for rows.
    pub fn delivery(&self) -> Delivery {
        let why = self.to_string();
        match self {
            Self::Silent { .. } => Delivery::Down { why, after: None },
            Self::Client(_) | Self::Contradiction | Self::Newer { .. } | Self::Changed(_) | Self::Foreign => {
                Delivery::Denied(why)
            }
            Self::Engine { error, .. } => match error.code() {
                Some(code) => by_code(code.code(), why),
                None if is_refusal(error) => Delivery::Denied(why),
                None => Delivery::Down { why, after: None },
            },
        }
    }
}

/// By the class of an error: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn by_code(code: &str, why: String) -> Delivery {
    match (code.get(..2).unwrap_or_default(), code) {
        // Data, and constraints of users.
        ("22" | "23" | "44", _) => Delivery::Refused(why),
        ("54", _) => Delivery::Large,
        // Authentication, database, schema, privileges, tables, a standby server.
        ("28" | "3D" | "3F" | "42" | "0A" | "0L" | "0P", _) | (_, "25006") => Delivery::Denied(why),
        // Connections, locks, resources, shutdown, the system, and what is unknown.
        _ => Delivery::Down { why, after: None },
    }
}

/// Whether an error that is not of the server refuses this client: a password, a certificate. All others are of the system.
fn is_refusal(error: &tokio_postgres::Error) -> bool {
    if error.is_closed() {
        return false;
    }
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
        }
        cause = error.source();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_by_their_class() {
        let of = |code| by_code(code, String::new());
        for code in ["08006", "53100", "53300", "57P01", "57P03", "40P01", "55P03", "XX000", "58030"] {
            assert!(matches!(of(code), Delivery::Down { .. }), "{code}");
        }
        for code in ["28P01", "28000", "3D000", "42501", "42P01", "42703", "25006"] {
            assert!(matches!(of(code), Delivery::Denied(_)), "{code}");
        }
        for code in ["22021", "23505", "23514"] {
            assert!(matches!(of(code), Delivery::Refused(_)), "{code}");
        }
        assert_eq!(of("54000"), Delivery::Large);
    }
}
