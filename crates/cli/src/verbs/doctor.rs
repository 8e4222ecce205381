//! `numa doctor`.

use crate::{Examples, GlobalArgs};
use crate::{calibrations, files, peaks};
use anyhow::Context;
use clap::Args;
use numakit_launch::isolate;
use numakit_model::Fix;
use numakit_mover::MoveRecord;
use numakit_observation::run_directory;
use numakit_sensors::checkup::{self, CheckupItem, FindingState, ProcessRights};
use numakit_sensors::{Probe, Scene};
use numakit_server::page;
use numakit_sys::balancing::BalancingFiles;
use numakit_sys::permissions::Permissions;
use numakit_sys::sched;
use numakit_sys::stdio::print;
use numakit_sys::user;
use numakit_terminal::{doctor, permissions};
use std::process::ExitCode;

/// Check what can be measured here, and print how to get the rest
///
/// The exit code is 0 if everything is available that numa uses without being asked and that this machine supports, and 1 if something
/// of it is missing that the printed command enables. What needs another kernel or machine, or is only for -e, is a note.
///
/// The machine itself is checked too: nodes without memory, full nodes, packages and nodes that cross, huge pages that are
/// reserved on other nodes, programs that run on other nodes than their cards, programs that get memory of some nodes only and run on
/// others; scheduler domains, isolated CPUs, slack of timers, transparent huge pages, reclaim, kernel parameters and the console of
/// IPMI. Each is a note that says what it costs. 'numa help guide operations' has what they are worth.
///
/// 'numa explain' has to know where samples land, which is measured once for a processor and a kernel,
/// and kept. Kept calibrations are shown with their age and how busy the machine was.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Write JSON
    #[arg(long)]
    json: bool,
    /// Print also what is fine and what this machine does not have, each with its details
    #[arg(long, conflicts_with = "json")]
    all: bool,
    /// Measure again where samples land
    #[arg(long, conflicts_with = "sysroot")]
    calibrate: bool,
}

impl DoctorArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa doctor", "what can be measured here, and how to get the rest"),
        ("numa doctor --all", "also what is fine, and what this machine does not have"),
    ];

    /// Checks and prints.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        let root = global.root()?;
        let process = root.is_host().then(process).transpose()?;
        let mut topology = numakit_topology::read(&root).context("cannot read the topology")?;
        // Only what remote memory costs needs it.
        let _ = peaks::add(&root, &mut topology);
        let mut findings =
            checkup::check(&Probe::new(&Scene::new(&root, &topology)), &topology, process.as_ref());
        findings.extend(checkup::check_machine(&root, &topology));
        findings.extend(checkup::check_operations(&root, &topology));
        findings.push(web_page());
        if root.is_host() {
            findings.extend(placement());
            findings.extend(calibrations::check(self.calibrate));
            findings.extend(left_behind());
            findings.extend(moved());
            let one_sided = files::one_sided(&root, &topology, None);
            findings.extend(
                one_sided
                    .into_iter()
                    .map(|(seen, fix)| CheckupItem::note("page cache on one node", seen, Fix::Step(fix))),
            );
        }
        let permissions = root.is_host().then(Permissions::own);
        if permissions.is_some_and(|permissions| permissions.surroundings.runtime.is_container()) {
            findings = findings.into_iter().map(CheckupItem::in_a_container).collect();
        }
        if root.is_host() && user::id() == 0 {
            findings = findings.into_iter().map(CheckupItem::as_root).collect();
        }
        if self.json {
            let mut value = doctor::json(&findings);
            if let (Some(permissions), Some(object)) = (permissions, value.as_object_mut()) {
                object.extend(permissions::json(permissions).as_object().cloned().unwrap_or_default());
            }
            print(format_args!("{value:#}\n"))?;
        } else {
            let width = numakit_sys::tty::columns();
            let mut text = if self.all { doctor::text } else { doctor::brief }(&findings, width);
            text.extend(permissions.map(|permissions| permissions::text(permissions, width, !self.all)));
            if !self.all {
                text.push_str("\n'numa doctor --all' prints all of it with its details.\n");
            }
            print(text)?;
        }
        Ok(ExitCode::from(u8::from(doctor::count(&findings, FindingState::Missing) > 0)))
    }
}

/// Whether this program contains the page of 'numa live'.
fn web_page() -> CheckupItem {
    const ABOUT: &str = "web page";
    match page::files() {
        Ok(_) => CheckupItem::ok(ABOUT, "embedded in this program"),
        Err(missing) => {
            let seen = format!("built without it: {}", missing.reason);
            CheckupItem::note(ABOUT, seen, Fix::Step(missing.fix.to_owned()))
        }
    }
}

/// What a killed 'numa explain --hint-faults' has left on.
fn left_behind() -> Option<CheckupItem> {
    let left = BalancingFiles::default().left_behind()?;
    let seen = format!(
        "still switched on by 'numa explain --hint-faults' (process {}), which was killed",
        left.process
    );
    Some(CheckupItem::lacking("kernel.numa_balancing", seen, Fix::command(left.command())))
}

/// Processes that 'numa move' has moved, with the command that undoes it.
fn moved() -> impl Iterator<Item = CheckupItem> {
    MoveRecord::kept().into_iter().map(|kept| {
        let seen = format!("process {} ({}) was moved; that can be undone", kept.process, kept.command);
        CheckupItem::note("moved program", seen, Fix::command(kept.undo))
    })
}

/// The requirements of 'numa run': the registry, the library that programs load, and for --isolate a control group.
fn placement() -> [CheckupItem; 3] {
    let (registry, library) = ("registry of cores", "library for programs");
    let group = "control group for 'numa run --isolate'";
    [
        match numakit_registry::inspect() {
            Ok(view) => CheckupItem::ok(registry, holders(view.holdings.len())),
            Err(error) => CheckupItem::lacking(registry, error.problem, error.fix),
        },
        match numakit_launch::preload::Library::Place.extract() {
            Ok(path) => CheckupItem::ok(library, path.display().to_string()),
            Err(error) => CheckupItem::lacking(library, error.problem(), Fix::Step(error.fix())),
        },
        match isolate::check() {
            Ok(text) => CheckupItem::ok(group, text),
            // Only --isolate needs it.
            Err(error) => CheckupItem::note(group, error.to_string(), error.fix()),
        },
    ]
}

fn holders(count: usize) -> String {
    match count {
        0 => "no program holds cores".to_owned(),
        1 => "1 program holds cores".to_owned(),
        count => format!("{count} programs hold cores"),
    }
}

fn process() -> anyhow::Result<ProcessRights<'static>> {
    Ok(ProcessRights {
        permissions: Permissions::own(),
        open_files: sched::raise_open_files().context("cannot read the limit of open files")?,
        run_directory: run_directory::open(),
    })
}
