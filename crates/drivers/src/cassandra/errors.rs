//! What errors of Cassandra mean for rows.

use numakit_push::Delivery;
use scylla::errors::{
    ConnectionError, ConnectionPoolError, ConnectionSetupRequestErrorKind, DbError, ExecutionError,
    MetadataError, NewSessionError, PagerExecutionError, PrepareError, RequestAttemptError,
};
use thiserror::Error;

/// Why Cassandra did not do what was asked.
#[derive(Debug, Error)]
pub enum CassandraError {
    /// There is no connection.
    #[error("cannot connect: {0}")]
    Session(Box<NewSessionError>),
    /// A statement failed.
    #[error(transparent)]
    Execution(Box<ExecutionError>),
    /// A statement cannot be prepared.
    #[error(transparent)]
    Prepare(Box<PrepareError>),
    /// Rows cannot be read.
    #[error(transparent)]
    Pages(Box<PagerExecutionError>),
    /// An answer is not as it should be.
    #[error("its answer is not understood")]
    Answer,
    /// The name of the keyspace.
    #[error("'{0}' is no name of a keyspace; write 1 to 48 letters, digits and _, a letter first")]
    Name(String),
    /// There is no keyspace.
    #[error("there is no keyspace {0}; create it, or add '?replication=3' to the address")]
    Keyspace(String),
    /// The tables are not those of this program.
    #[error(
        "its tables have version {found}, and this numa knows version {known}; install the other numa, or name another keyspace"
    )]
    Version {
        /// Of the tables.
        found: i32,
        /// Of this program.
        known: i32,
    },
    /// Somebody has changed the tables.
    #[error("its tables were changed by hand: {0}; undo that, or name another keyspace")]
    Changed(String),
    /// TLS was asked for.
    #[error("numa connects to Cassandra without TLS; omit --ca, and use a tunnel")]
    Tls,
}

macro_rules! boxed {
    ($($variant:ident of $error:ty),*) => {
        $(impl From<$error> for CassandraError {
            fn from(error: $error) -> Self {
                Self::$variant(Box::new(error))
            }
        })*
    };
}

boxed!(Session of NewSessionError, Execution of ExecutionError, Prepare of PrepareError, Pages of PagerExecutionError);

impl CassandraError {
    /// What it means for rows. None are refused: their types are those of the tables.
    pub fn delivery(&self, place: &str) -> Delivery {
        let why = format!("{place}: {self}");
        match self {
            Self::Name(_) | Self::Keyspace(_) | Self::Version { .. } | Self::Changed(_) | Self::Tls => {
                Delivery::Denied(why)
            }
            Self::Session(error) if is_login(error) => {
                Delivery::Denied(format!("{why}; check the user, and --password-file"))
            }
            Self::Execution(error) if is_denied(error) => Delivery::Denied(why),
            Self::Prepare(error) if is_unprepared(error) => Delivery::Denied(why),
            Self::Session(_) | Self::Execution(_) | Self::Prepare(_) | Self::Pages(_) | Self::Answer => {
                Delivery::Down { why, after: None }
            }
        }
    }
}

fn is_denied(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, _)) => is_refusal(error),
        ExecutionError::PrepareError(error) => is_unprepared(error),
        _ => false,
    }
}

fn is_unprepared(error: &PrepareError) -> bool {
    use PrepareError::AllAttemptsFailed;
    matches!(error, AllAttemptsFailed { first_attempt: RequestAttemptError::DbError(error, _) } if is_refusal(error))
}

fn is_refusal(error: &DbError) -> bool {
    matches!(
        error,
        DbError::Unauthorized
            | DbError::AuthenticationError
            | DbError::Invalid
            | DbError::SyntaxError
            | DbError::ConfigError
    )
}

/// Whether the engine refuses the user.
fn is_login(error: &NewSessionError) -> bool {
    use ConnectionSetupRequestErrorKind::{DbError as Said, MissingAuthentication};
    let NewSessionError::MetadataError(MetadataError::ConnectionPoolError(ConnectionPoolError::Broken {
        last_connection_error: ConnectionError::ConnectionSetupRequestError(error),
    })) = error
    else {
        return false;
    };
    matches!(&error.error, MissingAuthentication)
        || matches!(&error.error, Said(error, _) if is_refusal(error))
}
