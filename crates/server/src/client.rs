//! One client: its messages, its watches, and what is sent to it.

use crate::asked::AskError;
use crate::hub::Hub;
use crate::queue::{Outgoing, Queue};
use crate::source::{Range, ShownSource};
use crate::watch::Watch;
use crate::wire::{FromServer, LABEL_BYTES, Ns, Role, SourceKind, ToServer, WATCHES};
use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use numakit_model::label::RESERVED;
use numakit_session::{ControlCommand, ObeyError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::{Error, Message};

/// New buckets are looked for so often.
const PERIOD: Duration = Duration::from_millis(25);
/// Frames are not made while more than these wait: what a slow client misses, it gets later.
const WAITING: usize = 8;
/// A client that takes nothing for so long is gone.
const PATIENCE: Duration = Duration::from_secs(120);
/// Clients are asked so often whether they are there.
const ASK: Duration = Duration::from_secs(2);
/// Answers of one client that are worked on at once; more of its messages wait.
const FETCHES: usize = 2;
/// Messages a second, in the long run and at once.
const RATE: f64 = 50.0;
const BURST: f64 = 200.0;

/// A client that is connected.
pub struct Client {
    hub: Arc<Hub>,
    queue: Arc<Queue>,
    role: Role,
    who: String,
    watches: Mutex<Vec<Watch>>,
    fetches: Arc<Semaphore>,
}

impl Client {
    /// One that came in.
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

    /// Serves it until it goes or is let go.
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

    /// Takes its messages, no faster than allowed: whoever sends more has to wait.
    async fn receive(&self, from: &mut (impl Stream<Item = Result<Message, Error>> + Unpin)) {
        let (mut allowance, mut before) = (BURST, Instant::now());
        while let Some(message) = from.next().await {
            self.queue.heard();
            let now = Instant::now();
            allowance = (allowance + RATE * now.duration_since(before).as_secs_f64()).min(BURST) - 1.0;
            before = now;
            if allowance < 0.0 {
                sleep_until(now + Duration::from_secs_f64(-allowance / RATE)).await;
            }
            match message {
                Ok(Message::Text(text)) => self.take(text.as_bytes()).await,
                Ok(Message::Binary(_)) => self.notice("binary messages are not supported; send JSON"),
                Ok(Message::Close(_)) => return,
                Ok(_) => {}
                Err(error) => return self.broken(&error),
            }
        }
    }

    fn broken(&self, error: &Error) {
        let gone = matches!(error, Error::Protocol(ProtocolError::ResetWithoutClosingHandshake));
        if !gone && matches!(error, Error::Capacity(_) | Error::Protocol(_) | Error::Utf8(_)) {
            self.hub.refusals.tell(&self.who, &error.to_string());
        }
    }

    /// Sends what its watches have to tell.
    async fn follow(&self) {
        let (mut ticks, mut asked) = (interval(PERIOD), Instant::now());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let now = ticks.tick().await;
            if now.duration_since(asked) >= ASK {
                asked = now;
                self.queue.ask();
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
        self.hub.refusals.tell(&self.who, text);
        self.queue.text(FromServer::Notice { text: text.to_owned() }.text());
    }

    async fn take(&self, text: &[u8]) {
        match ToServer::parse(text) {
            Err(why) => self.notice(&why.to_string()),
            Ok(message) => self.obey(message).await,
        }
    }

    async fn obey(&self, message: ToServer) {
        let (id, result) = match message {
            ToServer::Watch { id, source, series, step_ns, from_ns, partial } => {
                (id, self.watch(id, source, series, (step_ns, from_ns), partial))
            }
            ToServer::Unwatch { id } => (id, self.unwatch(id)),
            ToServer::Fetch { id, source, series, from_ns, to_ns, buckets } => {
                let range = Range { id, series, from: from_ns.0, to: to_ns.0, buckets: buckets as usize };
                (id, self.fetch(source, range).await)
            }
            ToServer::Order { id, line } => return self.order(id, &line),
            ToServer::Label { id, source, time_ns, text } => {
                return self.note(id, source, time_ns, text);
            }
            ToServer::EditLabel { id, source, label, text } => (
                id,
                self.label(source, &text, |c, shown| {
                    let found = shown.data.edit_label(label, &text);
                    c.hub.relabel(shown);
                    found
                }),
            ),
            ToServer::RemoveLabel { id, source, label } => (
                id,
                self.label(source, "-", |c, shown| {
                    let found = shown.data.remove_label(label);
                    c.hub.relabel(shown);
                    found
                }),
            ),
        };
        match result {
            // What is sent anyway needs no reply.
            Ok(Done::Silent) => {}
            Ok(Done::Told) => reply(&self.queue, id, Ok(String::new())),
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
    ) -> Result<Done, AskError> {
        let watch = Watch::new(id, self.hub.source(source)?, series, step, from, partial)?;
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.retain(|w| w.id() != id);
        if watches.len() >= WATCHES {
            return Err(AskError::Watches);
        }
        watches.push(watch);
        Ok(Done::Silent)
    }

    fn unwatch(&self, id: u32) -> Result<Done, AskError> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner).retain(|w| w.id() != id);
        Ok(Done::Silent)
    }

    /// Answers from another thread: it may take a while.
    async fn fetch(&self, source: u32, range: Range) -> Result<Done, AskError> {
        // What others ask for must not come after all that this one asks for.
        let turn = Arc::clone(&self.fetches).acquire_owned().await;
        let shown = self.hub.source(source)?;
        let queue = Arc::clone(&self.queue);
        tokio::task::spawn_blocking(move || {
            match shown.answer(&range) {
                Ok(frame) => queue.frame(frame),
                Err(why) => reply(&queue, range.id, Err(why)),
            }
            drop(turn);
        });
        Ok(Done::Silent)
    }

    fn controls(&self) -> Result<(), AskError> {
        match self.role {
            Role::Controller => Ok(()),
            Role::Viewer => {
                self.hub.refusals.tell(&self.who, &AskError::Viewer.to_string());
                Err(AskError::Viewer)
            }
        }
    }

    fn order(&self, id: u32, line: &str) {
        let parse = || ControlCommand::parse(line.as_bytes()).map_err(|error| ObeyError::from(error).into());
        match self.controls().and_then(|()| parse()) {
            Err(why) => reply(&self.queue, id, Err(why)),
            Ok(order) => self.give(id, order),
        }
    }

    fn give(&self, id: u32, order: ControlCommand) {
        let queue = Arc::clone(&self.queue);
        self.hub.order(order, Box::new(move |result| reply(&queue, id, result.map_err(AskError::from))));
    }

    /// A label of this moment is noted by the sampler, so that recordings have it as well.
    fn note(&self, id: u32, source: u32, time: Option<Ns>, text: String) {
        let shown = match self.labelled(source, &text) {
            Ok(shown) => shown,
            Err(why) => return reply(&self.queue, id, Err(why)),
        };
        let last = shown.data.span().map_or(0, |(_, last)| last);
        match time {
            None if shown.info.kind == SourceKind::Live => self.give(id, ControlCommand::Label(text)),
            time => {
                self.hub.label(source, shown.data.as_ref(), time.map_or(last, |t| t.0), &text);
                reply(&self.queue, id, Ok(String::new()));
            }
        }
    }

    /// The source, if this client may label it so.
    fn labelled(&self, source: u32, text: &str) -> Result<ShownSource, AskError> {
        self.controls()?;
        if text.trim().is_empty() || text.len() > LABEL_BYTES {
            return Err(AskError::LabelLength(text.len()));
        }
        if text.starts_with(RESERVED) {
            return Err(AskError::Reserved);
        }
        self.hub.source(source)
    }

    fn label(
        &self,
        source: u32,
        text: &str,
        change: impl FnOnce(&Self, &ShownSource) -> bool,
    ) -> Result<Done, AskError> {
        let shown = self.labelled(source, text)?;
        if change(self, &shown) { Ok(Done::Told) } else { Err(AskError::NoLabel) }
    }
}

/// What was done.
enum Done {
    /// And will be seen.
    Silent,
    /// And is to be said.
    Told,
}

fn reply(queue: &Queue, id: u32, result: Result<String, AskError>) {
    let (ok, text) = match result {
        Ok(text) => (true, text),
        Err(why) => (false, why.to_string()),
    };
    queue.text(FromServer::Reply { id, ok, text }.text());
}
