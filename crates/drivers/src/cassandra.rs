//! Cassandra: a partition per host, series and day, so that none grows without limit and old days are dropped whole.

mod errors;
mod fetched;
mod rows;
mod schema;

use errors::CassandraError;
use numakit_push::Delivery;
use numakit_push::driver::DriverOpen;
use numakit_recording::{Batch, Header};
use rows::Statements;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use std::sync::Arc;
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(10);
const DAY: i32 = 86_400;

/// A keyspace.
pub struct Cassandra {
    open: DriverOpen,
    header: Option<Arc<Header>>,
    connected: Option<Connected>,
}

struct Connected {
    session: Session,
    statements: Statements,
    /// What was described last.
    described: Option<Arc<Header>>,
}

impl Cassandra {
    /// The keyspace of an address. Nothing is sent yet.
    pub fn new(open: DriverOpen) -> Result<Self, CassandraError> {
        if open.authority.is_some() {
            return Err(CassandraError::Tls);
        }
        schema::check_name(&open.address.database)?;
        Ok(Self { open, header: None, connected: None })
    }

    /// The following rows are of this recording.
    pub fn describe(&mut self, header: Arc<Header>) {
        self.header = Some(header);
    }

    /// Writes rows once.
    pub async fn deliver(&mut self, batch: &Batch) -> Delivery {
        let Some(header) = self.header.clone() else {
            return Delivery::Denied("rows without a description".into());
        };
        match self.write(&header, batch).await {
            Ok(()) => Delivery::Accepted,
            Err(error) => error.delivery(&self.open.address.place()),
        }
    }

    async fn write(&mut self, header: &Arc<Header>, batch: &Batch) -> Result<(), CassandraError> {
        // After an error that is not of a moment, tables are checked again.
        let mut connected = match self.connected.take() {
            Some(connected) => connected,
            None => self.connect().await?,
        };
        let Connected { session, statements, described } = &mut connected;
        if !described.as_ref().is_some_and(|last| Arc::ptr_eq(last, header)) {
            statements.describe(session, header).await?;
            *described = Some(Arc::clone(header));
        }
        statements.write(session, header, batch).await?;
        self.connected = Some(connected);
        Ok(())
    }

    async fn connect(&self) -> Result<Connected, CassandraError> {
        let address = &self.open.address;
        let mut builder = SessionBuilder::new().known_node(address.place()).connection_timeout(CONNECT);
        builder = builder.fetch_schema_metadata(false);
        if let (Some(user), Some(secret)) = (&self.open.user, &self.open.secret) {
            builder = builder.user(user, secret);
        }
        let session = builder.build().await?;
        let option = |key: &str| address.options.get(key).map(String::as_str);
        let days: Option<i32> = option("ttl").and_then(|ttl| ttl.strip_suffix('d')?.parse().ok());
        let ttl = days.map_or(0, |days| days.saturating_mul(DAY));
        schema::prepare(&session, &address.database, option("replication"), ttl).await?;
        let statements = Statements::prepare(&session, &address.database, ttl).await?;
        Ok(Connected { session, statements, described: None })
    }
}
