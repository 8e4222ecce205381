//! Choosing and locking cores in one step.

use crate::error::{RegistryError, TakeError};
use crate::held::{Locked, MIN_DESCRIPTOR, Reservation, process};
use crate::holding::{Holding, RegistryView, Who};
use crate::limits::CoreLimits;
use crate::open::Registry;
use crate::record::{HolderRecord, MAX_CPUS, MAX_SLOTS, Parsed};
use crate::scan::{Scan, pid_namespace};
use crate::tag;
use crate::turn::Turn;
use numakit_model::CpuSet;
use numakit_sys::proc::{TaskDir, cgroup};
use numakit_sys::{SysRoot, clock, file, user};
use std::io;
use std::time::Duration;

/// Between two looks for free cores.
const LONG: Duration = Duration::from_millis(100);
/// Somebody may remove the file, or take what was chosen without a turn.
const TRIES: usize = 20;

/// What a holder says of itself that this process does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HolderInfo {
    /// The program's name.
    pub application: String,
}

/// What was chosen.
#[derive(Debug, Clone)]
pub struct CoreSelection<T> {
    /// All CPUs to be held: whole cores, with all their PUs.
    pub cpus: CpuSet,
    /// How many cores that is.
    pub cores: u32,
    /// What else came out, such as the plan.
    pub with: T,
}

impl Registry {
    /// Chooses and takes cores within the limits; nobody else chooses meanwhile. `choose` is given
    /// what is held ([`RegistryView::held`]) and may choose anything else. Nothing is taken where this is
    /// an error.
    pub fn take<T, E>(
        &mut self,
        about: &HolderInfo,
        limits: &CoreLimits,
        mut choose: impl FnMut(&RegistryView) -> Result<CoreSelection<T>, E>,
    ) -> Result<(Reservation, T), TakeError<E>> {
        let mut tries = 0;
        loop {
            let turn = self.turn()?;
            let taken = self.take_in_turn(&turn, about, limits, &mut choose);
            self.end(turn);
            tries += 1;
            match taken? {
                Attempt::Taken(held, with) => return Ok((held, with)),
                Attempt::Again(error) if tries == TRIES => return Err(error.into()),
                Attempt::Again(_) => {}
            }
        }
    }

