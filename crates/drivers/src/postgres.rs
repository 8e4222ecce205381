//! PostgreSQL, with TimescaleDB or without.

mod errors;
mod fetched;
mod schema;
mod session;
mod types;

use errors::PostgresError;
use numakit_push::driver::{DriverNothing, DriverOpen};
use numakit_push::{Delivery, FetchGrid, tls_settings};
use numakit_recording::{Batch, Header};
use session::PostgresSession;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

const CONNECT: Duration = Duration::from_secs(10);

/// A database.
pub struct Postgres {
    place: String,
    config: Config,
    tls: Option<MakeRustlsConnect>,
    header: Option<Arc<Header>>,
    session: Option<PostgresSession>,
}

impl Postgres {
    /// The database of an address. Nothing is sent yet.
    pub fn new(open: DriverOpen) -> Result<Self, PostgresError> {
        let address = &open.address;
        let mut config = Config::new();
        config.host(&address.host).port(address.port).dbname(&address.database);
        config.application_name("numa").connect_timeout(CONNECT);
        if let Some(user) = &open.user {
            config.user(user);
        }
        if let Some(secret) = &open.secret {
            config.password(secret);
        }
        let mode = address.options.get("sslmode").map(String::as_str);
        if mode == Some("disable") && open.authority.is_some() {
            return Err(PostgresError::Contradiction);
        }
        let is_tls = mode == Some("verify-full") || mode.is_none() && open.authority.is_some();
        config.ssl_mode(if is_tls { SslMode::Require } else { SslMode::Disable });
        let settings = if is_tls { Some(tls_settings(open.authority.as_deref())?) } else { None };
        let tls = settings.map(MakeRustlsConnect::new);
        Ok(Self { place: address.place(), config, tls, header: None, session: None })
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
        let mut session = match self.session().await {
            Ok(session) => session,
            Err(error) => return error.delivery(),
        };
        match session.write(&header, batch).await {
            Ok(delivery) => {
                self.session = Some(session);
                delivery
            }
            Err(error) => {
                if !error.ends_session() {
                    self.session = Some(session);
                }
                error.delivery()
            }
        }
    }

    /// The latest description of a host that began before a time.
    pub async fn latest(&mut self, host: &str, before: u64) -> Result<Header, DriverNothing> {
        let mut session = self.session().await.map_err(failed)?;
        let header = session.latest(host, before).await?;
        self.session = Some(session);
        Ok(header)
    }

    /// The rows of that host.
    pub async fn range(&mut self, from: u64, to: u64) -> Result<FetchGrid, DriverNothing> {
        let session = self.session.as_mut();
        let session = session.ok_or_else(|| DriverNothing::Failed("the connection has ended".into()))?;
        session.range(from, to).await
    }

    /// The session, or a new one; it is put back when it may go on.
    async fn session(&mut self) -> Result<PostgresSession, PostgresError> {
        if let Some(session) = self.session.take().filter(PostgresSession::is_open) {
            return Ok(session);
        }
        let connecting = async {
            match &self.tls {
                Some(tls) => connect(&self.config, tls.clone()).await,
                None => connect(&self.config, NoTls).await,
            }
        };
        let place = self.place.clone();
        let client = timeout(CONNECT, connecting)
            .await
            .map_err(|_| PostgresError::Silent { place: place.clone(), after: CONNECT })?
            .map_err(|error| PostgresError::Engine { place: place.clone(), error })?;
        PostgresSession::start(client, place).await
    }
}

async fn connect<T>(config: &Config, tls: T) -> Result<Client, tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket>,
    <T as MakeTlsConnect<Socket>>::Stream: Send + 'static,
    <<T as MakeTlsConnect<Socket>>::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let (client, connection) = config.connect(tls).await?;
    // Its error is that of the next statement.
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

fn failed(error: PostgresError) -> DriverNothing {
    DriverNothing::Failed(error.to_string())
}
