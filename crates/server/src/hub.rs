//! What all clients share: the sources, the state, and the list of clients.

use crate::access::AccessKeys;
use crate::client_request_error::ClientRequestError;
use crate::comparer::HeaderAddition;
use crate::connections::{oldest_of_largest_owner, owner_of};
use crate::processes::ProcessWatch;
use crate::queue::Queue;
use crate::refusal_log::RefusalLog;
use crate::results::{self, ShownResult};
use crate::source::ShownSource;
use crate::wire::{
    self, CONTROLLERS, FromServer, HistoryState, Ns, ObservationState, OpeningInfo, RecordingState, Role,
    SensorState, SourceInfo, VIEWERS,
};
use numakit_history::Source;
use numakit_observation::{ControlCommand, ControlError, ObservationStatus, Reply};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Sends commands to the observation.
pub type ControlSender = Box<dyn Fn(ControlCommand, Reply) + Send + Sync>;

/// Maximum number of CSV exports at once for one role: each may be large.
const EXPORTS: usize = 4;
/// The state is sent at least this often.
const REFRESH: Duration = Duration::from_secs(1);
/// A client that answers nothing for this long may be replaced by another one.
const STALLED: Duration = Duration::from_secs(5);

/// What all clients share.
pub struct Hub {
    /// Tokens, cookies and host names.
    pub access: AccessKeys,
    /// Log of refused requests.
    pub refusal_log: RefusalLog,
    /// Memory for the history of each source in bytes.
    pub budget: usize,
    control: Option<ControlSender>,
    /// Permits for CSV exports, of viewers and of controllers.
    exports: [Arc<Semaphore>; 2],
    shared: Mutex<Shared>,
}

struct Shared {
    sources: Vec<ShownSource>,
    /// The recordings that will be sources.
    opening: Vec<OpeningInfo>,
    /// Messages for every client, also for those that connect later.
    notices: Vec<String>,
    /// Oldest first.
    clients: Vec<Member>,
    state: ObservationState,
    sent: Instant,
    /// Number of failures of recordings that clients were notified of.
    notified: usize,
    kept: Vec<Box<dyn Send>>,
    results: Vec<ShownResult>,
    processes: Arc<ProcessWatch>,
    complete: HeaderAddition,
}

/// A connected client.
struct Member {
    queue: Arc<Queue>,
    role: Role,
    owner: IpAddr,
}

