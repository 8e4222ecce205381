//! A plan as launchers see it: ranks with sets of CPUs, and the text that their configurations share.

use super::LauncherLines;
use crate::numbering::{LogicalNumbering, LogicalPosition};
use numakit_model::plan::{Memory, Mode, Plan, Step};
use numakit_model::topology::Core;
use numakit_model::{CpuSet, Topology};

/// A plan for one launcher.
pub struct LauncherJob<'a> {
    /// The launcher's name, for messages.
    pub launcher: &'static str,
    pub t: &'a Topology,
    pub plan: &'a Plan,
    pub host: &'a str,
    /// The program with its arguments.
    pub command: &'a [String],
    /// The program with its arguments, as a shell reads it.
    pub app: String,
    pub ranks: Vec<Rank<'a>>,
    numbering: LogicalNumbering,
    /// The position of each CPU's core.
    core_of: Vec<Option<usize>>,
}

/// One process of a plan.
pub struct Rank<'a> {
    pub number: u32,
    pub steps: &'a [Step],
}

impl Rank<'_> {
    /// Its CPUs in the order of its threads.
    pub fn order(&self) -> Vec<u32> {
        self.steps.iter().map(|step| step.cpu).collect()
    }

    pub fn cpus(&self) -> CpuSet {
        self.steps.iter().map(|step| step.cpu).collect()
    }

    pub fn nodes(&self) -> CpuSet {
        self.steps.iter().map(|step| step.node).collect()
    }

    pub fn memory(&self) -> &Memory {
        // `chunk_by` returns no empty process.
        &self.steps[0].memory
    }
}

impl<'a> LauncherJob<'a> {
    pub fn new(
        launcher: &'static str,
        t: &'a Topology,
        plan: &'a Plan,
        host: &'a str,
        command: &'a [String],
    ) -> Self {
        let ranks = plan.processes().map(|steps| Rank { number: steps[0].process, steps }).collect();
        let mut core_of = vec![None; t.online.last().map_or(0, |last| last as usize + 1)];
        for (at, core) in t.cores.iter().enumerate() {
            for cpu in core.cpus.iter() {
                if let Some(slot) = core_of.get_mut(cpu as usize) {
                    *slot = Some(at);
                }
            }
        }
        let app = command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
        Self { launcher, t, plan, host, command, app, ranks, numbering: LogicalNumbering::of(t), core_of }
    }

    fn core(&self, cpu: u32) -> Option<&Core> {
        self.core_of.get(cpu as usize).copied().flatten().and_then(|at| self.t.cores.get(at))
    }

    /// The position of a CPU in hwloc's order; the CPU is allowed.
    pub fn place(&self, cpu: u32) -> LogicalPosition {
        self.numbering.place(cpu).unwrap_or_default()
    }

    /// The logical numbers of the cores of a rank.
    pub fn cores(&self, rank: &Rank<'_>) -> CpuSet {
        rank.steps.iter().map(|step| self.place(step.cpu).core).collect()
    }

    /// All allowed PUs of the cores of a rank.
    pub fn pus(&self, rank: &Rank<'_>) -> CpuSet {
        let siblings = rank.steps.iter().filter_map(|step| self.core(step.cpu));
        siblings
            .flat_map(|core| core.cpus.iter())
            .chain(rank.order())
            .collect::<CpuSet>()
            .and(&self.t.allowed)
    }

    /// Threads of each process, if all have the same number.
    pub fn threads(&self) -> Option<usize> {
        let threads = self.ranks.first()?.steps.len();
        self.ranks.iter().all(|rank| rank.steps.len() == threads).then_some(threads)
    }

    /// Whether a process has several threads.
    pub fn hybrid(&self) -> bool {
        self.ranks.iter().any(|rank| rank.steps.len() > 1)
    }

    /// Whether a core has several threads of the plan.
    pub fn crowded(&self) -> bool {
        let cores: CpuSet = self.plan.steps.iter().map(|step| self.place(step.cpu).core).collect();
        cores.len() < self.plan.steps.len()
    }

    /// Whether two processes are on one core.
    pub fn shared_cores(&self) -> bool {
        let each: usize = self.ranks.iter().map(|rank| self.cores(rank).len()).sum();
        let all: CpuSet = self.plan.steps.iter().map(|step| self.place(step.cpu).core).collect();
        all.len() < each
    }

    /// Whether the threads of a rank use its cores one after the other, and the PUs of a core together, as runtimes do with
    /// a set of CPUs.
    fn rises(&self, rank: &Rank<'_>) -> bool {
        let core = |cpu: u32| self.core(cpu).and_then(|core| core.cpus.first()).unwrap_or(cpu);
        rank.steps.windows(2).all(|pair| (core(pair[0].cpu), pair[0].cpu) < (core(pair[1].cpu), pair[1].cpu))
    }

    /// OpenMP's variables for ranks whose launcher binds them to sets; `places` is the place of a thread.
    pub fn variables(&self, places: &str) -> Vec<(&'static str, String)> {
        let mut variables = Vec::new();
        variables.extend(self.threads().map(|threads| ("OMP_NUM_THREADS", threads.to_string())));
        if self.hybrid() {
            variables.push(("OMP_PLACES", places.to_owned()));
            variables.push(("OMP_PROC_BIND", "close".to_owned()));
        }
        variables
    }

