//! The life of an observation, in one thread: signals, orders, the command's end.

use crate::endpoint::Endpoint;
use crate::folder::{Folder, FolderError};
use crate::interval;
use crate::names::Names;
use crate::order::{ControlCommand, OrderError};
use crate::recording::BoundRecorder;
use numakit_model::label::RecorderEvent;
use numakit_recording::sampler::{Command, SamplerState};
use numakit_recording::{Header, Recorder, Ring, Sampler, Settings, WriteError};
use numakit_sensors::Sensor;
use numakit_sys::command::{Running, quoted, start_failure_status};
use numakit_sys::memory::forget_code;
use numakit_sys::poll;
use numakit_sys::signal::{self, Signals};
use numakit_sys::stdio::note;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use std::time::{Duration, Instant};
use thiserror::Error;

/// An observation that cannot go on or begin.
#[derive(Debug, Error)]
pub enum SessionError {
    /// Something of the system.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// The command did not start.
    #[error("cannot run '{command}': {error}")]
    Command {
        /// Its words.
        command: String,
        /// What the system said.
        error: io::Error,
    },
    /// The recording could not be begun.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl SessionError {
    /// The exit status for it: 127 and 126 for a command that did not start, else 2.
    pub fn status(&self) -> u8 {
        match self {
            Self::Command { error, .. } => start_failure_status(error),
            _ => 2,
        }
    }
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> SessionError {
    move |error| SessionError::System { what, error }
}

/// How an observation ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// The command's status, 128 + signal when it was killed; `None` without a command or
    /// when we ended before it.
    pub status: Option<i32>,
    /// Recordings that were closed whole.
    pub recorded: Vec<ClosedRecording>,
    /// What went wrong with others; standard error was told when it did.
    pub failures: Vec<WriteError>,
    /// Samples taken.
    pub samples: u64,
    /// Ticks missed.
    pub lost: u64,
}

impl Ended {
    /// The exit status of an observation: the command's, or 1 when a recording failed.
    pub fn exit_status(&self) -> u8 {
        match self.status {
            Some(status) if status != 0 || self.failures.is_empty() => u8::try_from(status).unwrap_or(1),
            _ => u8::from(!self.failures.is_empty()),
        }
    }
}

/// A recording that was closed whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedRecording {
    /// The file.
    pub path: PathBuf,
    /// Samples in it.
    pub samples: u64,
    /// Its size.
    pub bytes: u64,
}

/// How an observation goes.
#[derive(Debug, Clone, Default)]
pub struct ObservationStatus {
    /// Since the start.
    pub elapsed: Duration,
    /// Samples taken.
    pub samples: u64,
    /// Ticks missed.
    pub lost: u64,
    /// Present interval.
    pub interval: Duration,
    /// Whether sampling is paused.
    pub paused: bool,
    /// Whether the sampler has real-time priority.
    pub realtime: bool,
    /// The sensors, and whether each is read.
    pub sensors: Vec<(String, bool)>,
    /// The file that is recorded to, and its size.
    pub recording: Option<(PathBuf, u64)>,
    /// What went wrong with recordings so far.
    pub failures: Vec<String>,
}

/// After this long a line in a FIFO that has no end is taken as whole.
const LINE_PATIENCE: Duration = Duration::from_millis(500);

/// An order that was not obeyed.
#[derive(Debug, Error)]
pub enum ObeyError {
    /// It is no order.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// It asks for a recording at a place where orders may not write.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// It asks for a recording that cannot be begun.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It ends a recording, and there is none.
    #[error("nothing is being recorded")]
    NotRecording,
    /// It names a sensor that is not read.
    #[error("'{sensor}' is not sampled here; sampled are: {}", sampled.join(", "))]
    NotSampled {
        /// What it names.
        sensor: String,
        /// The sensors that are read.
        sampled: Vec<String>,
    },
    /// It came too late.
    #[error("the observation has ended")]
    Ended,
    /// There is no observation.
    #[error("nothing is sampled here: this server shows recordings")]
    NotSampling,
}

/// Takes the answer to an order, in the thread of the observation.
pub type Reply = Box<dyn FnOnce(Result<String, ObeyError>) + Send>;

/// Gives orders to a running observation from other threads.
#[derive(Debug)]
pub struct Waker {
    wake: UnixStream,
    orders: Sender<(ControlCommand, Reply)>,
}

impl Waker {
    /// Ends it as the order `stop` does.
    pub fn stop(&self) {
        self.order(ControlCommand::Stop, Box::new(|_| {}));
    }

    /// Gives an order.
    pub fn order(&self, order: ControlCommand, answer: Reply) {
        match self.orders.send((order, answer)) {
            Ok(()) => _ = (&self.wake).write_all(b"o"),
            Err(SendError((_, answer))) => answer(Err(ObeyError::Ended)),
        }
    }
}

