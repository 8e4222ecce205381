//! What can be measured here, what cannot, and the fix.

mod machine;
mod operations;
mod pod;

use crate::switches::BALANCE;
use crate::{Probe, SENSORS};
pub use machine::check as check_machine;
use numakit_model::{Fix, Topology, Unavailable};
pub use numakit_sys::permissions;
use numakit_sys::permissions::{Permission, Permissions, Runtime};
pub use operations::check as check_operations;
use std::io;
use std::path::PathBuf;

/// How a finding counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingState {
    /// Available.
    Ok,
    /// Unavailable, and nothing on the running system can change that.
    Note,
    /// Unavailable, and its fix makes it available.
    Missing,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckupItem {
    /// How it counts.
    pub state: FindingState,
    /// What was checked.
    pub about: String,
    /// The result.
    pub seen: String,
    /// The fix; `None` if it is available.
    pub fix: Option<Fix>,
}

impl CheckupItem {
    /// Available.
    pub fn ok(about: impl Into<String>, seen: impl Into<String>) -> Self {
        Self { state: FindingState::Ok, about: about.into(), seen: seen.into(), fix: None }
    }

    /// It is unavailable, and that is only a note.
    pub fn note(about: impl Into<String>, seen: impl Into<String>, fix: Fix) -> Self {
        Self { state: FindingState::Note, about: about.into(), seen: seen.into(), fix: Some(fix) }
    }

    /// The same in a container: commands would change the host, and cannot be run here.
    pub fn in_a_container(self) -> Self {
        match self.fix {
            Some(
                fix
                @ (Fix::Commands(_) | Fix::Root { .. } | Fix::Driver { .. } | Fix::KernelParameter { .. }),
            ) => Self::note(self.about, self.seen, Fix::Step(format!("on the host: {fix}"))),
            _ => self,
        }
    }

    /// The same for root, who needs no `sudo`.
    pub fn as_root(self) -> Self {
        Self { fix: self.fix.map(Fix::as_root), ..self }
    }

    /// It is unavailable; that is a note if the fix is impossible on the running system.
    pub fn lacking(about: impl Into<String>, seen: impl Into<String>, fix: Fix) -> Self {
        let state = if fix.is_possible_here() { FindingState::Missing } else { FindingState::Note };
        Self { state, ..Self::note(about, seen, fix) }
    }
}

/// What this process may do on the machine that it runs on.
#[derive(Debug)]
pub struct ProcessRights<'a> {
    /// What the kernel permits it.
    pub permissions: &'a Permissions,
    /// Its limit of open files.
    pub open_files: u64,
    /// The directory of control sockets, or why there is none.
    pub run_directory: io::Result<PathBuf>,
}

/// What the absence of all hardware counters is called.
pub const HARDWARE_COUNTERS: &str = "hardware counters";

/// Open files in addition to those of the sensors: recording, control, standard streams.
const OTHER_FILES: u64 = 32;

/// Checks everything; without a process (for a capture), only the machine.
pub fn check(probe: &Probe, topology: &Topology, process: Option<&ProcessRights<'_>>) -> Vec<CheckupItem> {
    let mut findings = sensors(probe, topology);
    findings.extend(hardware_counters(probe));
    findings.push(locality(topology));
    if let Some(process) = process {
        findings.extend([realtime(process), open_files(probe, process), run_directory(process)]);
        if process.permissions.surroundings.runtime == Runtime::Kubernetes {
            findings.extend(pod::check(topology));
        }
    }
    findings
}

fn sensors(probe: &Probe, topology: &Topology) -> Vec<CheckupItem> {
    let mut findings = Vec::new();
    for entry in SENSORS {
        let of_sensor = |name: &str| name.split('.').next() == Some(entry.name);
        if let Some((_, why)) = probe.unavailable.iter().find(|(e, _)| e.name == entry.name) {
            findings.push(missing(format!("{}: {}", entry.name, why.missing), why, topology));
            continue;
        }
        let series = probe.series().filter(|s| of_sensor(&s.metric.name)).count();
        findings.push(CheckupItem::ok(entry.name, format!("{} {series} series.", entry.help)));
        // Metrics with the same reason and fix are one finding.
        let mut reasons: Vec<(&Unavailable, Vec<&str>, bool)> = Vec::new();
        for absent in probe.absent().filter(|a| of_sensor(&a.metric.name)) {
            let is_sampled = (entry.default)(&absent.metric);
            match reasons.iter_mut().find(|(why, ..)| why.fix == absent.why.fix) {
                Some((_, names, any)) => {
                    names.push(absent.metric.bare());
                    *any |= is_sampled;
                }
                None => reasons.push((&absent.why, vec![absent.metric.bare()], is_sampled)),
            }
        }
        for (why, names, is_sampled) in reasons {
            let item = missing(format!("{}: {}", entry.name, several(&names)), why, topology);
            // What has to be asked for by name is not missed otherwise.
            let state = if is_sampled { item.state } else { FindingState::Note };
            findings.push(CheckupItem { state, ..item });
        }
    }
    findings
}

