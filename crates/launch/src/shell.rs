//! A launch as a line for a shell.

use crate::EnvironmentChange;
use crate::command::ExplainedCommand;
use crate::environment::{PRELOAD, without_cure};
use numakit_sys::apply_table::APPLY;
use numakit_sys::command::quoted;
use numakit_sys::huge_pages::HugePages;
use numakit_sys::start::{PreparedCommand, Scheduler};
use std::ffi::OsString;

impl ExplainedCommand {
    /// The launch as a command line of other tools, which takes no cores. Comments name what they cannot do.
    pub fn shell(&self) -> String {
        let start = &self.prepared;
        let mut lines: Vec<String> =
            comments(start).into_iter().map(|comment| format!("# {comment}\n")).collect();
        if self.cure.is_some() {
            lines.push(
                "# the policies of objects are left out: only 'numa run --apply' sets them\n".to_owned(),
            );
        }
        let mut words: Vec<String> = Vec::new();
        if let Some(cpus) = &start.cpus {
            words.push(format!("taskset -c {cpus}"));
        }
        // The policy until our library is loaded, which sets the plan's policy.
        words.extend(
            start.memory.as_ref().and_then(|policy| policy.numactl()).map(|o| format!("numactl {o}")),
        );
        words.extend(start.scheduler.map(|scheduler| format!("chrt {}", chrt(scheduler))));
        words.extend(start.stack.map(|bytes| format!("prlimit --stack={bytes}:")));
        words.push("env".to_owned());
        for (at, change) in self.changes.iter().enumerate() {
            match change {
                EnvironmentChange::Set(name, ..) if ["NUMA_HOLD", APPLY].contains(&name.as_str()) => {}
                EnvironmentChange::Set(name, ..) if is_set(&self.changes[at + 1..], name) => {}
                EnvironmentChange::Set(name, value, _) => {
                    let value = if name == PRELOAD { without_cure(value) } else { value.clone() };
                    let mut word = OsString::from(format!("{name}="));
                    word.push(value);
                    words.push(quoted(&[word]));
                }
                EnvironmentChange::Unset(name, _) => words.insert(env_at(&words) + 1, format!("-u {name}")),
                EnvironmentChange::Kept(..) => {}
            }
        }
        words.push(quoted(&start.words));
        lines.push(words.join(" \\\n    ") + "\n");
        lines.concat()
    }
}

/// Whether one of these changes sets a variable.
fn is_set(changes: &[EnvironmentChange], name: &str) -> bool {
    changes.iter().any(|change| matches!(change, EnvironmentChange::Set(set, ..) if set == name))
}

fn env_at(words: &[String]) -> usize {
    words.iter().position(|word| word == "env").unwrap_or_default()
}

fn chrt(scheduler: Scheduler) -> String {
    match scheduler {
        Scheduler::Other => "--other 0".to_owned(),
        Scheduler::Batch => "--batch 0".to_owned(),
        Scheduler::Idle => "--idle 0".to_owned(),
        Scheduler::Fifo(level) => format!("--fifo {level}"),
        Scheduler::RoundRobin(level) => format!("--rr {level}"),
    }
}

fn comments(start: &PreparedCommand) -> Vec<String> {
    let mut comments = Vec::new();
    if let Some(huge_pages) = start.huge_pages {
        let how = match huge_pages {
            HugePages::On => "on",
            HugePages::Off => "off",
            HugePages::Advised => "for memory with madvise",
        };
        comments.push(format!("huge pages {how}: no shell command sets this"));
    }
    if let Some(slack) = start.timer_slack {
        comments.push(format!("timer slack {slack} ns: no shell command sets this"));
    }
    comments
}
