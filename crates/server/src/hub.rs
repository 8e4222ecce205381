//! What all clients share: the sources, the state, and the list of who is there.

use crate::access::Access;
use crate::queue::Queue;
use crate::refusals::Refusals;
use crate::source::Shown;
use crate::wire::{self, FromServer, HistoryState, Ns, RecordingState, SensorState, SourceInfo, State};
use numakit_history::Source;
use numakit_session::{Order, Status};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Takes the answer to an order.
pub type Answer = Box<dyn FnOnce(Result<String, String>) + Send>;
/// Gives orders to the observation.
pub type Orders = Box<dyn Fn(Order, Answer) + Send + Sync>;

/// State is sent at least so often.
const REFRESH: Duration = Duration::from_secs(1);

/// The centre.
pub struct Hub {
    /// Who may come in.
    pub access: Access,
    /// Tells of those who may not.
    pub refusals: Refusals,
    /// Bytes for the history of each source.
    pub budget: usize,
    orders: Option<Orders>,
    shared: Mutex<Shared>,
}

struct Shared {
    sources: Vec<Shown>,
    clients: Vec<Arc<Queue>>,
    state: State,
    sent: Instant,
    kept: Vec<Box<dyn Send>>,
}

impl Hub {
    /// A centre without sources. Without `orders`, nothing is sampled.
    pub fn new(access: Access, budget: usize, orders: Option<Orders>) -> Self {
        let shared = Shared {
            sources: Vec::new(),
            clients: Vec::new(),
            state: State::default(),
            sent: Instant::now(),
            kept: Vec::new(),
        };
        Self { access, refusals: Refusals::default(), budget, orders, shared: Mutex::new(shared) }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a source and tells everybody; its number, or why there is no room.
    pub fn add(&self, info: SourceInfo, names: Vec<String>, data: Arc<dyn Source>) -> Result<u32, String> {
        let mut shared = self.lock();
        let id = shared.sources.len() as u32;
        if shared.sources.len() >= wire::SOURCES {
            return Err(format!("{id} sources are open already; start another server for more"));
        }
        let info = SourceInfo { id, ..info };
        let shown = Shown { info: Arc::new(info.clone()), data, names: names.into() };
        shared.tell(&FromServer::Source { source: Box::new(info) });
        shared.tell(&FromServer::Labels { source: id, labels: shown.labels(), all: true });
        shared.sources.push(shown);
        Ok(id)
    }

    /// Keeps what a source needs, such as its file, to the end.
    pub fn keep(&self, what: Box<dyn Send>) {
        self.lock().kept.push(what);
    }

    /// The source of that number.
    pub fn source(&self, id: u32) -> Result<Shown, String> {
        let shared = self.lock();
        let found = shared.sources.get(id as usize).cloned();
        found.ok_or_else(|| format!("source {id} does not exist; there are {}", shared.sources.len()))
    }

    /// Whether one more client would be taken; why not, otherwise.
    pub fn room(&self) -> Result<(), String> {
        self.lock().room()
    }

    /// Adds a client and greets it; why not, when there are too many.
    pub fn enter(&self, role: wire::Role) -> Result<Arc<Queue>, String> {
        let mut shared = self.lock();
        shared.room()?;
        let queue = Arc::new(Queue::default());
        shared.clients.push(Arc::clone(&queue));
        shared.refresh();
        let hello = FromServer::Hello {
            protocol: wire::PROTOCOL,
            role,
            instance: self.access.instance.clone(),
            sources: shared.sources.iter().map(|s| (*s.info).clone()).collect(),
            state: shared.state.clone(),
            limits: wire::Limits::ALL,
        };
        queue.text(hello.text());
        for shown in &shared.sources {
            let labels = FromServer::Labels { source: shown.info.id, labels: shown.labels(), all: true };
            queue.text(labels.text());
        }
        let others = FromServer::State(shared.state.clone()).text();
        shared.clients.iter().filter(|c| !Arc::ptr_eq(c, &queue)).for_each(|c| c.text(others.clone()));
        Ok(queue)
    }

    /// Forgets a client.
    pub fn leave(&self, queue: &Arc<Queue>) {
        queue.close("gone");
        let mut shared = self.lock();
        shared.clients.retain(|client| !Arc::ptr_eq(client, queue));
        shared.send_state();
    }

    /// Tells everybody something.
    pub fn tell(&self, message: &FromServer) {
        self.lock().tell(message);
    }

    /// Ends all connections.
    pub fn close(&self, reason: &str) {
        self.lock().clients.drain(..).for_each(|client| client.close(reason));
    }

    /// How the observation goes. Told to everybody when it changed, and every now and then.
    pub fn status(&self, status: &Status) {
        let mut shared = self.lock();
        let before = shared.state.clone();
        let state = &mut shared.state;
        state.interval_ns = u64::try_from(status.interval.as_nanos()).unwrap_or(u64::MAX);
        state.paused = status.paused;
        state.samples = status.samples;
        state.lost = status.lost;
        state.realtime = status.realtime;
        let sensor = |(name, on): &(String, bool)| SensorState { name: name.clone(), on: *on };
        state.sensors = status.sensors.iter().map(sensor).collect();
        state.recording = status
            .recording
            .as_ref()
            .map(|(path, bytes)| RecordingState { path: path.display().to_string(), bytes: *bytes });
        state.history.budget = self.budget as u64;
        if !state.alike(&before) || shared.sent.elapsed() >= REFRESH {
            shared.send_state();
        }
    }

    /// Gives an order.
    pub fn order(&self, order: Order, answer: Answer) {
        match &self.orders {
            Some(orders) => orders(order, answer),
            None => answer(Err("nothing is sampled here: this server shows recordings".into())),
        }
    }

    /// Adds a label to a source and tells everybody.
    pub fn label(&self, source: u32, data: &dyn Source, time: u64, text: &str) {
        let id = data.push_label(time, text);
        let label = wire::Label { id, time_ns: Ns(time), text: text.to_owned() };
        self.tell(&FromServer::Labels { source, labels: vec![label], all: false });
    }

    /// Tells everybody all labels of a source.
    pub fn relabel(&self, shown: &Shown) {
        let labels = shown.labels();
        self.tell(&FromServer::Labels { source: shown.info.id, labels, all: true });
    }
}

impl Shared {
    fn room(&mut self) -> Result<(), String> {
        self.clients.retain(|client| !client.closed());
        if self.clients.len() < wire::CLIENTS {
            return Ok(());
        }
        Err(format!("{} clients are connected already; close another page first", wire::CLIENTS))
    }

    fn tell(&self, message: &FromServer) {
        if !self.clients.is_empty() {
            let text = message.text();
            self.clients.iter().for_each(|client| client.text(text.clone()));
        }
    }

    /// Fills in what does not come with a status.
    fn refresh(&mut self) {
        self.state.clients = self.clients.len() as u32;
        let Some(first) = self.sources.first() else { return };
        let (from, to) = first.data.span().unwrap_or_default();
        self.state.history = HistoryState {
            from_ns: Ns(from),
            to_ns: Ns(to),
            full_from_ns: Ns(first.data.full_since().min(to)),
            bytes: first.data.bytes() as u64,
            budget: self.state.history.budget,
        };
    }

    fn send_state(&mut self) {
        self.refresh();
        self.sent = Instant::now();
        self.tell(&FromServer::State(self.state.clone()));
    }
}

impl State {
    /// Whether nothing changed that anybody waits for; counts that always grow do not matter.
    fn alike(&self, other: &Self) -> bool {
        let path = |state: &Self| state.recording.as_ref().map(|r| r.path.clone());
        let seen = |state: &Self| (state.interval_ns, state.paused, state.lost, state.realtime);
        self.sensors == other.sensors && seen(self) == seen(other) && path(self) == path(other)
    }
}
