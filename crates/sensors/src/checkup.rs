//! What can be measured here, what cannot, and what would make it possible.

use crate::sensor::{ANOTHER_KERNEL, ANOTHER_MACHINE, COMMAND_LINE};
use crate::switches::NUMA_BALANCING;
use crate::{Probe, SENSORS};
use numakit_model::{Topology, Unavailable};

/// How a finding counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is there.
    Ok,
    /// It is not there, and nothing on the running system can change that.
    Note,
    /// It is not there, and its fix brings it.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How it counts.
    pub state: State,
    /// What was looked at.
    pub about: String,
    /// What was seen.
    pub seen: String,
    /// What would change it; empty where all is well.
    pub fix: String,
}

/// What this process may do on the machine that it runs on.
#[derive(Debug, Clone)]
pub struct Process {
    /// The path of this program.
    pub program: String,
    /// The name of the user who runs it.
    pub user: String,
    /// It may use real-time priority.
    pub realtime: bool,
    /// How many files it may open.
    pub open_files: u64,
    /// The directory for control while running, or why there is none.
    pub run_directory: Result<String, String>,
}

/// Files that are open beside those of the sensors: recording, control, standard streams.
const OTHER_FILES: u64 = 32;

/// Looks at everything. Without a process (for the capture of another machine) only at what
/// the machine has.
pub fn check(probe: &Probe, topology: &Topology, process: Option<&Process>) -> Vec<Finding> {
    let mut findings = sensors(probe, topology);
    findings.push(locality(topology));
    if let Some(process) = process {
        findings.extend([realtime(process), open_files(probe, process), run_directory(process)]);
    }
    findings
}

fn ok(about: &str, seen: String) -> Finding {
    Finding { state: State::Ok, about: about.to_owned(), seen, fix: String::new() }
}

fn sensors(probe: &Probe, topology: &Topology) -> Vec<Finding> {
    let mut findings = Vec::new();
    for entry in SENSORS {
        let of_sensor = |name: &str| name.split('.').next() == Some(entry.name);
        if let Some((_, why)) = probe.unavailable.iter().find(|(e, _)| e.name == entry.name) {
            findings.push(missing(format!("{}: {}", entry.name, why.missing), why, topology));
            continue;
        }
        let series = probe.series().filter(|s| of_sensor(&s.metric.name)).count();
        findings.push(ok(entry.name, format!("{} {series} series.", entry.help)));
        // What one fix brings is one finding.
        let mut reasons: Vec<(&Unavailable, Vec<&str>)> = Vec::new();
        for absent in probe.absent().filter(|a| of_sensor(&a.metric.name)) {
            match reasons.iter_mut().find(|(why, _)| why.fix == absent.why.fix) {
                Some((_, names)) => names.push(absent.metric.bare()),
                None => reasons.push((&absent.why, vec![absent.metric.bare()])),
            }
        }
        for (why, names) in reasons {
            findings.push(missing(format!("{}: {}", entry.name, several(&names)), why, topology));
        }
    }
    findings
}

/// Most names in one finding.
const MOST_NAMES: usize = 9;