/// Maximum number of names in one finding.
const MAX_NAMES: usize = 9;

fn several(names: &[&str]) -> String {
    let shown = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn missing(about: String, why: &Unavailable, topology: &Topology) -> CheckupItem {
    // With one node there is nothing to balance: the counters would stay 0.
    let is_pointless = why.fix.is_command(BALANCE) && topology.nodes.len() < 2;
    let fix = match is_pointless {
        true => {
            Fix::OtherMachine("a machine with several nodes: here there is nothing to balance".to_owned())
        }
        false => why.fix.clone(),
    };
    CheckupItem::lacking(about, why.seen.as_str(), fix)
}

/// What a user looks for first where there are no hardware counters; `None` where there are.
fn hardware_counters(probe: &Probe) -> Option<CheckupItem> {
    let cycles = probe.absent().find(|absent| absent.metric.name == "perf.cycles")?;
    let seen = format!(
        "none ({}): cycles and loads by node are not counted; 'numa explain' needs none of them",
        cycles.why.seen
    );
    (!cycles.why.fix.is_possible_here())
        .then(|| CheckupItem::note(HARDWARE_COUNTERS, seen, cycles.why.fix.clone()))
}

fn locality(topology: &Topology) -> CheckupItem {
    let with_memory = topology.nodes.iter().filter(|n| n.memory_kb != Some(0)).count();
    if with_memory > 1 {
        return CheckupItem::ok("locality", format!("{with_memory} nodes with memory"));
    }
    let fix = Fix::OtherMachine("a machine with several nodes, or read a recording of one".to_owned());
    CheckupItem::lacking(
        "locality",
        "one node: all memory is local, so local and remote cannot be distinguished",
        fix,
    )
}

fn realtime(process: &ProcessRights<'_>) -> CheckupItem {
    let Err(refusal) = process.permissions.check(Permission::RealTime) else {
        return CheckupItem::ok("real-time priority", "permitted: samples are on time on a busy machine too");
    };
    let seen = "not permitted: on a busy machine samples may come late";
    CheckupItem::lacking("real-time priority", seen, refusal.fix.clone())
}

fn open_files(probe: &Probe, process: &ProcessRights<'_>) -> CheckupItem {
    let needed = probe.files() as u64 + OTHER_FILES;
    if needed <= process.open_files {
        let seen = format!("{needed} needed for all series, {} allowed", process.open_files);
        return CheckupItem::ok("open files", seen);
    }
    let seen = format!("{needed} needed for all series, but only {} allowed", process.open_files);
    let fix = Fix::Step(format!(
        "ulimit -n {needed} (as root, or LimitNOFILE={needed} in the systemd unit), or choose fewer series with -e"
    ));
    CheckupItem::lacking("open files", seen, fix)
}

fn run_directory(process: &ProcessRights<'_>) -> CheckupItem {
    match &process.run_directory {
        Ok(path) => {
            CheckupItem::ok("run directory", format!("{}: 'numa ctl' can reach what runs", path.display()))
        }
        Err(why) => {
            let fix = "set XDG_RUNTIME_DIR to a directory of your own; without it 'numa ctl' reaches nothing";
            CheckupItem::lacking("run directory", why.to_string(), Fix::Step(fix.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scene;
    use crate::switches::NUMA_BALANCING;
    use crate::testing::{nodes, root};
    use numakit_sys::permissions::{Refusal, Refuser, Surroundings};

    fn refusing(surroundings: Surroundings) -> Permissions {
        let refuser = Refuser::Limit { limit: "RLIMIT_RTPRIO", capability: "CAP_SYS_NICE" };
        let fix = Fix::Step("docker run --cap-add SYS_NICE ...".to_owned());
        Permissions {
            surroundings,
            refusals: vec![Refusal { permission: Permission::RealTime, refuser, fix }],
        }
    }

    fn process(permissions: &Permissions) -> ProcessRights<'_> {
        ProcessRights {
            permissions,
            open_files: 1024,
            run_directory: Ok(PathBuf::from("/run/user/1/numakit")),
        }
    }

    fn findings(
        files: &[(&str, &str)],
        topology: &Topology,
        process: Option<&ProcessRights<'_>>,
    ) -> Vec<CheckupItem> {
        check(&Probe::new(&Scene::new(&root(files), topology)), topology, process)
    }

    fn about<'a>(findings: &'a [CheckupItem], start: &str) -> &'a CheckupItem {
        findings
            .iter()
            .find(|f| f.about.starts_with(start))
            .unwrap_or_else(|| panic!("nothing about {start}"))
    }

    fn fix(findings: &[CheckupItem], start: &str) -> String {
        about(findings, start).fix.as_ref().unwrap().to_string()
    }

    #[test]
    fn in_a_container_fixes_are_those_of_its_runtime_and_of_its_host() {
        let permissions = refusing(Surroundings { runtime: Runtime::Docker, ..Surroundings::default() });
        let all = findings(&[VMSTAT, BALANCING_OFF], &nodes(&[0, 1]), Some(&process(&permissions)));
        let all: Vec<CheckupItem> = all.into_iter().map(CheckupItem::in_a_container).collect();
        assert_eq!(fix(&all, "real-time"), "docker run --cap-add SYS_NICE ...");
        assert_eq!(fix(&all, "vmstat: numa_hint_faults"), "on the host: sysctl kernel.numa_balancing=1");
        assert_eq!(about(&all, "vmstat: numa_hint_faults").state, FindingState::Note);
    }

    const VMSTAT: (&str, &str) =
        ("/proc/vmstat", "numa_hit 1\npgfault 2\nnuma_hint_faults 3\nnuma_pte_updates 3\n");
    const BALANCING_OFF: (&str, &str) = (NUMA_BALANCING, "0\n");

    #[test]
    fn available_sensors_are_ok_and_their_series_are_counted() {
        let all = findings(&[VMSTAT], &nodes(&[0, 1]), Some(&process(&Permissions::default())));
        assert_eq!(about(&all, "vmstat").state, FindingState::Ok);
        assert!(about(&all, "vmstat").seen.ends_with(" 4 series."));
        for name in ["locality", "real-time", "open files", "run directory"] {
            assert_eq!(
                (about(&all, name).state, &about(&all, name).fix),
                (FindingState::Ok, &None),
                "{name}"
            );
        }
    }

    #[test]
    fn metrics_that_are_missing_for_one_reason_are_one_finding() {
        let all = findings(&[VMSTAT, BALANCING_OFF], &nodes(&[0, 1]), None);
        let finding = about(&all, "vmstat: numa_hint_faults, numa_pte_updates");
        assert_eq!(finding.state, FindingState::Missing);
        assert_eq!(finding.fix, Some(Fix::command("sysctl kernel.numa_balancing=1")));
        assert!(fix(&all, "pressure: pressure stall information").contains("psi=1"));
    }

    #[test]
    fn what_the_machine_cannot_give_is_a_note() {
        let all = findings(&[VMSTAT, BALANCING_OFF], &nodes(&[0]), None);
        assert_eq!(about(&all, "vmstat: numa_hint_faults").state, FindingState::Note);
        assert!(fix(&all, "vmstat: numa_hint_faults").ends_with("here there is nothing to balance"));
        assert_eq!(about(&all, "locality").state, FindingState::Note);
        let old_kernel = findings(&[("/proc/vmstat", "pgfault 1\n")], &nodes(&[]), None);
        assert_eq!(about(&old_kernel, "vmstat: numa_hit").state, FindingState::Note);
        assert_eq!(about(&old_kernel, "node: ").state, FindingState::Note);
        assert_eq!(about(&old_kernel, "task: ").state, FindingState::Note);
    }

    #[test]
    fn how_a_finding_counts_depends_on_the_kind_of_its_fix_and_not_on_its_words() {
        let state = |fix: Fix| CheckupItem::lacking("it", "seen", fix).state;
        let words = || "boot a kernel, or run on a machine that has it".to_owned();
        assert_eq!(state(Fix::Step(words())), FindingState::Missing);
        assert_eq!(state(Fix::OtherMachine(words())), FindingState::Note);
        assert_eq!(state(Fix::BuildOption("CONFIG_NUMA".to_owned())), FindingState::Note);
        assert_eq!(state(Fix::CommandLine("run it as root".to_owned())), FindingState::Note);
    }

    #[test]
    fn what_the_process_may_not_do_has_its_exact_fix() {
        let permissions = refusing(Surroundings::default());
        let poor = ProcessRights {
            open_files: 20,
            run_directory: Err(io::Error::other("/run/numakit: permission denied")),
            ..process(&permissions)
        };
        let all = findings(&[VMSTAT], &nodes(&[0, 1]), Some(&poor));
        assert_eq!(fix(&all, "real-time"), "docker run --cap-add SYS_NICE ...");
        assert!(fix(&all, "open files").starts_with("ulimit -n 33 "));
        assert!(about(&all, "run directory").seen.contains("permission denied"));
        for name in ["real-time", "open files", "run directory"] {
            assert_eq!(about(&all, name).state, FindingState::Missing);
        }
    }
}