/// An observation.
pub struct Session {
    header: Header,
    signals: Signals,
    endpoint: Option<Endpoint>,
    control_error: Option<io::Error>,
    wake: UnixStream,
    inbox: Receiver<(ControlCommand, Reply)>,
    names: Names,
    sampler: Option<Sampler>,
    recorder: Option<BoundRecorder>,
    folder: Option<Folder>,
    command: Option<Running>,
    begun: Instant,
    stopping: bool,
    partial_since: Option<Instant>,
    ended: Ended,
}

impl Session {
    /// Collects the signals and opens the doors. Call before any other thread exists.
    pub fn open(header: Header, compatible: bool) -> Result<(Self, Waker), SessionError> {
        let signals =
            Signals::collect(&[signal::INTERRUPT, signal::TERMINATE, signal::HANGUP, signal::CHILD])
                .map_err(system("cannot collect signals"))?;
        let (wake, waker) = UnixStream::pair().map_err(system("cannot make a socket"))?;
        wake.set_nonblocking(true).map_err(system("cannot make a socket"))?;
        waker.set_nonblocking(true).map_err(system("cannot make a socket"))?;
        let (orders, inbox) = channel();
        let (endpoint, control_error) = match Endpoint::open(compatible) {
            Ok(endpoint) => (Some(endpoint), None),
            Err(error) => (None, Some(error)),
        };
        let session = Self {
            header,
            signals,
            endpoint,
            control_error,
            wake,
            inbox,
            names: Names::Own { force: false },
            sampler: None,
            recorder: None,
            folder: None,
            command: None,
            begun: Instant::now(),
            stopping: false,
            partial_since: None,
            ended: Ended::default(),
        };
        // Options were read and sensors were found: most of the program does not run again.
        forget_code();
        Ok((session, Waker { wake: waker, orders }))
    }

    /// Why no orders can come in, if so.
    pub fn control_error(&self) -> Option<&io::Error> {
        self.control_error.as_ref()
    }

    /// How names of recordings are understood from now on.
    pub fn understand(&mut self, names: Names) {
        self.names = names;
    }

    /// From now on, recordings that orders begin are only written below this folder.
    pub fn record_below(&mut self, folder: Folder) {
        self.folder = Some(folder);
    }

    /// Begins a recording of that name; the one before is closed. The name that it got.
    pub fn record(&mut self, path: &Path) -> Result<PathBuf, WriteError> {
        let (name, recorder) = self.names.create(path, &self.header)?;
        self.attach(BoundRecorder::of(recorder));
        Ok(name)
    }

    /// Begins a recording of the first free name of numa-1.arrows, numa-2.arrows, ...
    pub fn record_next(&mut self) -> Result<PathBuf, WriteError> {
        let mut number = 1u32;
        loop {
            match self.record(Path::new(&format!("numa-{number}.arrows"))) {
                Err(WriteError::Exists(_) | WriteError::Busy(_)) => number += 1,
                other => return other,
            }
        }
    }

    /// Begins the recording that an order asks for. The name that it got.
    fn record_for_order(&mut self, path: &Path) -> Result<PathBuf, ObeyError> {
        let Some(folder) = &self.folder else { return Ok(self.record(path)?) };
        let place = folder.place(path)?;
        let (name, recorder) = match self.names.create(&place.path(), &self.header) {
            Ok(begun) => begun,
            Err(error) => return Err(place.name(error).into()),
        };
        let shown = place.known(&name);
        self.attach(BoundRecorder::at(recorder, place));
        Ok(shown)
    }

    /// Begins to record to an open pipe or file, called so in messages.
    pub fn stream(&mut self, to: File, name: &str) -> Result<(), WriteError> {
        let recorder = Recorder::stream(to, name, &self.header)?;
        self.attach(BoundRecorder::of(recorder));
        Ok(())
    }

    fn attach(&mut self, recorder: BoundRecorder) {
        if let Some(sampler) = &self.sampler {
            sampler.send(Command::Attach(Arc::clone(recorder.ring())));
        }
        self.close_recording();
        self.recorder = Some(recorder);
    }

    /// Begins to sample into the recording, if any, and the ring of a view, if any. Returns
    /// once the first sample was taken.
    pub fn start(
        &mut self,
        sensors: Vec<Box<dyn Sensor>>,
        settings: Settings,
        view: Option<Arc<Ring>>,
    ) -> Result<(), SessionError> {
        let rings = self.recorder.iter().map(|r| Arc::clone(r.ring())).chain(view).collect();
        let sampler = Sampler::start(sensors, settings, rings)
            .map_err(system("cannot start the sampler (real-time priority needs CAP_SYS_NICE or 'ulimit -r 1'; --priority auto does without)"))?;
        while sampler.state().samples() == 0 && sampler.running() {
            std::thread::sleep(Duration::from_micros(200));
        }
        self.sampler = Some(sampler);
        Ok(())
    }

