//! Takes cores and runs a program on them: `hold [--wait SECONDS] [--bind] [--unnamed] CPUS PROGRAM...`.
//!
//! CPUS is a list, or `+N` for the first N free ones of 64. The CPUs need not exist, unless `--bind` sets the CPU
//! mask. `--unnamed` leaves `NUMA_HOLD` and `NUMA_MASK` out of the environment.
#![allow(clippy::print_stderr)]

use numakit_launch::limits::{CoreLimits, LimitExceeded};
use numakit_launch::{RunError, Supervisor, run};
use numakit_model::CpuSet;
use numakit_registry::{CoreSelection, HolderInfo, Registry, RegistryView};
use numakit_sys::start::PreparedCommand;
use std::error::Error;
use std::ffi::OsStr;
use std::process::ExitCode;
use std::time::Duration;

type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    numakit_sys::signal::default_broken_pipe();
    hold().unwrap_or_else(|error| {
        eprintln!("hold: {error}");
        ExitCode::from(2)
    })
}

#[derive(Default)]
struct Options {
    wait: Option<Duration>,
    bind: bool,
    unnamed: bool,
    cpus: String,
    words: Vec<String>,
}

fn options() -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut words = std::env::args().skip(1);
    loop {
        match words.next().ok_or("CPUS and PROGRAM are missing")?.as_str() {
            "--wait" => {
                let seconds: f64 = words.next().ok_or("--wait SECONDS")?.parse()?;
                options.wait = Some(Duration::from_secs_f64(seconds));
            }
            "--bind" => options.bind = true,
            "--unnamed" => options.unnamed = true,
            cpus => {
                options.cpus = cpus.to_owned();
                options.words = words.collect();
                return Ok(options);
            }
        }
    }
}

/// The requested CPUs; an error if they are held.
fn select(wanted: &str, view: &RegistryView) -> Result<CoreSelection<()>, String> {
    view.warning.iter().for_each(|warning| eprintln!("hold: warning: {warning}"));
    let free = CpuSet::range(0, 63).minus(&view.held());
    let cpus: CpuSet = match wanted.strip_prefix('+') {
        Some(count) => free.iter().take(count.parse().map_err(|_| "how many?".to_owned())?).collect(),
        None => wanted.parse().map_err(|error| format!("{error}"))?,
    };
    let held = view.holdings.iter().filter(|holding| holding.cpus.intersects(&cpus));
    let holder: Vec<String> =
        held.map(|holding| format!("CPUs {} are held by {holding}", holding.cpus)).collect();
    let cores = cpus.len() as u32;
    if holder.is_empty() { Ok(CoreSelection { cpus, cores, value: () }) } else { Err(holder.join("; ")) }
}

/// Whether to wait after a refusal. Says so if others hold the cores; about a limit it waits silently.
fn waits(refusal: &Failure) -> bool {
    if let Some(limit) = refusal.downcast_ref::<LimitExceeded>() {
        return limit.is_temporary();
    }
    eprintln!("hold: waits: {refusal}");
    true
}

fn hold() -> Result<ExitCode, Failure> {
    let options = options()?;
    let (limits, mut registry) = (CoreLimits::of_this_machine()?, Registry::open()?);
    let application = options.words.first().cloned().unwrap_or_default();
    let info = HolderInfo { application: application.clone() };
    let select = |view: &RegistryView| -> Result<_, Failure> {
        let selected = select(&options.cpus, view)?;
        limits.check(&view.holdings, selected.cores)?;
        Ok(selected)
    };
    let (reservation, ()) = match options.wait {
        None => registry.take(&info, select)?,
        Some(wait) => registry.take_waiting(&info, Some(wait), waits, select)?,
    };
    let mut environment: Vec<_> = std::env::vars_os().collect();
    if !options.unnamed {
        environment.push(("NUMA_HOLD".into(), reservation.descriptor().to_string().into()));
        environment.push(("NUMA_MASK".into(), reservation.cpus().to_string().into()));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = numakit_sys::executable::find(OsStr::new(&application), &path);
    let command = PreparedCommand {
        file: program.unwrap_or_else(|_| application.clone().into()),
        words: options.words.into_iter().map(Into::into).collect(),
        environment,
        cpus: options.bind.then(|| reservation.cpus().clone()),
        descriptor: Some(reservation.descriptor()),
        ..PreparedCommand::default()
    };
    match run(Supervisor { command, reservation: Some(reservation), group: None }) {
        Ok(ending) => Ok(ExitCode::from(ending.mirror())),
        Err(RunError::NotStarted(error)) => {
            eprintln!("hold: {error}");
            Ok(ExitCode::from(numakit_sys::command::start_failure_status(&error)))
        }
        Err(error) => Err(error.into()),
    }
}
