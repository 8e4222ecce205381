//! An observation, in one thread: signals, control commands, the end of the observed command.

use crate::control_command::{ControlCommand, ParseCommandError};
use crate::endpoint::Endpoint;
use crate::folder::{Folder, FolderError};
use crate::interval;
use crate::names::RecordingNames;
use crate::recording::BoundRecorder;
use crate::stopping::Stopping;
use numakit_model::label::RecorderEvent;
use numakit_recording::sampler::{Command, SamplerState};
use numakit_recording::{Header, Recorder, Ring, Sampler, Settings, WriteError};
use numakit_sensors::Sensor;
use numakit_sys::command::{Running, quoted, start_failure_status};
use numakit_sys::memory::release_code_pages;
use numakit_sys::poll;
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

/// Why an observation cannot start or continue.
#[derive(Debug, Error)]
pub enum SessionError {
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// The action.
        what: &'static str,
        /// The error of the system.
        error: io::Error,
    },
    /// The command did not start.
    #[error("cannot run '{command}': {error}")]
    Command {
        /// The command line.
        command: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The recording could not be started.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl SessionError {
    /// The exit status: 127 or 126 for a command that did not start, else 2.
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
    /// The command's status, 128 + signal if it was killed; `None` without a command or
    /// if the observation ended before it.
    pub status: Option<i32>,
    /// Whether it ended because the command did, and nobody asked for it.
    pub by_command: bool,
    /// Recordings that were closed without an error.
    pub recorded: Vec<ClosedRecording>,
    /// Errors of others, which were also printed to standard error when they occurred.
    pub failures: Vec<WriteError>,
    /// Samples taken.
    pub samples: u64,
    /// Ticks missed.
    pub lost: u64,
}

impl Ended {
    /// The exit status of an observation: the command's, or 1 if a recording failed.
    pub fn exit_status(&self) -> u8 {
        match self.status {
            Some(status) if status != 0 || self.failures.is_empty() => u8::try_from(status).unwrap_or(1),
            _ => u8::from(!self.failures.is_empty()),
        }
    }
}

/// A recording that was closed without an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedRecording {
    /// The file.
    pub path: PathBuf,
    /// Samples in it.
    pub samples: u64,
    /// Its size.
    pub bytes: u64,
}

/// The status of an observation.
#[derive(Debug, Clone, Default)]
pub struct ObservationStatus {
    /// Since the start.
    pub elapsed: Duration,
    /// Samples taken.
    pub samples: u64,
    /// Ticks missed.
    pub lost: u64,
    /// The current interval.
    pub interval: Duration,
    /// Whether sampling is paused.
    pub paused: bool,
    /// Whether the sampler has real-time priority.
    pub realtime: bool,
    /// The sensors, and whether each is read.
    pub sensors: Vec<(String, bool)>,
    /// The file of the recording, and its size.
    pub recording: Option<(PathBuf, u64)>,
    /// Errors of recordings so far.
    pub failures: Vec<String>,
}

/// After this time, a line without an end in a FIFO is executed.
const LINE_TIMEOUT: Duration = Duration::from_millis(500);

/// Why a control command was not executed.
#[derive(Debug, Error)]
pub enum ControlError {
    /// It is not a control command.
    #[error(transparent)]
    Parse(#[from] ParseCommandError),
    /// It requests a recording where control commands may not write.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// It requests a recording that cannot be started.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It closes a recording, and there is none.
    #[error("nothing is being recorded")]
    NotRecording,
    /// It names a sensor that is not sampled.
    #[error("'{sensor}' is not sampled here; sampled are: {}", sampled.join(", "))]
    NotSampled {
        /// The name.
        sensor: String,
        /// The sensors that are sampled.
        sampled: Vec<String>,
    },
    /// It came too late.
    #[error("the observation has ended")]
    Ended,
    /// There is no observation.
    #[error("nothing is sampled here: this server shows recordings")]
    NotSampling,
}

/// Receives the reply to a control command, in the thread of the observation.
pub type Reply = Box<dyn FnOnce(Result<String, ControlError>) + Send>;

/// Sends control commands to a running observation from other threads.
#[derive(Debug)]
pub struct SessionHandle {
    wake: UnixStream,
    commands: Sender<(ControlCommand, Reply)>,
}

impl SessionHandle {
    /// Ends it like the command `stop`.
    pub fn stop(&self) {
        self.send(ControlCommand::Stop, Box::new(|_| {}));
    }

