//! A recording instead of this machine: the same meters and findings at any of its times.

use crate::follow::found;
use crate::machine::{MachineMeters, Moment};
use crate::playback::{PlayCommand, Playback};
use crate::show::ScreenEvent;
use crate::table::{NotRead, ProcessRow, ProcessTable};
use numakit_findings::range::RangeRules;
use numakit_formulas::Catalog;
use numakit_history::{RecordedHistory, Source};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// The time before the place that findings are about, ns.
const RANGE: u64 = 60_000_000_000;

/// Plays a recording.
pub struct Player {
    /// The recording.
    pub recording: RecordedHistory,
    /// The formulas of findings.
    pub formulas: Arc<Catalog>,
    /// What the meters show.
    pub machine: Arc<MachineMeters>,
    /// The place.
    pub playback: Playback,
    /// Receives what is shown.
    pub to: Sender<ScreenEvent>,
}

impl Player {
    /// Plays in a thread of its own until nobody sends commands.
    pub fn start(self, commands: Receiver<PlayCommand>) -> io::Result<()> {
        std::thread::Builder::new().name("player".into()).spawn(move || self.run(&commands))?;
        Ok(())
    }

    fn run(mut self, commands: &Receiver<PlayCommand>) {
        let rules = RangeRules::new(self.recording.header(), Arc::clone(&self.formulas));
        while self.send(&rules) {
            let wait = if self.playback.plays { self.playback.pace() } else { Duration::from_secs(3600) };
            match commands.recv_timeout(wait) {
                Ok(command) => self.playback.command(command),
                Err(RecvTimeoutError::Timeout) if self.playback.plays => _ = self.playback.advance(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Sends what is at the place; false if nobody receives it.
    fn send(&self, rules: &RangeRules) -> bool {
        let at = self.playback.at;
        let moment = self.moment(at);
        let table = table(&self.machine, &moment);
        let labels = self.recording.labels();
        let from = at.saturating_sub(RANGE);
        let within = labels.iter().filter(|label| (from..=at).contains(&label.time_ns));
        let within = within.map(|label| (label.time_ns, label.text.as_str()));
        let header = self.recording.header();
        let (findings, range) = found(header, rules, &self.recording, (from, at.saturating_add(1)), within);
        let events = [
            ScreenEvent::Playback(self.playback.clone()),
            ScreenEvent::Moment(Box::new(moment)),
            ScreenEvent::Processes(table),
            ScreenEvent::Findings(Box::new(findings), range),
        ];
        events.into_iter().all(|event| self.to.send(event).is_ok())
    }

    /// The means of the step before a time.
    fn moment(&self, at: u64) -> Moment {
        let all: Vec<usize> = (0..self.recording.header().series.len()).collect();
        let step = u64::try_from(self.playback.step.as_nanos()).unwrap_or(u64::MAX);
        let end = at.saturating_add(1);
        let answer = self.recording.buckets(&all, end.saturating_sub(step).max(self.playback.first), end, 1);
        let value =
            |mean: &Vec<f32>| mean.first().filter(|mean| mean.is_finite()).map(|mean| f64::from(*mean));
        let row: Vec<Option<f64>> = answer.columns.iter().map(|column| value(&column.mean)).collect();
        self.machine.moment(at, &row)
    }
}

/// The observed program as the only process.
fn table(machine: &MachineMeters, moment: &Moment) -> ProcessTable {
    let Some(observed) = &moment.observed else {
        let absent =
            "a recording has the processes of its command only; record with numa record COMMAND, or --pid";
        return ProcessTable { absent: Some(absent.to_owned()), ..ProcessTable::default() };
    };
    let known: Option<Vec<u64>> =
        observed.memory.iter().map(|bytes| bytes.map(|bytes| bytes as u64)).collect();
    let row = ProcessRow {
        pid: 0,
        parent: 0,
        user: String::new(),
        command: machine.command.clone().unwrap_or_else(|| "the observed program".to_owned()),
        cpu: observed.cpu,
        remote: observed.far,
        resident: known.as_ref().map(|memory| memory.iter().sum()),
        memory: known.ok_or(NotRead::NotRecorded),
        faults: observed.faults,
        moved: None,
    };
    ProcessTable { rows: vec![row], ..ProcessTable::default() }
}
