//! Choosing and locking cores in one step.

use crate::error::{RegistryError, TakeError};
use crate::held::{Held, LEAST_DESCRIPTOR, process};
use crate::holding::{Holding, Seen, Who};
use crate::limits::Limits;
use crate::open::{Registry, read_header};
use crate::record::{HEADER, MAGIC, MOST_CPUS, MOST_SLOTS, Record, chooser, header};
use crate::scan::{self, Scan, TURN, pid_namespace, slot_lock};
use crate::{audit, isolate};
use numakit_model::CpuSet;
use numakit_sys::{SysRoot, clock, file, lock, user};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Choosing takes milliseconds; who takes longer stands still.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries for the turn, and between two looks for free cores.
const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_millis(100);

/// What a holder says of itself that this process does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The program's name.
    pub application: String,
}

/// What was chosen.
#[derive(Debug, Clone)]
pub struct Chosen<T> {
    /// All CPUs to be held: whole cores, with all their PUs.
    pub cpus: CpuSet,
    /// How many cores that is.
    pub cores: u32,
    /// What else came out, such as the plan.
    pub with: T,
}

impl Registry {
    /// Chooses and takes cores within the limits; nobody else chooses meanwhile. `choose` is given
    /// what is held ([`Seen::held`]) and may choose anything else. Nothing is taken where this is
    /// an error.
    pub fn take<T, E>(
        &mut self,
        about: &About,
        limits: &Limits,
        choose: impl FnOnce(&Seen) -> Result<Chosen<T>, E>,
    ) -> Result<(Held, T), TakeError<E>> {
        self.turn(PATIENCE)?;
        let taken = self.take_in_turn(about, limits, choose);
        let _ = lock::unlock(self.file.as_fd(), TURN);
        taken
    }

    /// The same; what is not there now is looked for again until the time is over, for ever
    /// without one. `worth` tells for which refusals of `choose` waiting makes sense.
    pub fn take_waiting<T, E>(
        &mut self,
        about: &About,
        limits: &Limits,
        timeout: Option<Duration>,
        worth: impl Fn(&E) -> bool,
        mut choose: impl FnMut(&Seen) -> Result<Chosen<T>, E>,
    ) -> Result<(Held, T), TakeError<E>> {
        let wait = timeout.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let deadline = wait.map(|wait| clock::monotonic().saturating_add(wait));
        loop {
            let error = match self.take(about, limits, &mut choose) {
                Ok(taken) => return Ok(taken),
                Err(error) => error,
            };
            let may_pass = match &error {
                TakeError::Registry(error) => error.may_pass(),
                TakeError::Choice(refusal) => worth(refusal),
            };
            if !may_pass || deadline.is_some_and(|deadline| clock::monotonic() >= deadline) {
                return Err(error);
            }
            std::thread::sleep(LONG);
        }
    }

    /// Waits until it is this process's turn to choose, and makes sure that all others see what it
    /// does: in the file that has the name, with a whole header.
    fn turn(&mut self, patience: Duration) -> Result<(), RegistryError> {
        let deadline = clock::monotonic().saturating_add(patience.as_nanos() as u64);
        loop {
            let locked = lock::try_lock(self.file.as_fd(), TURN);
            if !locked.map_err(|error| self.failed("locked", &error))? {
                if clock::monotonic() >= deadline {
                    return Err(self.busy(patience));
                }
                std::thread::sleep(SHORT);
                continue;
            }
            // Somebody may have removed the file after this process opened it.
            if file::is_at(&self.file, &self.path).map_err(|error| self.failed("found", &error))? {
                return self.sign().inspect_err(|_| {
                    let _ = lock::unlock(self.file.as_fd(), TURN);
                });
            }
            *self = Self::open_at(&self.path)?;
        }
    }

    /// Writes down who chooses, for those who wait in vain; repairs a header that is not there.
    fn sign(&self) -> Result<(), RegistryError> {
        let there = read_header(&self.file).map_err(|error| self.failed("read", &error))?;
        let name = std::env::args_os().next().unwrap_or_default();
        let name = std::path::Path::new(&name).file_name().unwrap_or_default().to_string_lossy();
        let mine = header(std::process::id(), &name);
        let from = if there.len() == HEADER && there.starts_with(MAGIC) { MAGIC.len() } else { 0 };
        self.file.write_all_at(&mine[from..], from as u64).map_err(|error| self.failed("written", &error))
    }