    /// Whether the sampler got real-time priority.
    pub fn realtime(&self) -> bool {
        self.state().is_some_and(SamplerState::realtime)
    }

    /// Starts the command under observation. Its process number.
    pub fn spawn(&mut self, words: &[OsString]) -> Result<u32, SessionError> {
        let command = quoted(words);
        self.tell(Command::Note(RecorderEvent::CommandStarted(command.clone())));
        let running = Running::start(words).map_err(|error| SessionError::Command { command, error })?;
        let pid = running.id();
        self.command = Some(running);
        Ok(pid)
    }

    /// Gives up before anything of worth was recorded: the recording is removed.
    pub fn abandon(mut self) {
        self.sampler = None;
        if let Some(recorder) = self.recorder.take() {
            let file = recorder.file().map(Path::to_owned);
            if recorder.finish().is_ok()
                && let Some(path) = file
            {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    /// Runs until the command ends, a signal or an order ends it, or the recording fails.
    /// Calls `idle` about every so often.
    pub fn run(
        mut self,
        every: Duration,
        mut idle: impl FnMut(&ObservationStatus),
    ) -> Result<Ended, SessionError> {
        while !self.stopping {
            self.wait(every)?;
            self.take_signals();
            self.take_orders();
            self.watch();
            idle(&self.status());
        }
        let died = self.sampler.as_ref().is_some_and(|s| !s.running());
        let ended = self.end();
        if died {
            return Err(system("sampling stopped")(io::Error::other(
                "the sampler failed; what it sampled is kept",
            )));
        }
        Ok(ended)
    }

    fn wait(&self, every: Duration) -> Result<(), SessionError> {
        let unfinished = self.endpoint.as_ref().is_some_and(Endpoint::unfinished);
        let timeout = if unfinished { every.min(LINE_PATIENCE) } else { every };
        let mut fds = vec![self.signals.as_fd(), self.wake.as_fd()];
        fds.extend(self.endpoint.iter().flat_map(Endpoint::fds));
        poll::readable(&fds, Some(timeout)).map_err(system("cannot wait"))?;
        Ok(())
    }

    fn take_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            if signal.number == signal::CHILD {
                continue;
            }
            // The first signal goes to the command, whose end ends us; a second one, or one
            // without a command, ends us at once.
            match self.command.take() {
                Some(command) => {
                    if signal.from_process {
                        command.signal(signal.number);
                    }
                    if self.ended.status.is_none() {
                        self.ended.status = Some(128 + signal.number);
                        self.command = Some(command);
                    } else {
                        self.stopping = true;
                    }
                }
                None => self.stopping = true,
            }
        }
    }

    fn take_orders(&mut self) {
        while self.wake.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        while let Ok((order, answer)) = self.inbox.try_recv() {
            answer(self.obey(order));
        }
        let Some(mut endpoint) = self.endpoint.take() else { return };
        let received = endpoint.serve(&mut |order| self.obey(order));
        match self.partial_since {
            Some(since) if !received && since.elapsed() >= LINE_PATIENCE => {
                endpoint.flush(&mut |order| self.obey(order));
            }
            _ => {}
        }
        self.partial_since = match self.partial_since.filter(|_| !received) {
            _ if !endpoint.unfinished() => None,
            since => since.or_else(|| Some(Instant::now())),
        };
        self.endpoint = Some(endpoint);
    }

    fn obey(&mut self, order: ControlCommand) -> Result<String, ObeyError> {
        match order {
            ControlCommand::Record(path) => {
                return Ok(format!("recording to {}", self.record_for_order(&path)?.display()));
            }
            ControlCommand::Close => {
                let path = self.recorder.as_ref().map(|r| r.path().display().to_string());
                let path = path.ok_or(ObeyError::NotRecording)?;
                self.close_recording();
                return Ok(format!("closed {path}"));
            }
            ControlCommand::Label(text) => self.tell(Command::Label(text)),
            ControlCommand::Pause => self.tell(Command::Pause),
            ControlCommand::Resume => self.tell(Command::Resume),
            ControlCommand::Interval(interval) => self.tell(Command::Interval(interval)),
            ControlCommand::Enable(sensor) => return self.switch(sensor, true),
            ControlCommand::Disable(sensor) => return self.switch(sensor, false),
            ControlCommand::Stop => self.stopping = true,
            ControlCommand::Status => return Ok(self.status().to_string()),
        }
        Ok(String::new())
    }

    fn switch(&self, sensor: String, on: bool) -> Result<String, ObeyError> {
        let sensors = self.status().sensors;
        if !sensors.iter().any(|(name, _)| *name == sensor) {
            let sampled = sensors.into_iter().map(|(name, _)| name).collect();
            return Err(ObeyError::NotSampled { sensor, sampled });
        }
        self.tell(Command::Switch(sensor, on));
        Ok(String::new())
    }

    fn tell(&self, command: Command) {
        if let Some(sampler) = &self.sampler {
            sampler.send(command);
        }
    }

    /// A recording holds the state at its end too, wherever in an interval that is.
    fn sample_end(&self) {
        if self.recorder.is_some() && self.state().is_some_and(|s| !s.paused()) {
            self.tell(Command::Sample);
        }
    }

    /// Looks whether the command or the writer ended.
    fn watch(&mut self) {
        if let Some(command) = &mut self.command
            && let Ok(Some(status)) = command.ended()
        {
            self.command = None;
            self.ended.status = Some(status);
            self.sample_end();
            self.tell(Command::Note(RecorderEvent::CommandEnded(status)));
            self.stopping = true;
            return;
        }
        if self.sampler.as_ref().is_some_and(|s| !s.running()) {
            self.stopping = true;
        }
        if self.recorder.as_ref().is_some_and(BoundRecorder::failed) {
            self.stopping |= self.command.is_none();
            self.close_recording();
        }
    }

    fn close_recording(&mut self) {
        let Some(recorder) = self.recorder.take() else { return };
        if let Some(sampler) = &self.sampler {
            let ring = Arc::clone(recorder.ring());
            sampler.send(Command::Detach(Arc::clone(&ring)));
            // Nothing may be put into the ring after its last batch was taken.
            while sampler.running() && !ring.closed() {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        let (path, ring, bytes) = (recorder.path().to_owned(), Arc::clone(recorder.ring()), recorder.size());
        match recorder.finish() {
            Ok(()) => {
                let (samples, bytes) = (ring.total_rows(), bytes.load(Ordering::Relaxed));
                self.ended.recorded.push(ClosedRecording { path, samples, bytes });
            }
            Err(error) => {
                // Told at once: the command may go on for hours.
                note(&error);
                self.ended.failures.push(error);
            }
        }
    }

    fn state(&self) -> Option<&SamplerState> {
        self.sampler.as_ref().map(Sampler::state)
    }

    fn status(&self) -> ObservationStatus {
        let recording = self.recorder.as_ref().map(|r| (r.path().to_owned(), r.bytes()));
        let failures = self.ended.failures.iter().map(ToString::to_string).collect();
        let mut status = ObservationStatus {
            elapsed: self.begun.elapsed(),
            recording,
            failures,
            ..ObservationStatus::default()
        };
        if let Some(state) = self.state() {
            status.samples = state.samples();
            status.lost = state.lost();
            status.interval = state.interval();
            status.paused = state.paused();
            status.realtime = state.realtime();
            status.sensors = state.sensors().map(|(name, on)| (name.to_owned(), on)).collect();
        }
        status
    }

    fn end(mut self) -> Ended {
        if self.ended.status.is_none() {
            self.sample_end();
        }
        if let Some(sampler) = self.sampler.take() {
            self.ended.lost = sampler.state().lost();
            self.ended.samples = sampler.stop();
        }
        self.close_recording();
        std::mem::take(&mut self.ended)
    }
}

impl std::fmt::Display for ObservationStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let paused = if self.paused { " (paused)" } else { "" };
        write!(
            f,
            "interval {}{paused}, {} samples, {} lost",
            interval::format(self.interval),
            self.samples,
            self.lost
        )?;
        let off: Vec<&str> =
            self.sensors.iter().filter(|(_, on)| !on).map(|(name, _)| name.as_str()).collect();
        if !off.is_empty() {
            write!(f, ", off: {}", off.join(" "))?;
        }
        match &self.recording {
            Some((path, bytes)) => write!(f, ", recording to {}, {} KiB", path.display(), bytes / 1024),
            None => write!(f, ", not recording"),
        }?;
        write!(f, ", {} priority", if self.realtime { "real-time" } else { "normal" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_the_commands_or_that_of_a_failed_recording() {
        let status = |status, failed| {
            let failures = if failed { vec![WriteError::Exists("a".into())] } else { Vec::new() };
            Ended { status, failures, ..Ended::default() }.exit_status()
        };
        assert_eq!([None, Some(0), Some(3), Some(143)].map(|s| status(s, false)), [0, 0, 3, 143]);
        assert_eq!([None, Some(0), Some(3)].map(|s| status(s, true)), [1, 1, 3]);
        assert_eq!(status(Some(300), false), 1);
    }
}
