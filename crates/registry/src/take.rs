//! Selecting and locking cores in one step.

use crate::allocation_lock::AllocationLock;
use crate::error::{RegistryError, TakeError};
use crate::holding::{Holder, Holding, RegistryView};
use crate::open::Registry;
use crate::record::{HolderRecord, MAX_CPUS, MAX_SLOTS, Parsed};
use crate::reservation::{Locked, MIN_DESCRIPTOR, Reservation, process_id};
use crate::scan::{Scan, pid_namespace};
use crate::tag;
use numakit_model::CpuSet;
use numakit_sys::proc::{TaskDir, cgroup};
use numakit_sys::{SysRoot, clock, file, user};
use std::io;
use std::time::Duration;

/// Between two attempts to find free cores.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Another process may remove the file, or take the selected cores without the allocation lock.
const MAX_ATTEMPTS: usize = 20;

/// What the caller tells about the new holder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HolderInfo {
    /// The program's name.
    pub application: String,
}

/// Selected cores.
#[derive(Debug, Clone)]
pub struct CoreSelection<T> {
    /// All CPUs to hold: whole cores, with all their PUs.
    pub cpus: CpuSet,
    /// The number of these cores.
    pub cores: u32,
    /// A value that the caller gets back, such as the plan.
    pub value: T,
}

impl Registry {
    /// Takes cores under the allocation lock. `select` receives the present holdings and may select any CPU that is
    /// not held ([`RegistryView::held`]), or refuse, as for a limit of the user. If it fails, nothing is taken.
    pub fn take<T, E>(
        &mut self,
        info: &HolderInfo,
        mut select: impl FnMut(&RegistryView) -> Result<CoreSelection<T>, E>,
    ) -> Result<(Reservation, T), TakeError<E>> {
        let mut attempts = 0;
        loop {
            let lock = self.acquire_lock()?;
            let attempt = self.attempt(&lock, info, &mut select);
            self.release_lock(lock);
            attempts += 1;
            match attempt? {
                Attempt::Taken(reservation, value) => return Ok((reservation, value)),
                Attempt::Retry(error) if attempts == MAX_ATTEMPTS => return Err(error.into()),
                Attempt::Retry(_) => {}
            }
        }
    }

    /// Selects and locks cores, and waits for free ones until the timeout; without a timeout, indefinitely. It waits if
    /// `is_temporary` says so of an error of `select`.
    pub fn take_waiting<T, E>(
        &mut self,
        info: &HolderInfo,
        timeout: Option<Duration>,
        is_temporary: impl Fn(&E) -> bool,
        mut select: impl FnMut(&RegistryView) -> Result<CoreSelection<T>, E>,
    ) -> Result<(Reservation, T), TakeError<E>> {
        let wait = timeout.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let deadline = wait.map(|wait| clock::monotonic().saturating_add(wait));
        loop {
            let error = match self.take(info, &mut select) {
                Ok(taken) => return Ok(taken),
                Err(error) => error,
            };
            let may_succeed = match &error {
                TakeError::Registry(error) => error.is_temporary(),
                TakeError::Selection(error) => is_temporary(error),
            };
            if !may_succeed || deadline.is_some_and(|deadline| clock::monotonic() >= deadline) {
                return Err(error);
            }
            std::thread::sleep(RETRY_INTERVAL);
        }
    }

    fn attempt<T, E>(
        &self,
        lock: &AllocationLock,
        info: &HolderInfo,
        select: &mut impl FnMut(&RegistryView) -> Result<CoreSelection<T>, E>,
    ) -> Result<Attempt<T>, TakeError<E>> {
        let holders = self.scan_holders()?;
        if lock.is_acquired() {
            self.write_mark(&holders);
        }
        let occupied: Vec<u64> = holders.audit.lost.iter().filter_map(|lost| lost.slot).collect();
        let slot = free_slot(&holders.scan, &occupied)?;
        let stale = holders.scan.stale.iter().find(|(at, _)| *at == slot).map(|(_, record)| record.clone());
        let view = RegistryView { warning: lock.warning(), ..holders.into_view() };
        let selection = select(&view).map_err(TakeError::Selection)?;
        if selection.cpus.last().is_none_or(|last| last >= MAX_CPUS) {
            return Err(RegistryError::InvalidCpus(selection.cpus).into());
        }
        if let Some(error) = conflict(&view.holdings, &selection.cpus) {
            return Err(error.into());
        }
        let tag = tag::new(self.location.identity(&self.file));
        let holder = Holder { tag: Some(tag), ..new_holder(info, selection.cores) };
        let record = HolderRecord { cpus: selection.cpus, holder, ended: false };
        Ok(match self.lock(slot, record, stale.as_ref())? {
            Attempt::Taken(reservation, ()) => Attempt::Taken(reservation, selection.value),
            Attempt::Retry(error) => Attempt::Retry(error),
        })
    }