fn several(names: &[&str]) -> String {
    let shown = names[..names.len().min(MOST_NAMES)].join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn missing(about: String, why: &Unavailable, topology: &Topology) -> Finding {
    // With one node there is nothing to balance, and the counters would stay 0.
    let pointless = why.seen.starts_with(NUMA_BALANCING) && topology.nodes.len() < 2;
    let elsewhere =
        [ANOTHER_KERNEL, ANOTHER_MACHINE, COMMAND_LINE].iter().any(|start| why.fix.starts_with(start));
    let state = if pointless || elsewhere { State::Note } else { State::Missing };
    Finding { state, about, seen: why.seen.clone(), fix: why.fix.clone() }
}

fn locality(topology: &Topology) -> Finding {
    let with_memory = topology.nodes.iter().filter(|n| n.memory_kb != Some(0)).count();
    if with_memory > 1 {
        return ok("locality", format!("{with_memory} nodes with memory"));
    }
    Finding {
        state: State::Note,
        about: "locality".to_owned(),
        seen: "one node: all memory is local, so local and remote cannot be told apart".to_owned(),
        fix: "run on a machine with several nodes, or read a recording of one".to_owned(),
    }
}

fn realtime(process: &Process) -> Finding {
    if process.realtime {
        return ok("real-time priority", "permitted: samples are on time on a busy machine too".to_owned());
    }
    Finding {
        state: State::Missing,
        about: "real-time priority".to_owned(),
        seen: "not permitted: on a busy machine samples may come late".to_owned(),
        fix: format!(
            "sudo setcap cap_sys_nice=ep {}; or allow 'ulimit -r 1' with the line \
             '{} - rtprio 1' in /etc/security/limits.conf; or LimitRTPRIO=1 in the systemd unit",
            process.program, process.user
        ),
    }
}

fn open_files(probe: &Probe, process: &Process) -> Finding {
    let needed = probe.files() as u64 + OTHER_FILES;
    if needed <= process.open_files {
        return ok("open files", format!("{needed} needed for all series, {} allowed", process.open_files));
    }
    Finding {
        state: State::Missing,
        about: "open files".to_owned(),
        seen: format!("{needed} needed for all series, but only {} allowed", process.open_files),
        fix: format!(
            "ulimit -n {needed} (as root, or LimitNOFILE={needed} in the systemd unit), or choose fewer series with -e"
        ),
    }
}

fn run_directory(process: &Process) -> Finding {
    match &process.run_directory {
        Ok(path) => ok("run directory", format!("{path}: 'numa ctl' can reach what runs")),
        Err(why) => Finding {
            state: State::Missing,
            about: "run directory".to_owned(),
            seen: why.clone(),
            fix: "set XDG_RUNTIME_DIR to a directory of your own; without it 'numa ctl' reaches nothing"
                .to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scene;
    use crate::testing::{nodes, root};

    const ME: &str = "/usr/bin/numa";

    fn process() -> Process {
        Process {
            program: ME.to_owned(),
            user: "me".to_owned(),
            realtime: true,
            open_files: 1024,
            run_directory: Ok("/run/user/1/numakit".to_owned()),
        }
    }

    fn findings(files: &[(&str, &str)], topology: &Topology, process: Option<&Process>) -> Vec<Finding> {
        check(&Probe::new(&Scene::new(&root(files), topology)), topology, process)
    }

    fn about<'a>(findings: &'a [Finding], start: &str) -> &'a Finding {
        findings
            .iter()
            .find(|f| f.about.starts_with(start))
            .unwrap_or_else(|| panic!("nothing about {start}"))
    }

    const VMSTAT: (&str, &str) =
        ("/proc/vmstat", "numa_hit 1\npgfault 2\nnuma_hint_faults 3\nnuma_pte_updates 3\n");
    const BALANCING_OFF: (&str, &str) = (NUMA_BALANCING, "0\n");

    #[test]
    fn what_is_there_is_ok_and_counted() {
        let all = findings(&[VMSTAT], &nodes(&[0, 1]), Some(&process()));
        assert_eq!(about(&all, "vmstat").state, State::Ok);
        assert!(about(&all, "vmstat").seen.ends_with(" 4 series."));
        for name in ["locality", "real-time", "open files", "run directory"] {
            assert_eq!((about(&all, name).state, about(&all, name).fix.as_str()), (State::Ok, ""), "{name}");
        }
    }

    #[test]
    fn metrics_that_are_missing_for_one_reason_are_one_finding() {
        let all = findings(&[VMSTAT, BALANCING_OFF], &nodes(&[0, 1]), None);
        let finding = about(&all, "vmstat: numa_hint_faults, numa_pte_updates");
        assert_eq!(finding.state, State::Missing);
        assert_eq!(finding.fix, "sysctl kernel.numa_balancing=1");
        assert!(about(&all, "pressure: pressure stall information").fix.contains("psi=1"));
    }

    #[test]
    fn what_the_machine_cannot_give_is_a_note() {
        let all = findings(&[VMSTAT, BALANCING_OFF], &nodes(&[0]), None);
        assert_eq!(about(&all, "vmstat: numa_hint_faults").state, State::Note);
        assert_eq!(about(&all, "locality").state, State::Note);
        let old_kernel = findings(&[("/proc/vmstat", "pgfault 1\n")], &nodes(&[]), None);
        assert_eq!(about(&old_kernel, "vmstat: numa_hit").state, State::Note);
        assert_eq!(about(&old_kernel, "node: ").state, State::Note);
        assert_eq!(about(&old_kernel, "task: ").state, State::Note);
    }

    #[test]
    fn what_the_process_may_not_do_has_its_exact_fix() {
        let poor = Process {
            realtime: false,
            open_files: 20,
            run_directory: Err("/run/numakit: permission denied".to_owned()),
            ..process()
        };
        let all = findings(&[VMSTAT], &nodes(&[0, 1]), Some(&poor));
        assert!(about(&all, "real-time").fix.starts_with("sudo setcap cap_sys_nice=ep /usr/bin/numa; or"));
        assert!(about(&all, "real-time").fix.contains("'me - rtprio 1'"));
        assert!(about(&all, "open files").fix.starts_with("ulimit -n 33 "));
        assert!(about(&all, "run directory").seen.contains("permission denied"));
        for name in ["real-time", "open files", "run directory"] {
            assert_eq!(about(&all, name).state, State::Missing);
        }
    }
}
