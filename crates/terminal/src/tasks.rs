//! `numa top --once`: processes by how much remote memory they use, and the memory of each by node.

use crate::table::page_table;
use numakit_model::numbers::{ABSENT, duration};
use numakit_processes::{MemoryByUse, MemorySource, ProcessRanking, ProcessSample, Use, per_second};
use serde_json::{Value, json};
use std::cmp::Reverse;

/// What was measured.
#[derive(Debug, Clone, Default)]
pub struct TaskTable {
    /// The kernel's numbers of the nodes.
    pub nodes: Vec<u32>,
    /// The time over which it was measured, in seconds.
    pub seconds: f64,
    /// The processes.
    pub processes: Vec<ProcessSample>,
    /// Their order. What is counted for it has a column.
    pub order: ProcessRanking,
    /// The fix if the kernel denies reading other processes.
    pub fix: String,
}

/// Maximum number of nodes that have a column.
const MAX_NODES: usize = 8;

const MIB: f64 = (1 << 20) as f64;

/// Uses of memory with their names in tables and in JSON.
const USES: [(&str, &str, Use); 5] = [
    ("Huge", "huge", Use::Huge),
    ("Heap", "heap", Use::Heap),
    ("Stack", "stack", Use::Stack),
    ("Anonymous", "anonymous", Use::Anonymous),
    ("File", "file", Use::File),
];

