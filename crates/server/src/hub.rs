//! What all clients share: the sources, the state, and the list of who is there.

use crate::access::AccessKeys;
use crate::asked::AskError;
use crate::places::{first_of_most, share};
use crate::queue::Queue;
use crate::refusals::Refusals;
use crate::source::ShownSource;
use crate::wire::{
    self, CONTROLLERS, FromServer, HistoryState, Ns, ObservationState, RecordingState, Role, SensorState,
    SourceInfo, VIEWERS,
};
use numakit_history::Source;
use numakit_session::{ControlCommand, ObeyError, ObservationStatus, Reply};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Gives orders to the observation.
pub type Orders = Box<dyn Fn(ControlCommand, Reply) + Send + Sync>;

/// Files of values that are made or sent at once for one role: each may be large.
const EXPORTS: usize = 4;
/// State is sent at least so often.
const REFRESH: Duration = Duration::from_secs(1);
/// A client that answers nothing for so long gives its place to another one.
const STALLED: Duration = Duration::from_secs(5);

/// The centre.
pub struct Hub {
    /// Who may come in.
    pub access: AccessKeys,
    /// Tells of those who may not.
    pub refusals: Refusals,
    /// Bytes for the history of each source.
    pub budget: usize,
    orders: Option<Orders>,
    /// Files of values that may still be made, for viewers and for control.
    exports: [Arc<Semaphore>; 2],
    shared: Mutex<Shared>,
}

struct Shared {
    sources: Vec<ShownSource>,
    /// In the order of their arrival.
    clients: Vec<Member>,
    state: ObservationState,
    sent: Instant,
    /// Recordings of which it was told that they failed.
    failed: usize,
    kept: Vec<Box<dyn Send>>,
}

/// A client that is connected.
struct Member {
    queue: Arc<Queue>,
    role: Role,
    owner: IpAddr,
}