    /// The same; what is not there now is looked for again until the time is over, for ever
    /// without one. `worth` tells for which refusals of `choose` waiting makes sense.
    pub fn take_waiting<T, E>(
        &mut self,
        about: &HolderInfo,
        limits: &CoreLimits,
        timeout: Option<Duration>,
        worth: impl Fn(&E) -> bool,
        mut choose: impl FnMut(&RegistryView) -> Result<CoreSelection<T>, E>,
    ) -> Result<(Reservation, T), TakeError<E>> {
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

    fn take_in_turn<T, E>(
        &self,
        turn: &Turn,
        about: &HolderInfo,
        limits: &CoreLimits,
        choose: &mut impl FnMut(&RegistryView) -> Result<CoreSelection<T>, E>,
    ) -> Result<Attempt<T>, TakeError<E>> {
        let known = self.known()?;
        if turn.is_mine() {
            self.mark(&known);
        }
        let kept: Vec<u64> = known.audit.lost.iter().filter_map(|lost| lost.slot).collect();
        let slot = free_slot(&known.scan, &kept)?;
        let stale = known.scan.stale.iter().find(|(at, _)| *at == slot).map(|(_, record)| record.clone());
        let seen = RegistryView { warning: turn.warning(), ..known.seen() };
        let chosen = choose(&seen).map_err(TakeError::Choice)?;
        if chosen.cpus.last().is_none_or(|last| last >= MAX_CPUS) {
            return Err(RegistryError::Choice(chosen.cpus).into());
        }
        if let Some(error) = conflict(&seen.holdings, &chosen.cpus) {
            return Err(error.into());
        }
        limits.check(&seen.holdings, chosen.cores)?;
        let who = Who { tag: Some(tag::fresh(self.place.identity(&self.file))), ..who(about, chosen.cores) };
        let record = HolderRecord { cpus: chosen.cpus, who, ended: false };
        Ok(match self.lock(slot, record, stale.as_ref())? {
            Attempt::Taken(held, ()) => Attempt::Taken(held, chosen.with),
            Attempt::Again(error) => Attempt::Again(error),
        })
    }

    /// Locks and writes through a description of its own, which the program inherits. In place of
    /// the record goes one that has ended, or this `stale` one, of which nothing runs.
    fn lock(
        &self,
        slot: u64,
        record: HolderRecord,
        stale: Option<&HolderRecord>,
    ) -> Result<Attempt<()>, RegistryError> {
        let failed = |doing: &'static str| move |error: io::Error| self.failed(doing, &error);
        let removed =
            || Attempt::Again(self.failed("kept", &io::Error::other("it is removed again and again")));
        let own = match file::open_existing(&self.path, true) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(removed()),
            other => other.map_err(failed("opened"))?,
        };
        if !file::is_same(&own, &self.file).map_err(failed("found"))? {
            return Ok(removed());
        }
        let file = file::high_copy(&own, MIN_DESCRIPTOR).map_err(failed("opened"))?;
        let held = Reservation { file, place: self.place.clone(), slot, record };
        let may_go = |there: &Parsed| match there {
            Parsed::Record(there) => there.ended || stale == Some(&**there),
            Parsed::Empty | Parsed::Damaged => true,
        };
        match held.lock(may_go).map_err(failed("locked"))? {
            Locked::NoSlot => return Ok(Attempt::Again(RegistryError::Crowded(MAX_SLOTS))),
            Locked::AllBut(cpus) => {
                held.end();
                let who = "a program that does not take turns".to_owned();
                return Ok(Attempt::Again(RegistryError::Held { cpus, who }));
            }
            Locked::All => {}
        }
        // From now on whoever finds another file sees these locks. Before, it may have been there
        // already, and its user have seen nothing.
        if self.is_in_place(&held.file).map_err(failed("found"))? {
            return Ok(Attempt::Taken(held, ()));
        }
        held.end();
        Ok(removed())
    }
}

/// What came of a try.
enum Attempt<T> {
    Taken(Reservation, T),
    /// Something changed meanwhile. The error is for whoever sees nothing else again and again.
    Again(RegistryError),
}

/// The first record that nobody has and that tells of nobody who still runs.
fn free_slot(scan: &Scan, kept: &[u64]) -> Result<u64, RegistryError> {
    let free = |slot: &u64| scan.slots.binary_search(slot).is_err() && !kept.contains(slot);
    (0..MAX_SLOTS).find(free).ok_or(RegistryError::Crowded(MAX_SLOTS))
}

fn conflict(holdings: &[Holding], cpus: &CpuSet) -> Option<RegistryError> {
    let others: Vec<&Holding> = holdings.iter().filter(|holding| holding.cpus.intersects(cpus)).collect();
    let held = others.iter().fold(CpuSet::new(), |all, holding| all.or(&holding.cpus.and(cpus)));
    let who = others.iter().map(|holding| holding.to_string()).collect::<Vec<_>>().join(", ");
    (!held.is_empty()).then_some(RegistryError::Held { cpus: held, who })
}

/// What this process can say of itself.
fn who(about: &HolderInfo, cores: u32) -> Who {
    let me = process(std::process::id());
    let groups = TaskDir::own(&SysRoot::host()).text("cgroup").ok();
    Who {
        application: about.application.clone(),
        user: user::real_id(),
        since: Some(clock::utc()),
        since_boot: me.map_or(0, |me| me.start),
        cores: Some(cores),
        cgroup: groups.as_deref().and_then(cgroup::unified).map(str::to_owned),
        job: std::env::var("SLURM_JOB_ID").ok().filter(|job| !job.is_empty()),
        keeper: me,
        program: None,
        pids: pid_namespace(),
        tag: None,
    }
}