/// A heading, and what it counts of a process.
type CountColumn = (&'static str, fn(&ProcessSample) -> Option<u64>);

impl TaskTable {
    /// One line per process, at most `top`, and notes on the rest.
    pub fn list(&self, top: usize) -> String {
        let shown = self.columns();
        let mut headings: Vec<String> =
            ["PID", "USER", "THREADS", "CPU%", "REMOTE%", "MEMORY"].map(str::to_owned).into();
        headings.extend(shown.iter().map(|&at| format!("NODE{}", self.nodes[at])));
        headings.extend(self.counted().map(|(heading, _)| heading.to_owned()));
        headings.push("<COMMAND".to_owned());
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        let rows: Vec<Vec<String>> = self.processes.iter().take(top).map(|p| self.row(p, &shown)).collect();
        let mut text = page_table(&headings, &rows, "");
        for note in self.notes(top, shown.len()) {
            text.push_str(&note);
            text.push('\n');
        }
        text
    }

    /// A table for each process: its memory by use and node.
    pub fn details(&self) -> String {
        let tables: Vec<String> = self.processes.iter().map(|p| self.detail(p)).collect();
        let mut notes: Vec<String> = self.estimated().into_iter().collect();
        if self.processes.iter().any(|p| p.held) {
            notes.push(STOPPED.to_owned());
        }
        if self.one_node() {
            notes.push(ONE_NODE.to_owned());
        }
        let notes: String = notes.iter().map(|note| format!("\n{note}\n")).collect();
        tables.join("\n") + &notes
    }

    /// The same as JSON, as `numa top --help` describes.
    pub fn json(&self) -> Value {
        json!({
            "seconds": self.seconds,
            "nodes": self.nodes,
            "denied": self.count(&MemorySource::Denied),
            "late": self.count(&MemorySource::Late),
            "refused": self.count(&MemorySource::Refused),
            "processes": self.processes.iter().map(|p| self.object(p)).collect::<Vec<_>>(),
        })
    }

    fn one_node(&self) -> bool {
        self.nodes.len() < 2
    }

    fn count(&self, found: &MemorySource) -> usize {
        self.processes.iter().filter(|p| p.found == *found).count()
    }

    /// The nodes that have a column: those with the most memory, in their order.
    fn columns(&self) -> Vec<usize> {
        let on = |at: usize| {
            let found = self.processes.iter().filter_map(ProcessSample::memory);
            found.fold(0u64, |sum, memory| sum.saturating_add(memory.on(at)))
        };
        let mut places: Vec<usize> = (0..self.nodes.len()).collect();
        places.sort_by_key(|&at| (Reverse(on(at)), at));
        places.truncate(MAX_NODES);
        places.sort_unstable();
        places
    }

    fn row(&self, process: &ProcessSample, shown: &[usize]) -> Vec<String> {
        let mut row = vec![
            process.pid.to_string(),
            process.user.clone(),
            process.threads.to_string(),
            percent(process.cpu_percent(self.seconds)),
            percent(self.remote(process)),
            mib(process.bytes()),
        ];
        row.extend(shown.iter().map(|&at| process.memory().map_or(ABSENT.to_owned(), |m| mib(m.on(at)))));
        let rate = |count: Option<u64>| {
            percent(per_second(count.unwrap_or(0), self.seconds).filter(|_| count.is_some()))
        };
        row.extend(self.counted().map(|(_, count)| rate(count(process))));
        row.push(process.command.clone());
        row
    }

    /// The heading of what the order counts, and where it is.
    fn counted(&self) -> Option<CountColumn> {
        match self.order {
            ProcessRanking::Faults => Some(("FAULTS/s", |process| process.faults)),
            ProcessRanking::Moved => Some(("MOVED/s", |process| process.moved)),
            _ => None,
        }
    }

    /// `None` with one node, where nothing can be remote.
    fn remote(&self, process: &ProcessSample) -> Option<f64> {
        process.remote_percent().filter(|_| !self.one_node())
    }

    fn notes(&self, top: usize, columns: usize) -> Vec<String> {
        let mut notes = vec![format!("Memory in MiB; CPU time over {}.", duration(self.seconds))];
        if self.one_node() {
            notes.push(ONE_NODE.to_owned());
        }
        if columns < self.nodes.len() {
            let (all, hidden) = (self.nodes.len(), self.nodes.len() - columns);
            notes.push(format!(
                "{hidden} of {all} nodes, those with the least memory, have no column; --json has all."
            ));
        }
        if self.processes.len() > top {
            let more = self.processes.len() - top;
            notes.push(format!("{more} more; --top {} shows all.", self.processes.len()));
        }
        let of = |found: &MemorySource| Some(self.count(found)).filter(|n| *n > 0).map(processes);
        if let Some(many) = of(&MemorySource::Denied) {
            notes.push(format!("{many} cannot be read; {}.", self.fix));
        }
        if let Some(many) = of(&MemorySource::Refused) {
            notes.push(format!("{many} {REFUSED}; -p PID reads them anyway."));
        }
        notes.extend(self.estimated());
        if let Some(many) = of(&MemorySource::Late) {
            notes.push(format!("{many} not read in time; use a longer --interval, or -p PID."));
        }
        notes
    }

    /// The error of the nodes of large processes.
    fn estimated(&self) -> Option<String> {
        let shares = self.processes.iter().filter(|p| p.error > 0).map(|p| {
            let total = p.bytes().max(1);
            (p.error as f64 / total as f64) * 100.0
        });
        let (count, worst) = shares.fold((0, 0.0f64), |(count, worst), share| (count + 1, worst.max(share)));
        // With one node, nothing is estimated.
        (count > 0 && !self.one_node()).then(|| {
            let what = processes(count);
            format!(
                "The nodes of {what} are estimated from a sample of the pages, with a standard error of at most \
                 {:.1} % of the process's memory.",
                (worst * 10.0).ceil() / 10.0
            )
        })
    }

    fn detail(&self, process: &ProcessSample) -> String {
        let threads =
            if process.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", process.threads) };
        let title = format!(
            "{} {}, user {}, {threads}, CPU {}, remote {}\n",
            process.pid,
            process.command,
            process.user,
            sign(process.cpu_percent(self.seconds)),
            sign(self.remote(process))
        );
        let memory = match &process.found {
            MemorySource::Memory(memory) => memory,
            MemorySource::Denied => {
                return format!("{title}  Its memory cannot be read; {}.\n", self.fix);
            }
            MemorySource::Refused => return format!("{title}  It is {REFUSED}.\n"),
            MemorySource::Late => {
                return title + "  There was no time to read its memory; use a longer --interval.\n";
            }
        };
        let mut headings = vec!["MiB".to_owned()];
        headings.extend(self.nodes.iter().map(|id| format!("NODE{id}")));
        headings.push("TOTAL".to_owned());
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        let row = |name: &str, on: &dyn Fn(usize) -> u64, all: u64| {
            let nodes = (0..self.nodes.len()).map(|at| mib(on(at)));
            [name.to_owned()].into_iter().chain(nodes).chain([mib(all)]).collect::<Vec<String>>()
        };
        let mut rows: Vec<Vec<String>> = USES
            .iter()
            .map(|(name, _, usage)| row(name, &|at| memory.0[at][*usage as usize], memory.used_for(*usage)))
            .collect();
        rows.push(row("Total", &|at| memory.on(at), memory.total()));
        title + &page_table(&headings, &rows, "  ")
    }

    fn object(&self, process: &ProcessSample) -> Value {
        let by_node = |memory: &MemoryByUse, usage: Use| {
            memory.0.iter().map(|uses| uses[usage as usize]).collect::<Vec<_>>()
        };
        let memory = process.memory().map(|memory| {
            let uses =
                USES.iter().map(|(_, name, usage)| ((*name).to_owned(), json!(by_node(memory, *usage))));
            let total: Vec<u64> = (0..self.nodes.len()).map(|at| memory.on(at)).collect();
            uses.chain([("total".to_owned(), json!(total))]).collect::<serde_json::Map<_, _>>()
        });
        json!({
            "pid": process.pid,
            "user": process.user,
            "command": process.command,
            "threads": process.threads,
            "cpu": process.cpu_percent(self.seconds),
            "remote": self.remote(process),
            "resident": process.resident,
            "memory": memory,
            "error": process.error,
            "why": match process.found {
                MemorySource::Memory(_) => None,
                MemorySource::Denied => Some("denied"),
                MemorySource::Late => Some("late"),
                MemorySource::Refused => Some("refused"),
            },
        })
    }
}

const REFUSED: &str = "not read: move_pages is refused here (a container allows it with --cap-add \
                       SYS_NICE), and reading numa_maps would block a process of that size meanwhile";

const STOPPED: &str = "Read from numa_maps, which blocks the mappings of a process meanwhile: move_pages is refused \
                    here (a container allows it with --cap-add SYS_NICE).";

const ONE_NODE: &str = "One node: all memory is local, nothing is remote.";

fn processes(count: usize) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

/// With its unit.
fn sign(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| format!("{value:.1} %"))
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| format!("{value:.1}"))
}

fn mib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / MIB)
}

#[cfg(test)]
mod tests;