    /// Sends a command.
    pub fn send(&self, command: ControlCommand, reply: Reply) {
        match self.commands.send((command, reply)) {
            Ok(()) => _ = (&self.wake).write_all(b"o"),
            Err(SendError((_, reply))) => reply(Err(ControlError::Ended)),
        }
    }
}

/// An observation.
pub struct Session {
    header: Header,
    ends: Stopping,
    endpoint: Option<Endpoint>,
    control_error: Option<io::Error>,
    wake: UnixStream,
    inbox: Receiver<(ControlCommand, Reply)>,
    names: RecordingNames,
    sampler: Option<Sampler>,
    recorder: Option<BoundRecorder>,
    folder: Option<Folder>,
    command_output: Option<File>,
    started: Instant,
    stopping: bool,
    partial_since: Option<Instant>,
    ended: Ended,
}

impl Session {
    /// Blocks the signals and opens the control channels. Must be called before other threads exist.
    pub fn open(header: Header, original_fifo: bool) -> Result<(Self, SessionHandle), SessionError> {
        let stopping = Stopping::collect().map_err(system("cannot receive signals"))?;
        let (wake, waker) = UnixStream::pair().map_err(system("cannot create a socket"))?;
        wake.set_nonblocking(true).map_err(system("cannot create a socket"))?;
        waker.set_nonblocking(true).map_err(system("cannot create a socket"))?;
        let (commands, inbox) = channel();
        let (endpoint, control_error) = match Endpoint::open(original_fifo) {
            Ok(endpoint) => (Some(endpoint), None),
            Err(error) => (None, Some(error)),
        };
        let session = Self {
            header,
            ends: stopping,
            endpoint,
            control_error,
            wake,
            inbox,
            names: RecordingNames::Exact { force: false },
            sampler: None,
            recorder: None,
            folder: None,
            command_output: None,
            started: Instant::now(),
            stopping: false,
            partial_since: None,
            ended: Ended::default(),
        };
        // Options are parsed and sensors found: most of the program's code does not run again.
        release_code_pages();
        Ok((session, SessionHandle { wake: waker, commands }))
    }

    /// Why there are no control channels, if so.
    pub fn take_control_error(&mut self) -> Option<io::Error> {
        self.control_error.take()
    }

    /// Sets how names of recordings are used.
    pub fn set_names(&mut self, names: RecordingNames) {
        self.names = names;
    }

    /// From now on, recordings of control commands are only written below this folder.
    pub fn record_below(&mut self, folder: Folder) {
        self.folder = Some(folder);
    }

    /// Starts a recording and closes the current one. Returns its name.
    pub fn record(&mut self, path: &Path) -> Result<PathBuf, WriteError> {
        let (name, recorder) = self.names.create(path, &self.header)?;
        self.attach(BoundRecorder::of(recorder));
        Ok(name)
    }

    /// Starts a recording with the first free name of numa-1.arrows, numa-2.arrows, ...
    pub fn record_next(&mut self) -> Result<PathBuf, WriteError> {
        let mut number = 1u32;
        loop {
            match self.record(Path::new(&format!("numa-{number}.arrows"))) {
                Err(WriteError::Exists(_) | WriteError::LeftBehind(_) | WriteError::Busy(_)) => number += 1,
                other => return other,
            }
        }
    }