    /// Warnings about parts of the plan that a launcher cannot do if it binds ranks to sets of CPUs.
    pub fn set_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.threads().is_none() {
            warnings.push(format!(
                "{} gives all processes the same OMP_NUM_THREADS, and those of the plan have different \
                 numbers of threads: OMP_NUM_THREADS is left out",
                self.launcher
            ));
        }
        if let Some(rank) = self.ranks.iter().find(|rank| !self.rises(rank)) {
            warnings.push(format!(
                "the threads of process {} will take the cores of its CPUs {} in rising order, not in the plan's",
                rank.number,
                rank.cpus()
            ));
        }
        warnings
    }

    /// The warning that the launcher leaves memory to first touch, if the plan has another policy.
    pub fn memory_warning(&self) -> Option<String> {
        let rank = self.ranks.iter().find(|rank| rank.memory().mode != Mode::Local)?;
        let memory = rank.memory();
        Some(format!(
            "{} cannot set the memory policy {} of {}; put '{}' before {}{}",
            self.launcher,
            memory.mode,
            match memory.nodes.len() {
                1 => format!("node {}", memory.nodes),
                _ => format!("nodes {}", memory.nodes),
            },
            numactl_words(memory).join(" "),
            shell_word(&self.command[0]),
            if self.ranks.iter().any(|other| other.memory() != memory) {
                format!(" (process {}; others have other nodes, see --for numactl)", rank.number)
            } else {
                String::new()
            }
        ))
    }

    /// Lines with the memory warning only.
    pub fn lines(&self, text: Vec<String>) -> LauncherLines {
        LauncherLines {
            text: joined(&text),
            hints: Vec::new(),
            warnings: self.memory_warning().into_iter().collect(),
        }
    }
}

/// A word, quoted for a shell.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%^".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Lines with newlines.
pub fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The command of numactl that sets a policy.
pub fn numactl_words(memory: &Memory) -> Vec<String> {
    let mut words = vec!["numactl".to_owned()];
    words.extend(numactl_memory(memory));
    words
}

/// numactl's option for a policy.
pub fn numactl_memory(memory: &Memory) -> Vec<String> {
    let option = match memory.mode {
        Mode::Local => return vec!["-l".to_owned()],
        Mode::Bind => "-m",
        Mode::Prefer if memory.nodes.len() > 1 => "-P",
        Mode::Prefer => "-p",
        Mode::Interleave => "-i",
        Mode::Weighted => "-w",
    };
    vec![option.to_owned(), memory.nodes.to_string()]
}

/// A set as `0x0000f`, with as few digits as possible.
pub fn hexadecimal(set: &CpuSet) -> String {
    let mut digits = vec![0u32; set.last().map_or(1, |last| last as usize / 4 + 1)];
    for id in set.iter() {
        digits[id as usize / 4] |= 1 << (id % 4);
    }
    let text: String = digits.iter().rev().filter_map(|digit| char::from_digit(*digit, 16)).collect();
    format!("0x{text}")
}

/// A part of an order: `first`, `first + stride` and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StridedRange {
    pub first: u32,
    pub stride: u32,
    pub length: u32,
}

/// Ascending runs in order, each as long as possible; runs that are not long enough are split into single numbers.
pub fn runs(order: &[u32], long_enough: impl Fn(u32, usize) -> bool) -> Vec<StridedRange> {
    let mut out = Vec::new();
    let mut rest = order;
    while let Some((&first, others)) = rest.split_first() {
        let stride = others.first().and_then(|&next| next.checked_sub(first)).unwrap_or(0);
        let steady = rest.windows(2).take_while(|pair| pair[1].checked_sub(pair[0]) == Some(stride));
        let length = if stride == 0 { 1 } else { 1 + steady.count() };
        let length = if long_enough(stride, length) { length } else { 1 };
        out.push(StridedRange { first, stride, length: length as u32 });
        rest = &rest[length..];
    }
    out
}

/// An order in its shortest form: `0-6:2,1-7:2`.
pub fn sequence(order: &[u32]) -> String {
    let part = |run: &StridedRange| match (run.length, run.stride) {
        (1, _) => run.first.to_string(),
        (length, 1) => format!("{}-{}", run.first, run.first + length - 1),
        (length, stride) => format!("{}-{}:{stride}", run.first, run.first + (length - 1) * stride),
    };
    runs(order, |stride, length| length > 2 || stride == 1).iter().map(part).collect::<Vec<_>>().join(",")
}

/// A comma-separated list.
pub fn list(items: impl IntoIterator<Item = u32>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_hexadecimal() {
        let mask = |list: &str| hexadecimal(&CpuSet::parse_list(list).unwrap());
        assert_eq!(
            [mask("0-3"), mask("4-7"), mask("8"), mask("0,64"), mask("")],
            ["0xf", "0xf0", "0x100", "0x10000000000000001", "0x0"]
        );
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_change_them() {
        let words = ["./app", "-x", "a b", "", "it's", "$HOME", "a;b", "k=v", "*"].map(shell_word);
        assert_eq!(words, ["./app", "-x", "'a b'", "''", "'it'\\''s'", "'$HOME'", "'a;b'", "k=v", "'*'"]);
    }

    #[test]
    fn runs_keep_the_order() {
        let run = |first, stride, length| StridedRange { first, stride, length };
        assert_eq!(runs(&[0, 2, 4, 6, 1, 3, 5, 7], |_, length| length > 2), [run(0, 2, 4), run(1, 2, 4)]);
        assert_eq!(runs(&[6, 4], |_, _| true).len(), 2);
        assert_eq!(runs(&[5, 5], |_, _| true).len(), 2);
        assert_eq!(sequence(&[0, 2, 4, 1, 3, 5, 9, 8]), "0-4:2,1-5:2,9,8");
        assert_eq!([sequence(&[0, 8]), sequence(&[0, 1, 8])], ["0,8", "0-1,8"]);
    }
}