impl Hub {
    /// A centre without sources. Without `orders`, nothing is sampled.
    pub fn new(access: AccessKeys, budget: usize, orders: Option<Orders>) -> Self {
        let shared = Shared {
            sources: Vec::new(),
            clients: Vec::new(),
            state: ObservationState::default(),
            sent: Instant::now(),
            failed: 0,
            kept: Vec::new(),
        };
        Self {
            access,
            refusals: Refusals::default(),
            budget,
            orders,
            exports: [(); 2].map(|()| Arc::new(Semaphore::new(EXPORTS))),
            shared: Mutex::new(shared),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn to make a file of values and send it, if one is free.
    pub fn export(&self, role: Role) -> Option<OwnedSemaphorePermit> {
        let [viewers, controllers] = &self.exports;
        let turns = if role == Role::Viewer { viewers } else { controllers };
        Arc::clone(turns).try_acquire_owned().ok()
    }

    /// Adds a source and tells everybody; its number, or why there is no room.
    pub fn add(&self, info: SourceInfo, names: Vec<String>, data: Arc<dyn Source>) -> Result<u32, AskError> {
        let mut shared = self.lock();
        let id = shared.sources.len() as u32;
        if shared.sources.len() >= wire::SOURCES {
            return Err(AskError::Sources(id));
        }
        let info = SourceInfo { id, ..info };
        let shown = ShownSource { info: Arc::new(info.clone()), data, names: names.into() };
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
    pub fn source(&self, id: u32) -> Result<ShownSource, AskError> {
        let shared = self.lock();
        let found = shared.sources.get(id as usize).cloned();
        found.ok_or_else(|| AskError::NoSource { id, count: shared.sources.len() })
    }

    /// Whether one more client from there would be taken; why not, otherwise.
    pub fn room(&self, role: Role, address: IpAddr) -> Result<(), AskError> {
        self.lock().room(role, share(address)).map(drop)
    }

    /// Adds a client and greets it; why not, when there are too many.
    pub fn enter(&self, role: Role, address: IpAddr) -> Result<Arc<Queue>, AskError> {
        let mut shared = self.lock();
        let owner = share(address);
        if let Some(at) = shared.room(role, owner)? {
            shared
                .clients
                .remove(at)
                .queue
                .close("disconnected: too many clients, and a newer one took this place; reload the page to reconnect");
        }
        let queue = Arc::new(Queue::default());
        shared.clients.push(Member { queue: Arc::clone(&queue), role, owner });
        shared.refresh();
        let hello = FromServer::Hello {
            protocol: wire::PROTOCOL,
            role,
            instance: self.access.instance.clone(),
            sources: shared.sources.iter().map(|s| (*s.info).clone()).collect(),
            state: shared.state.clone(),
            limits: wire::ClientLimits::ALL,
        };
        queue.text(hello.text());
        for shown in &shared.sources {
            let labels = FromServer::Labels { source: shown.info.id, labels: shown.labels(), all: true };
            queue.text(labels.text());
        }
        let others = FromServer::State(shared.state.clone()).text();
        let older = shared.clients.iter().map(|c| &c.queue).filter(|c| !Arc::ptr_eq(c, &queue));
        older.for_each(|c| c.text(others.clone()));
        Ok(queue)
    }

    /// Forgets a client.
    pub fn leave(&self, queue: &Arc<Queue>) {
        queue.close("gone");
        let mut shared = self.lock();
        shared.clients.retain(|client| !Arc::ptr_eq(&client.queue, queue));
        shared.send_state();
    }

    /// Tells everybody something.
    pub fn tell(&self, message: &FromServer) {
        self.lock().tell(message);
    }

    /// Ends all connections.
    pub fn close(&self, reason: &str) {
        self.lock().clients.drain(..).for_each(|client| client.queue.close(reason));
    }

    /// How the observation goes. Told to everybody when it changed, and every now and then.
    pub fn status(&self, status: &ObservationStatus) {
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
        let told = std::mem::replace(&mut shared.failed, status.failures.len());
        for failure in status.failures.iter().skip(told) {
            shared.tell(&FromServer::Notice { text: failure.clone() });
        }
        if !shared.state.alike(&before) || shared.sent.elapsed() >= REFRESH {
            shared.send_state();
        }
    }

    /// Gives an order.
    pub fn order(&self, order: ControlCommand, answer: Reply) {
        match &self.orders {
            Some(orders) => orders(order, answer),
            None => answer(Err(ObeyError::NotSampling)),
        }
    }

    /// Adds a label to a source and tells everybody.
    pub fn label(&self, source: u32, data: &dyn Source, time: u64, text: &str) {
        let id = data.push_label(time, text);
        let label = wire::WireLabel { id, time_ns: Ns(time), text: text.to_owned() };
        self.tell(&FromServer::Labels { source, labels: vec![label], all: false });
    }

    /// Tells everybody all labels of a source.
    pub fn relabel(&self, shown: &ShownSource) {
        let labels = shown.labels();
        self.tell(&FromServer::Labels { source: shown.info.id, labels, all: true });
    }
}

impl Shared {
    /// Whose place a newcomer takes, if all are taken: that of one who answers nothing, or the
    /// oldest of an owner who has at least two more. An error where there is none.
    fn room(&mut self, role: Role, owner: IpAddr) -> Result<Option<usize>, AskError> {
        self.clients.retain(|client| !client.queue.closed());
        let (most, who) = match role {
            Role::Viewer => (VIEWERS, "viewers"),
            Role::Controller => (CONTROLLERS, "controllers"),
        };
        let alike: Vec<usize> = (0..self.clients.len()).filter(|at| self.clients[*at].role == role).collect();
        if alike.len() < most {
            return Ok(None);
        }
        let silent = alike.iter().copied().max_by_key(|at| self.clients[*at].queue.silence());
        if let Some(at) = silent.filter(|at| self.clients[*at].queue.silence() >= STALLED) {
            return Ok(Some(at));
        }
        let owners: Vec<IpAddr> = alike.iter().map(|at| self.clients[*at].owner).collect();
        let of = |owner: IpAddr| owners.iter().filter(|o| **o == owner).count();
        let crowd = first_of_most(&owners).filter(|at| of(owners[*at]) >= of(owner) + 2);
        crowd.map(|at| Some(alike[at])).ok_or(AskError::Full { limit: most, who })
    }

    fn tell(&self, message: &FromServer) {
        if !self.clients.is_empty() {
            let text = message.text();
            self.clients.iter().for_each(|client| client.queue.text(text.clone()));
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

impl ObservationState {
    /// Whether nothing changed that anybody waits for; counts that always grow do not matter.
    fn alike(&self, other: &Self) -> bool {
        let path = |state: &Self| state.recording.as_ref().map(|r| r.path.clone());
        let seen = |state: &Self| (state.interval_ns, state.paused, state.lost, state.realtime);
        self.sensors == other.sensors && seen(self) == seen(other) && path(self) == path(other)
    }
}