impl Hub {
    /// A hub without sources. Without `control`, nothing is sampled.
    pub fn new(access: AccessKeys, budget: usize, control: Option<ControlSender>) -> Self {
        let shared = Shared {
            sources: Vec::new(),
            opening: Vec::new(),
            notices: Vec::new(),
            clients: Vec::new(),
            state: ObservationState::default(),
            sent: Instant::now(),
            notified: 0,
            kept: Vec::new(),
            results: Vec::new(),
            processes: Arc::default(),
            complete: |_| (),
        };
        Self {
            access,
            refusal_log: RefusalLog::default(),
            budget,
            control,
            exports: [(); 2].map(|()| Arc::new(Semaphore::new(EXPORTS))),
            shared: Mutex::new(shared),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit for a CSV export, if one is free.
    pub fn export_permit(&self, role: Role) -> Option<OwnedSemaphorePermit> {
        let [viewers, controllers] = &self.exports;
        let permits = if role == Role::Viewer { viewers } else { controllers };
        Arc::clone(permits).try_acquire_owned().ok()
    }

    /// Adds a source and sends it to all clients; its number, or an error if there are too many.
    pub fn add(&self, shown: ShownSource) -> Result<u32, ClientRequestError> {
        let mut shared = self.lock();
        let id = shared.sources.len() as u32;
        if shared.sources.len() >= wire::SOURCES {
            return Err(ClientRequestError::Sources(id));
        }
        let shown = shared.announced(id, shown);
        shared.sources.push(shown);
        Ok(id)
    }

    /// Shows more of a recording in place of the source with this number, and sends it to all clients.
    pub fn replace(&self, id: u32, shown: ShownSource) -> Result<u32, ClientRequestError> {
        let mut shared = self.lock();
        let count = shared.sources.len();
        if id as usize >= count {
            return Err(ClientRequestError::NoSource { id, count });
        }
        // Clients request again what they show as soon as they have the message, and wait for this lock.
        let shown = shared.announced(id, shown);
        shared.sources[id as usize] = shown;
        Ok(id)
    }

    /// Sets which recordings are being opened, and sends it to all clients if it changed.
    pub fn set_opening(&self, opening: Vec<OpeningInfo>) {
        let mut shared = self.lock();
        if shared.opening != opening {
            shared.opening.clone_from(&opening);
            shared.broadcast(&FromServer::Opening { opening });
        }
    }

    /// An error while recordings are being opened: their numbers are known to clients, and none may be taken.
    pub fn check_opened(&self) -> Result<(), ClientRequestError> {
        match self.lock().opening.first().cloned() {
            Some(OpeningInfo { name, percent }) => Err(ClientRequestError::Opening { name, percent }),
            None => Ok(()),
        }
    }

    /// Keeps what a source needs, such as its file, until the server ends.
    pub fn keep(&self, what: Box<dyn Send>) {
        self.lock().kept.push(what);
    }

    /// Shows the processes of the machine to clients that look at them.
    pub fn show_processes(&self, watch: ProcessWatch) {
        self.lock().processes = Arc::new(watch);
    }

    /// A client begins to look at the processes, or looks no more.
    pub fn watch_processes(&self, queue: &Arc<Queue>, on: bool) {
        let watch = Arc::clone(&self.lock().processes);
        if on { watch.look(queue) } else { watch.leave(queue) }
    }

    /// From now on, headers of recordings that are compared are completed with this.
    pub fn complete_headers(&self, with: HeaderAddition) {
        self.lock().complete = with;
    }

    /// What completes the headers of recordings that are compared.
    pub fn header_addition(&self) -> HeaderAddition {
        self.lock().complete
    }

    /// The number of connected clients.
    pub fn clients(&self) -> usize {
        self.lock().clients.iter().filter(|client| !client.queue.closed()).count()
    }

    /// Shows results of `numa explain`, in place of sources.
    pub fn show_results(&self, results: Vec<ShownResult>) {
        self.lock().results = results;
    }

    /// The results as JSON.
    pub fn results(&self) -> String {
        results::as_json(&self.lock().results)
    }

    /// The source with this number.
    pub fn source(&self, id: u32) -> Result<ShownSource, ClientRequestError> {
        let shared = self.lock();
        let found = shared.sources.get(id as usize).cloned();
        found.ok_or_else(|| match shared.opening.first().cloned() {
            Some(OpeningInfo { name, percent }) => ClientRequestError::StillOpening { id, name, percent },
            None => ClientRequestError::NoSource { id, count: shared.sources.len() },
        })
    }

    /// The source with this number; an error also while a part of it was read only.
    pub fn whole_source(&self, id: u32) -> Result<ShownSource, ClientRequestError> {
        let shown = self.source(id)?;
        match shown.info.read_percent {
            Some(percent) => Err(ClientRequestError::Partial { name: shown.info.name.clone(), percent }),
            None => Ok(shown),
        }
    }

    /// An error if one more client from this address would be refused.
    pub fn check_room(&self, role: Role, address: IpAddr) -> Result<(), ClientRequestError> {
        self.lock().make_room(role, owner_of(address)).map(drop)
    }

    /// Adds a client and sends it the first message; an error if there are too many.
    pub fn enter(&self, role: Role, address: IpAddr) -> Result<Arc<Queue>, ClientRequestError> {
        let mut shared = self.lock();
        let owner = owner_of(address);
        if let Some(at) = shared.make_room(role, owner)? {
            shared
                .clients
                .remove(at)
                .queue
                .close("disconnected: too many clients, and a newer one replaced this one; reload the page to reconnect");
        }
        let queue = Arc::new(Queue::default());
        shared.clients.push(Member { queue: Arc::clone(&queue), role, owner });
        shared.refresh();
        let hello = FromServer::Hello {
            protocol: wire::PROTOCOL,
            role,
            instance: self.access.instance.clone(),
            sources: shared.sources.iter().map(|s| (*s.info).clone()).collect(),
            opening: shared.opening.clone(),
            state: shared.state.clone(),
            limits: wire::ClientLimits::ALL,
        };
        queue.text(hello.text());
        for shown in &shared.sources {
            let labels = FromServer::Labels { source: shown.info.id, labels: shown.labels(), all: true };
            queue.text(labels.text());
        }
        for text in &shared.notices {
            queue.text(FromServer::Notice { text: text.clone() }.text());
        }
        let others = FromServer::State(shared.state.clone()).text();
        let older = shared.clients.iter().map(|c| &c.queue).filter(|c| !Arc::ptr_eq(c, &queue));
        older.for_each(|c| c.text(others.clone()));
        Ok(queue)
    }

    /// Removes a client.
    pub fn leave(&self, queue: &Arc<Queue>) {
        queue.close("disconnected");
        self.watch_processes(queue, false);
        let mut shared = self.lock();
        shared.clients.retain(|client| !Arc::ptr_eq(&client.queue, queue));
        shared.send_state();
    }

    /// Sends a message to all clients.
    pub fn broadcast(&self, message: &FromServer) {
        self.lock().broadcast(message);
    }

    /// Sends a notice to all clients, and to those that come later.
    pub fn add_notice(&self, text: String) {
        let mut shared = self.lock();
        shared.notices.push(text.clone());
        shared.broadcast(&FromServer::Notice { text });
    }

    /// Ends all connections.
    pub fn close(&self, reason: &str) {
        self.lock().clients.drain(..).for_each(|client| client.queue.close(reason));
    }

    /// Sets the state of the observation, and sends it to all clients if it changed or was not sent
    /// for a second.
    pub fn set_status(&self, status: &ObservationStatus) {
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
        let notified = std::mem::replace(&mut shared.notified, status.failures.len());
        for failure in status.failures.iter().skip(notified) {
            shared.broadcast(&FromServer::Notice { text: failure.clone() });
        }
        if !shared.state.is_similar(&before) || shared.sent.elapsed() >= REFRESH {
            shared.send_state();
        }
    }

    /// Says to all clients, also to those that come later, that nothing is sampled any more, and why.
    pub fn set_ended(&self, why: String) {
        let mut shared = self.lock();
        (shared.state.ended, shared.state.recording) = (true, None);
        shared.send_state();
        drop(shared);
        self.add_notice(why);
    }

    /// Sends a command to the observation.
    pub fn send_command(&self, command: ControlCommand, answer: Reply) {
        match &self.control {
            Some(control) => control(command, answer),
            None => answer(Err(ControlError::NotSampling)),
        }
    }

    /// Adds a label to a source and sends it to all clients.
    pub fn label(&self, source: u32, data: &dyn Source, time: u64, text: &str) {
        let id = data.push_label(time, text);
        let label = wire::WireLabel { id, time_ns: Ns(time), text: text.to_owned() };
        self.broadcast(&FromServer::Labels { source, labels: vec![label], all: false });
    }

    /// Sends all labels of a source to all clients.
    pub fn send_labels(&self, shown: &ShownSource) {
        let labels = shown.labels();
        self.broadcast(&FromServer::Labels { source: shown.info.id, labels, all: true });
    }
}

impl Shared {
    /// The client that a new one replaces, if the limit is reached: one that does not answer, or the
    /// oldest of an owner with at least two more than the new one's. An error if there is none.
    fn make_room(&mut self, role: Role, owner: IpAddr) -> Result<Option<usize>, ClientRequestError> {
        self.clients.retain(|client| !client.queue.closed());
        let (max, who) = match role {
            Role::Viewer => (VIEWERS, "viewers"),
            Role::Controller => (CONTROLLERS, "controllers"),
        };
        let same_role: Vec<usize> =
            (0..self.clients.len()).filter(|at| self.clients[*at].role == role).collect();
        if same_role.len() < max {
            return Ok(None);
        }
        let silent = same_role.iter().copied().max_by_key(|at| self.clients[*at].queue.silence());
        if let Some(at) = silent.filter(|at| self.clients[*at].queue.silence() >= STALLED) {
            return Ok(Some(at));
        }
        let owners: Vec<IpAddr> = same_role.iter().map(|at| self.clients[*at].owner).collect();
        let of = |owner: IpAddr| owners.iter().filter(|o| **o == owner).count();
        let oldest = oldest_of_largest_owner(&owners).filter(|at| of(owners[*at]) >= of(owner) + 2);
        oldest.map(|at| Some(same_role[at])).ok_or(ClientRequestError::Full { limit: max, who })
    }

    /// Sends a source with this number to all clients.
    fn announced(&self, id: u32, shown: ShownSource) -> ShownSource {
        let info = SourceInfo { id, ..(*shown.info).clone() };
        self.broadcast(&FromServer::Source { source: Box::new(info.clone()) });
        self.broadcast(&FromServer::Labels { source: id, labels: shown.labels(), all: true });
        ShownSource { info: Arc::new(info), ..shown }
    }

    fn broadcast(&self, message: &FromServer) {
        if !self.clients.is_empty() {
            let text = message.text();
            self.clients.iter().for_each(|client| client.queue.text(text.clone()));
        }
    }

    /// Fills in what the status does not contain.
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
        self.broadcast(&FromServer::State(self.state.clone()));
    }
}

impl ObservationState {
    /// Whether nothing changed that is sent at once; counters that always grow are not compared.
    fn is_similar(&self, other: &Self) -> bool {
        let path = |state: &Self| state.recording.as_ref().map(|r| r.path.clone());
        let settings = |state: &Self| (state.interval_ns, state.paused, state.lost, state.realtime);
        self.sensors == other.sensors && settings(self) == settings(other) && path(self) == path(other)
    }
}
