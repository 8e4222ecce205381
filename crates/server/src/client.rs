//! One client: its messages and its watches.

use crate::client_request_error::ClientRequestError;
use crate::comparer::{Side, compare_sources};
use crate::hub::Hub;
use crate::queue::{Outgoing, Queue};
use crate::source::{Range, ShownSource};
use crate::watch::Watch;
use crate::wire::{ComparedRange, FromServer, LABEL_BYTES, Ns, Role, SourceKind, ToServer, WATCHES};
use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use numakit_model::label::RESERVED;
use numakit_observation::{ControlCommand, ControlError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::{Error, Message};

/// How often new buckets are sent.
const PERIOD: Duration = Duration::from_millis(25);
/// Maximum number of waiting frames: a slow client gets its buckets later.
const WAITING: usize = 8;
/// A client that receives nothing for this long is disconnected.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often clients are pinged.
const PING: Duration = Duration::from_secs(2);
/// Maximum number of fetches of one client at once; its next messages wait.
const FETCHES: usize = 2;
/// Maximum number of messages per second, on average and in a burst.
const RATE: f64 = 50.0;
const BURST: f64 = 200.0;

/// A connected client.
pub struct Client {
    hub: Arc<Hub>,
    queue: Arc<Queue>,
    role: Role,
    who: String,
    watches: Mutex<Vec<Watch>>,
    fetches: Arc<Semaphore>,
}

impl Client {
    /// A client with this queue and role; `who` is its address in log lines.
    pub fn new(hub: Arc<Hub>, queue: Arc<Queue>, role: Role, who: String) -> Self {
        Self {
            hub,
            queue,
            role,
            who,
            watches: Mutex::new(Vec::new()),
            fetches: Arc::new(Semaphore::new(FETCHES)),
        }
    }

    /// Serves it until it disconnects or is disconnected.
    pub async fn serve<S>(self, socket: S)
    where
        S: Stream<Item = Result<Message, Error>> + Sink<Message, Error = Error>,
    {
        let (mut to, mut from) = socket.split();
        tokio::select! {
            () = self.send(&mut to) => {}
            () = self.receive(&mut from) => {}
            () = self.follow() => {}
        }
        let _ = timeout(Duration::from_secs(1), to.close()).await;
        self.hub.leave(&self.queue);
    }

    async fn send(&self, to: &mut (impl Sink<Message, Error = Error> + Unpin)) {
        loop {
            let (message, last) = match self.queue.next().await {
                Outgoing::Ping => (Message::Ping(Bytes::new()), false),
                Outgoing::Text(text) => (Message::text(text), false),
                Outgoing::Binary(bytes) => (Message::binary(bytes), false),
                Outgoing::End(reason) => (Message::text(FromServer::Bye { reason }.text()), true),
            };
            let sent = timeout(PATIENCE, to.send(message)).await;
            if last || !matches!(sent, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// Receives its messages, no faster than [`RATE`].
    async fn receive(&self, from: &mut (impl Stream<Item = Result<Message, Error>> + Unpin)) {
        let (mut allowance, mut before) = (BURST, Instant::now());
        while let Some(message) = from.next().await {
            self.queue.answered();
            let now = Instant::now();
            allowance = (allowance + RATE * now.duration_since(before).as_secs_f64()).min(BURST) - 1.0;
            before = now;
            if allowance < 0.0 {
                sleep_until(now + Duration::from_secs_f64(-allowance / RATE)).await;
            }
            match message {
                Ok(Message::Text(text)) => self.handle(text.as_bytes()).await,
                Ok(Message::Binary(_)) => self.notice("binary messages are not supported; send JSON"),
                Ok(Message::Close(_)) => return,
                Ok(_) => {}
                Err(error) => return self.log_error(&error),
            }
        }
    }

    fn log_error(&self, error: &Error) {
        let disconnected = matches!(error, Error::Protocol(ProtocolError::ResetWithoutClosingHandshake));
        if !disconnected && matches!(error, Error::Capacity(_) | Error::Protocol(_) | Error::Utf8(_)) {
            self.hub.refusal_log.log(&self.who, &error.to_string());
        }
    }

    /// Sends the frames of its watches.
    async fn follow(&self) {
        let (mut ticks, mut last_ping) = (interval(PERIOD), Instant::now());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let now = ticks.tick().await;
            if now.duration_since(last_ping) >= PING {
                last_ping = now;
                self.queue.ping();
            }
            if self.queue.silence() >= PATIENCE {
                return;
            }
            let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
            for watch in watches.iter_mut() {
                if self.queue.waiting() < WAITING
                    && let Some(frame) = watch.frame()
                {
                    self.queue.frame(frame);
                }
            }
        }
    }

    fn notice(&self, text: &str) {
        self.hub.refusal_log.log(&self.who, text);
        self.queue.text(FromServer::Notice { text: text.to_owned() }.text());
    }

    async fn handle(&self, text: &[u8]) {
        match ToServer::parse(text) {
            Err(why) => self.notice(&why.to_string()),
            Ok(message) => self.execute(message).await,
        }
    }

    async fn execute(&self, message: ToServer) {
        let (id, result) = match message {
            ToServer::Watch { id, source, series, step_ns, from_ns, partial } => {
                (id, self.watch(id, source, series, (step_ns, from_ns), partial))
            }
            ToServer::Unwatch { id } => (id, self.unwatch(id)),
            ToServer::Fetch { id, source, series, from_ns, to_ns, buckets } => {
                let range = Range { id, series, from: from_ns.0, to: to_ns.0, buckets: buckets as usize };
                (id, self.fetch(source, range).await)
            }
            ToServer::Findings { id, source, from_ns, to_ns } => {
                (id, self.examine(id, source, from_ns.0, to_ns.0).await)
            }
            ToServer::Compare { id, first, second } => (id, self.compare(id, first, second).await),
            ToServer::Processes { id, on } => {
                self.hub.watch_processes(&self.queue, on);
                (id, Ok(Done::Silent))
            }
            ToServer::Order { id, line } => return self.command(id, &line),
            ToServer::Label { id, source, time_ns, text } => {
                return self.add_label(id, source, time_ns, text);
            }
            ToServer::EditLabel { id, source, label, text } => (
                id,
                self.change_label(source, &text, |c, shown| {
                    let found = shown.data.edit_label(label, &text);
                    c.hub.send_labels(shown);
                    found
                }),
            ),
            ToServer::RemoveLabel { id, source, label } => (
                id,
                self.change_label(source, "-", |c, shown| {
                    let found = shown.data.remove_label(label);
                    c.hub.send_labels(shown);
                    found
                }),
            ),
        };
        match result {
            // The client sees the result as frames.
            Ok(Done::Silent) => {}
            Ok(Done::Reply) => reply(&self.queue, id, Ok(String::new())),
            Err(why) => reply(&self.queue, id, Err(why)),
        }
    }

    fn watch(
        &self,
        id: u32,
        source: u32,
        series: Vec<u32>,
        (step, from): (Ns, Ns),
        partial: bool,
    ) -> Result<Done, ClientRequestError> {
        let watch = Watch::new(id, self.hub.source(source)?, series, step, from, partial)?;
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.retain(|w| w.id() != id);
        if watches.len() >= WATCHES {
            return Err(ClientRequestError::Watches);
        }
        watches.push(watch);
        Ok(Done::Silent)
    }

    fn unwatch(&self, id: u32) -> Result<Done, ClientRequestError> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner).retain(|w| w.id() != id);
        Ok(Done::Silent)
    }

    /// Answers from another thread, since it may take long.
    async fn fetch(&self, source: u32, range: Range) -> Result<Done, ClientRequestError> {
        // Without a limit, one client could delay all others.
        let permit = Arc::clone(&self.fetches).acquire_owned().await;
        let shown = self.hub.source(source)?;
        let queue = Arc::clone(&self.queue);
        tokio::task::spawn_blocking(move || {
            match shown.answer(&range) {
                Ok(frame) => queue.frame(frame),
                Err(why) => reply(&queue, range.id, Err(why)),
            }
            drop(permit);
        });
        Ok(Done::Silent)
    }

    /// Answers from another thread as well.
    async fn examine(&self, id: u32, source: u32, from: u64, to: u64) -> Result<Done, ClientRequestError> {
        let permit = Arc::clone(&self.fetches).acquire_owned().await;
        let shown = self.hub.whole_source(source)?;
        let (complete, queue) = (self.hub.header_addition(), Arc::clone(&self.queue));
        tokio::task::spawn_blocking(move || {
            let rows = shown.rows.as_ref().map(|rows| (rows, complete));
            let found = Box::new(shown.examiner.examine_rows(shown.data.as_ref(), rows, (from, to)));
            queue.text(FromServer::Findings { id, source, found }.text());
            drop(permit);
        });
        Ok(Done::Silent)
    }

    /// Answers from another thread as well: whole recordings are read.
    async fn compare(
        &self,
        id: u32,
        first: ComparedRange,
        second: ComparedRange,
    ) -> Result<Done, ClientRequestError> {
        let permit = Arc::clone(&self.fetches).acquire_owned().await;
        let sources = (self.hub.whole_source(first.source)?, self.hub.whole_source(second.source)?);
        let (complete, queue) = (self.hub.header_addition(), Arc::clone(&self.queue));
        tokio::task::spawn_blocking(move || {
            let sides = (Side { shown: &sources.0, range: first }, Side { shown: &sources.1, range: second });
            match compare_sources(&sides.0, &sides.1, complete) {
                Ok(compared) => queue.text(FromServer::Compared { id, compared: Box::new(compared) }.text()),
                Err(why) => reply(&queue, id, Err(why)),
            }
            drop(permit);
        });
        Ok(Done::Silent)
    }

    fn check_controller(&self) -> Result<(), ClientRequestError> {
        match self.role {
            Role::Controller => Ok(()),
            Role::Viewer => {
                self.hub.refusal_log.log(&self.who, &ClientRequestError::Viewer.to_string());
                Err(ClientRequestError::Viewer)
            }
        }
    }

    fn command(&self, id: u32, line: &str) {
        let parse =
            || ControlCommand::parse(line.as_bytes()).map_err(|error| ControlError::from(error).into());
        match self.check_controller().and_then(|()| parse()) {
            Err(why) => reply(&self.queue, id, Err(why)),
            Ok(command) => self.send_command(id, command),
        }
    }

    fn send_command(&self, id: u32, command: ControlCommand) {
        let queue = Arc::clone(&self.queue);
        self.hub.send_command(
            command,
            Box::new(move |result| reply(&queue, id, result.map_err(ClientRequestError::from))),
        );
    }

    /// Adds a label. The sampler adds a label without a time, so that recordings have it too.
    fn add_label(&self, id: u32, source: u32, time: Option<Ns>, text: String) {
        let shown = match self.source_for_label(source, &text) {
            Ok(shown) => shown,
            Err(why) => return reply(&self.queue, id, Err(why)),
        };
        let last = shown.data.span().map_or(0, |(_, last)| last);
        match time {
            None if shown.info.kind == SourceKind::Live => self.send_command(id, ControlCommand::Label(text)),
            time => {
                self.hub.label(source, shown.data.as_ref(), time.map_or(last, |t| t.0), &text);
                reply(&self.queue, id, Ok(String::new()));
            }
        }
    }

    /// The source, if this client may add this label.
    fn source_for_label(&self, source: u32, text: &str) -> Result<ShownSource, ClientRequestError> {
        self.check_controller()?;
        if text.trim().is_empty() || text.len() > LABEL_BYTES {
            return Err(ClientRequestError::LabelLength(text.len()));
        }
        if text.starts_with(RESERVED) {
            return Err(ClientRequestError::Reserved);
        }
        self.hub.whole_source(source)
    }

    fn change_label(
        &self,
        source: u32,
        text: &str,
        change: impl FnOnce(&Self, &ShownSource) -> bool,
    ) -> Result<Done, ClientRequestError> {
        let shown = self.source_for_label(source, text)?;
        if change(self, &shown) { Ok(Done::Reply) } else { Err(ClientRequestError::NoLabel) }
    }
}

/// How the client learns that its request succeeded.
enum Done {
    /// From frames.
    Silent,
    /// From a reply.
    Reply,
}

fn reply(queue: &Queue, id: u32, result: Result<String, ClientRequestError>) {
    let (ok, text) = match result {
        Ok(text) => (true, text),
        Err(why) => (false, why.to_string()),
    };
    queue.text(FromServer::Reply { id, ok, text }.text());
}
