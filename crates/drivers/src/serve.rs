//! Requests and their answers.

use crate::cassandra::Cassandra;
use crate::postgres::Postgres;
use numakit_push::Delivery;
use numakit_push::driver::{
    DriverAnswer, DriverMessage, DriverNothing, DriverOpen, DriverRequest, EncodedRows, WireError,
};
use numakit_recording::Header;
use numakit_sys::output::redirect_standard_output;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::timeout;

/// How long an engine may take for a request; `numa` waits longer.
const LIMIT: Duration = Duration::from_secs(40);

/// Answers requests until standard input ends.
pub fn serve() -> anyhow::Result<()> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    // What a library prints would damage the answers.
    let mut output = redirect_standard_output()?;
    let (to, mut requests) = channel(1);
    std::thread::Builder::new().name("requests".into()).spawn(move || receive(input, &to))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let served = runtime.block_on(async {
        let mut served = Served::default();
        while let Some(request) = requests.recv().await {
            let answer = tokio::select! {
                answer = served.answer(request?) => answer,
                // Nothing is asked before there is an answer: numa has ended.
                _ = requests.recv() => break,
            };
            answer.send(&mut output)?;
        }
        Ok(())
    });
    runtime.shutdown_background();
    served
}

fn receive(input: File, to: &Sender<Result<DriverRequest, WireError>>) {
    let mut input = BufReader::new(input);
    while let Some(request) = DriverRequest::receive(&mut input).transpose() {
        let is_last = request.is_err();
        if to.blocking_send(request).is_err() || is_last {
            break;
        }
    }
}

enum Engine {
    Postgres(Box<Postgres>),
    Cassandra(Box<Cassandra>),
}

#[derive(Default)]
struct Served {
    engine: Option<Engine>,
    header: Option<Arc<Header>>,
}

impl Served {
    async fn answer(&mut self, request: DriverRequest) -> DriverAnswer {
        match request {
            DriverRequest::Open(open) => DriverAnswer::Delivery(self.open(*open)),
            DriverRequest::Describe(header) => {
                let header = Arc::new(*header);
                self.header = Some(Arc::clone(&header));
                match &mut self.engine {
                    Some(Engine::Postgres(postgres)) => postgres.describe(header),
                    Some(Engine::Cassandra(cassandra)) => cassandra.describe(header),
                    None => {}
                }
                DriverAnswer::Delivery(Delivery::Accepted)
            }
            DriverRequest::Rows(rows) => DriverAnswer::Delivery(self.rows(&rows).await),
            DriverRequest::Latest { host, before } => match self.latest(&host, before).await {
                Ok(header) => DriverAnswer::Header(Box::new(header)),
                Err(nothing) => DriverAnswer::Nothing(nothing),
            },
            DriverRequest::Range { from, to } => match self.range(from, to).await {
                Ok(rows) => DriverAnswer::Rows(rows),
                Err(nothing) => DriverAnswer::Nothing(nothing),
            },
        }
    }

    fn open(&mut self, open: DriverOpen) -> Delivery {
        let own = env!("CARGO_PKG_VERSION");
        if open.version != own {
            return Delivery::Denied(format!(
                "numa-drivers has version {own}, and numa {}; install both from one package",
                open.version
            ));
        }
        let engine = match open.engine.as_str() {
            "postgresql" => {
                Postgres::new(open).map(|one| Engine::Postgres(Box::new(one))).map_err(anyhow::Error::from)
            }
            "cassandra" => {
                Cassandra::new(open).map(|one| Engine::Cassandra(Box::new(one))).map_err(Into::into)
            }
            other => return Delivery::Denied(format!("numa-drivers has no driver of {other}")),
        };
        match engine {
            Ok(engine) => {
                self.engine = Some(engine);
                Delivery::Accepted
            }
            Err(error) => Delivery::Denied(format!("{error:#}")),
        }
    }

    async fn rows(&mut self, rows: &EncodedRows) -> Delivery {
        let Some(header) = &self.header else { return Delivery::Denied("rows without a description".into()) };
        let batch = match rows.batch(header.series.len()) {
            Ok(batch) => batch,
            Err(error) => return Delivery::Refused(error.to_string()),
        };
        let delivery = match &mut self.engine {
            Some(Engine::Postgres(postgres)) => timeout(LIMIT, postgres.deliver(&batch)).await,
            Some(Engine::Cassandra(cassandra)) => timeout(LIMIT, cassandra.deliver(&batch)).await,
            None => return Delivery::Denied("rows before an address".into()),
        };
        delivery.unwrap_or_else(|_| Delivery::Down { why: late(), after: None })
    }

    async fn latest(&mut self, host: &str, before: u64) -> Result<Header, DriverNothing> {
        let latest = match &mut self.engine {
            Some(Engine::Postgres(postgres)) => timeout(LIMIT, postgres.latest(host, before)).await,
            Some(Engine::Cassandra(cassandra)) => timeout(LIMIT, cassandra.latest(host, before)).await,
            None => return Err(DriverNothing::Failed("rows before an address".into())),
        };
        latest.map_err(|_| DriverNothing::Failed(late()))?
    }

    async fn range(&mut self, from: u64, to: u64) -> Result<EncodedRows, DriverNothing> {
        let range = match &mut self.engine {
            Some(Engine::Postgres(postgres)) => timeout(LIMIT, postgres.range(from, to)).await,
            Some(Engine::Cassandra(cassandra)) => timeout(LIMIT, cassandra.range(from, to)).await,
            None => return Err(DriverNothing::Failed("rows before an address".into())),
        };
        let grid = range.map_err(|_| DriverNothing::Failed(late()))??;
        EncodedRows::of(&grid.batch()).ok_or(DriverNothing::Long)
    }
}

fn late() -> String {
    format!("the database has not answered for {} s", LIMIT.as_secs())
}