    /// Locks and writes through a new open file description, which the program inherits. The new record replaces one that
    /// has ended, or the record `stale`, whose program does not run.
    fn lock(
        &self,
        slot: u64,
        record: HolderRecord,
        stale: Option<&HolderRecord>,
    ) -> Result<Attempt<()>, RegistryError> {
        let failed = |doing: &'static str| move |error: io::Error| self.failed(doing, &error);
        let removed =
            || Attempt::Retry(self.failed("used", &io::Error::other("it is removed again and again")));
        let own = match file::open_existing(&self.path, true) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(removed()),
            other => other.map_err(failed("opened"))?,
        };
        if !file::is_same(&own, &self.file).map_err(failed("found"))? {
            return Ok(removed());
        }
        let file = file::duplicate_from(&own, MIN_DESCRIPTOR).map_err(failed("opened"))?;
        let reservation = Reservation { file, location: self.location.clone(), slot, record };
        let may_replace = |there: &Parsed| match there {
            Parsed::Record(there) => there.ended || stale == Some(&**there),
            Parsed::Empty | Parsed::Damaged => true,
        };
        match reservation.lock(may_replace).map_err(failed("locked"))? {
            Locked::NoSlot => return Ok(Attempt::Retry(RegistryError::Full(MAX_SLOTS))),
            Locked::AllBut(cpus) => {
                reservation.release();
                let holders = "a program that took them without the allocation lock".to_owned();
                return Ok(Attempt::Retry(RegistryError::Held { cpus, holders }));
            }
            Locked::All => {}
        }
        // Processes that open a different file from now on see these locks. A process that has opened a different file
        // before does not: so the file must still have the name.
        if self.is_in_place(&reservation.file).map_err(failed("found"))? {
            return Ok(Attempt::Taken(reservation, ()));
        }
        reservation.release();
        Ok(removed())
    }
}

enum Attempt<T> {
    Taken(Reservation, T),
    /// Something changed meanwhile; the error if that happens at each attempt.
    Retry(RegistryError),
}

/// The first record that is not locked and belongs to no running program.
fn free_slot(scan: &Scan, occupied: &[u64]) -> Result<u64, RegistryError> {
    let free = |slot: &u64| scan.slots.binary_search(slot).is_err() && !occupied.contains(slot);
    (0..MAX_SLOTS).find(free).ok_or(RegistryError::Full(MAX_SLOTS))
}

fn conflict(holdings: &[Holding], cpus: &CpuSet) -> Option<RegistryError> {
    let others: Vec<&Holding> = holdings.iter().filter(|holding| holding.cpus.intersects(cpus)).collect();
    let held = others.iter().fold(CpuSet::new(), |all, holding| all.or(&holding.cpus.and(cpus)));
    let holders = others.iter().map(|holding| holding.to_string()).collect::<Vec<_>>().join(", ");
    (!held.is_empty()).then_some(RegistryError::Held { cpus: held, holders })
}

/// This process as a holder.
fn new_holder(info: &HolderInfo, cores: u32) -> Holder {
    let me = process_id(std::process::id());
    let groups = TaskDir::own(&SysRoot::host()).text("cgroup").ok();
    Holder {
        application: info.application.clone(),
        user: user::real_id(),
        since: Some(clock::utc()),
        since_boot: me.map_or(0, |me| me.start),
        cores: Some(cores),
        cgroup: groups.as_deref().and_then(cgroup::unified).map(str::to_owned),
        job: std::env::var("SLURM_JOB_ID").ok().filter(|job| !job.is_empty()),
        supervisor: me,
        program: None,
        pid_namespace: pid_namespace(),
        tag: None,
    }
}