    /// Starts the recording of a control command. Returns its name.
    fn record_for_command(&mut self, path: &Path) -> Result<PathBuf, ControlError> {
        let Some(folder) = &self.folder else { return Ok(self.record(path)?) };
        let place = folder.place(path)?;
        let (name, recorder) = match self.names.create(&place.path(), &self.header) {
            Ok(started) => started,
            Err(error) => return Err(place.rename_in_error(error).into()),
        };
        let shown = place.display_path(&name);
        self.attach(BoundRecorder::at(recorder, place));
        Ok(shown)
    }

    /// Records to an open pipe or file with this name in messages.
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

    /// Starts sampling into the recording, if any, and the ring of a view, if any. Returns
    /// after the first sample.
    pub fn start(
        &mut self,
        sensors: Vec<Box<dyn Sensor>>,
        settings: Settings,
        view: Option<Arc<Ring>>,
    ) -> Result<(), SessionError> {
        let rings = self.recorder.iter().map(|r| Arc::clone(r.ring())).chain(view).collect();
        let sampler = Sampler::start(sensors, settings, rings)
            .map_err(system("cannot start the sampler (real-time priority needs CAP_SYS_NICE or 'ulimit -r 1'; --priority auto works without)"))?;
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

    /// From now on, commands print to this file and have no input, so that they leave the terminal alone.
    pub fn redirect_commands(&mut self, output: File) {
        self.command_output = Some(output);
    }

    /// Starts the observed command. Returns its PID.
    pub fn spawn(&mut self, words: &[OsString]) -> Result<u32, SessionError> {
        self.spawn_with(words, &[])
    }

    /// The same, with these variables in its environment.
    pub fn spawn_with(
        &mut self,
        words: &[OsString],
        variables: &[(OsString, OsString)],
    ) -> Result<u32, SessionError> {
        let command = quoted(words);
        self.send(Command::Note(RecorderEvent::CommandStarted(command.clone())));
        let running = Running::start_to(words, variables, self.command_output.as_ref())
            .map_err(|error| SessionError::Command { command, error })?;
        let pid = running.id();
        self.ends.follow(Some(running));
        Ok(pid)
    }

    /// Ends the observation and removes the recording.
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

    /// Runs until the command ends, a signal or control command ends it, or the recording fails.
    /// Calls `idle` about once per `every`.
    pub fn run(
        mut self,
        every: Duration,
        mut idle: impl FnMut(&ObservationStatus),
    ) -> Result<Ended, SessionError> {
        while !self.stopping {
            self.wait(every)?;
            self.handle_signals();
            self.receive_commands();
            self.watch();
            idle(&self.status());
        }
        let failed = self.sampler.as_ref().is_some_and(|s| !s.running());
        let ended = self.end();
        if failed {
            return Err(system("sampling stopped")(io::Error::other(
                "the sampler failed; its samples are in the recording",
            )));
        }
        Ok(ended)
    }

    fn wait(&self, every: Duration) -> Result<(), SessionError> {
        let has_partial_line = self.endpoint.as_ref().is_some_and(Endpoint::has_partial_line);
        let timeout = if has_partial_line { every.min(LINE_TIMEOUT) } else { every };
        let mut fds = vec![self.ends.as_fd(), self.wake.as_fd()];
        fds.extend(self.endpoint.iter().flat_map(Endpoint::fds));
        poll::readable(&fds, Some(timeout)).map_err(system("cannot wait"))?;
        Ok(())
    }

    fn handle_signals(&mut self) {
        self.stopping |= self.ends.is_stopped();
        if let Some(signal) = self.ends.asked().filter(|_| self.ends.has_command()) {
            self.ended.status = Some(128 + signal);
        }
    }

    fn receive_commands(&mut self) {
        while self.wake.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        while let Ok((command, reply)) = self.inbox.try_recv() {
            reply(self.execute(command));
        }
        let Some(mut endpoint) = self.endpoint.take() else { return };
        let received = endpoint.serve(&mut |command| self.execute(command));
        match self.partial_since {
            Some(since) if !received && since.elapsed() >= LINE_TIMEOUT => {
                endpoint.flush(&mut |command| self.execute(command));
            }
            _ => {}
        }
        self.partial_since = match self.partial_since.filter(|_| !received) {
            _ if !endpoint.has_partial_line() => None,
            since => since.or_else(|| Some(Instant::now())),
        };
        self.endpoint = Some(endpoint);
    }

    fn execute(&mut self, command: ControlCommand) -> Result<String, ControlError> {
        match command {
            ControlCommand::Record(path) => {
                return Ok(format!("recording to {}", self.record_for_command(&path)?.display()));
            }
            ControlCommand::Close => {
                let path = self.recorder.as_ref().map(|r| r.path().display().to_string());
                let path = path.ok_or(ControlError::NotRecording)?;
                self.close_recording();
                return Ok(format!("closed {path}"));
            }
            ControlCommand::Label(text) => self.send(Command::Label(text)),
            ControlCommand::Pause => self.send(Command::Pause),
            ControlCommand::Resume => self.send(Command::Resume),
            ControlCommand::Interval(interval) => self.send(Command::Interval(interval)),
            ControlCommand::Enable(sensor) => return self.switch(sensor, true),
            ControlCommand::Disable(sensor) => return self.switch(sensor, false),
            ControlCommand::Stop => self.stopping = true,
            ControlCommand::Status => return Ok(self.status().to_string()),
        }
        Ok(String::new())
    }

    fn switch(&self, sensor: String, on: bool) -> Result<String, ControlError> {
        let sensors = self.status().sensors;
        if !sensors.iter().any(|(name, _)| *name == sensor) {
            let sampled = sensors.into_iter().map(|(name, _)| name).collect();
            return Err(ControlError::NotSampled { sensor, sampled });
        }
        self.send(Command::Switch(sensor, on));
        Ok(String::new())
    }

    fn send(&self, command: Command) {
        if let Some(sampler) = &self.sampler {
            sampler.send(command);
        }
    }

    /// Takes a last sample, so that a recording includes the state at its end.
    fn sample_end(&self) {
        if self.recorder.is_some() && self.state().is_some_and(|s| !s.paused()) {
            self.send(Command::Sample);
        }
    }

    /// Checks whether the command or the writer has ended.
    fn watch(&mut self) {
        if let Ok(Some(status)) = self.ends.ended() {
            // A signal has set a status.
            self.ended.by_command = self.ended.status.is_none();
            self.ended.status = Some(status);
            self.sample_end();
            self.send(Command::Note(RecorderEvent::CommandEnded(status)));
            self.stopping = true;
            return;
        }
        if self.sampler.as_ref().is_some_and(|s| !s.running()) {
            self.stopping = true;
        }
        if self.recorder.as_ref().is_some_and(BoundRecorder::failed) {
            self.stopping |= !self.ends.has_command();
            self.close_recording();
        }
    }

    fn close_recording(&mut self) {
        let Some(recorder) = self.recorder.take() else { return };
        if let Some(sampler) = &self.sampler {
            let ring = Arc::clone(recorder.ring());
            sampler.send(Command::Detach(Arc::clone(&ring)));
            // The sampler must not write to the ring after its last batch.
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
                // Printed immediately: the command may run for hours.
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
            elapsed: self.started.elapsed(),
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
            let last = sampler.stop();
            (self.ended.samples, self.ended.lost) = (last.samples(), last.lost());
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
    fn the_status_is_that_of_the_command_or_of_a_failed_recording() {
        let status = |status, failed| {
            let failures = if failed { vec![WriteError::Exists("a".into())] } else { Vec::new() };
            Ended { status, failures, ..Ended::default() }.exit_status()
        };
        assert_eq!([None, Some(0), Some(3), Some(143)].map(|s| status(s, false)), [0, 0, 3, 143]);
        assert_eq!([None, Some(0), Some(3)].map(|s| status(s, true)), [1, 1, 3]);
        assert_eq!(status(Some(300), false), 1);
    }
}