    fn busy(&self, patience: Duration) -> RegistryError {
        let who = read_header(&self.file).ok().and_then(|header| chooser(&header));
        let who = who.map_or("somebody".to_owned(), |(pid, name)| format!("process {pid} ({name})"));
        RegistryError::Busy { path: self.path.clone(), who, seconds: patience.as_secs() }
    }

    fn take_in_turn<T, E>(
        &self,
        about: &About,
        limits: &Limits,
        choose: impl FnOnce(&Seen) -> Result<Chosen<T>, E>,
    ) -> Result<(Held, T), TakeError<E>> {
        let scan = scan::scan(&self.file).map_err(|error| self.failed("read", &error))?;
        let audit = audit::look(&SysRoot::host(), std::process::id(), &scan, &self.path);
        let kept: Vec<u64> = audit.lost.iter().filter_map(|lost| lost.slot).collect();
        let slot = free_slot(&scan, &kept)?;
        let seen = scan.with(audit);
        let chosen = choose(&seen).map_err(TakeError::Choice)?;
        if chosen.cpus.last().is_none_or(|last| last >= MOST_CPUS) {
            return Err(RegistryError::Choice(chosen.cpus).into());
        }
        if let Some(error) = conflict(&seen.holdings, &chosen.cpus) {
            return Err(error.into());
        }
        limits.check(&seen.holdings, chosen.cores)?;
        let record = Record { cpus: chosen.cpus, who: who(about, chosen.cores), ended: false };
        Ok((self.lock(slot, record)?, chosen.with))
    }

    /// Locks and writes through a description of its own, which the program inherits.
    fn lock(&self, slot: u64, record: Record) -> Result<Held, RegistryError> {
        let failed = |doing: &'static str| move |error: io::Error| self.failed(doing, &error);
        let own = file::open_existing(&self.path, true).map_err(failed("opened"))?;
        let own = file::high_copy(&own, LEAST_DESCRIPTOR).map_err(failed("opened"))?;
        let held = Held { file: own, slot, record };
        let get = |part: Range<u64>| lock::try_lock(held.file.as_fd(), part).map_err(failed("locked"));
        if !get(slot_lock(slot))? {
            return Err(RegistryError::Crowded(MOST_SLOTS));
        }
        // The record comes first: what is locked without one is damaged.
        held.write().map_err(failed("written"))?;
        for part in ranges(&held.record.cpus) {
            if !get(part.clone())? {
                let cpus = CpuSet::range(part.start as u32, part.end as u32 - 1);
                held.end();
                let who = "a program that does not take turns".to_owned();
                return Err(RegistryError::Held { cpus, who });
            }
        }
        Ok(held)
    }
}

/// The first record that nobody has and that tells of nobody who still runs.
fn free_slot(scan: &Scan, kept: &[u64]) -> Result<u64, RegistryError> {
    let free = |slot: &u64| scan.slots.binary_search(slot).is_err() && !kept.contains(slot);
    (0..MOST_SLOTS).find(free).ok_or(RegistryError::Crowded(MOST_SLOTS))
}

fn conflict(holdings: &[Holding], cpus: &CpuSet) -> Option<RegistryError> {
    let others: Vec<&Holding> = holdings.iter().filter(|holding| holding.cpus.intersects(cpus)).collect();
    let held = others.iter().fold(CpuSet::new(), |all, holding| all.or(&holding.cpus.and(cpus)));
    let who = others.iter().map(|holding| holding.to_string()).collect::<Vec<_>>().join(", ");
    (!held.is_empty()).then_some(RegistryError::Held { cpus: held, who })
}

/// What this process can say of itself.
fn who(about: &About, cores: u32) -> Who {
    let me = process(std::process::id());
    let cgroup = std::fs::read_to_string("/proc/self/cgroup").ok();
    Who {
        application: about.application.clone(),
        user: user::real_id(),
        since: Some(clock::utc()),
        since_boot: me.map_or(0, |me| me.start),
        cores: Some(cores),
        cgroup: cgroup.as_deref().and_then(isolate::group_path).map(str::to_owned),
        job: std::env::var("SLURM_JOB_ID").ok().filter(|job| !job.is_empty()),
        keeper: me,
        program: None,
        pids: pid_namespace(),
    }
}

/// Neighbouring CPUs as one range: as few locks as possible.
fn ranges(cpus: &CpuSet) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for cpu in cpus.iter().map(u64::from) {
        match ranges.last_mut() {
            Some(last) if last.end == cpu => last.end += 1,
            _ => ranges.push(cpu..cpu + 1),
        }
    }
    ranges
}
