//! The judgement on the time that page faults of a program take: whether they bring memory that it uses for the first time, or
//! memory that it had given back.

use crate::activity;
use crate::case::{Draft, percent};
use crate::finding::{Certainty, CostBasis, FindingCost, FindingEvidence, FindingRemedy, FindingSubject};
use crate::rules::{Judge, Rule, RuleKind};
use numakit_explain::code::CodeName;
use numakit_explain::runtime::MallocLibrary;
use numakit_explain::{Explained, UNKNOWN_COMMAND};
use numakit_model::numbers::grouped;
use numakit_sys::huge_pages::Setting;

/// From this part of the CPU time on, page faults are a problem.
const MUCH: f64 = 0.1;
/// With less CPU time for page faults, in ns, too few samples saw them.
const LEAST: f64 = 1e8;
/// A program keeps its memory if at least this part of the pages that faults brought were resident at one time.
const KEPT: f64 = 0.5;
/// Faults that brought more pages than this each, on average, brought huge ones.
const HUGE: f64 = 1.2;
/// Keeps memory that the C library would give back to the kernel: large blocks are mapped one by one, and no setting raises the
/// size above 32 MiB from which on that is so.
pub(crate) const KEEPING: &str = "MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=1099511627776";

/// What keeps memory in the program.
const REUSE: &str = "Keep buffers and use them again, in place of freeing them each time; with the malloc of glibc, these variables keep \
                     freed memory in the program, or an allocator that does so (numa run --alloc uma)";

/// What a rule may look at.
#[derive(Debug)]
pub(crate) struct FaultCase<'a> {
    /// Their part of the CPU time.
    share: f64,
    /// How many there were.
    faults: u64,
    /// How many pages more than at first the processes had at most.
    grown: u64,
    /// The code for which the kernel worked most.
    code: Option<&'a CodeName>,
    /// The library whose `malloc` gave memory, if that is known.
    malloc: Option<MallocLibrary>,
    huge_pages: Option<Setting>,
    /// How to start the program again, if that is known.
    command: Option<&'a str>,
}

impl<'a> FaultCase<'a> {
    /// The page faults of an observation; `None` if they take little.
    pub(crate) fn new(explained: &'a Explained) -> Option<Self> {
        let explanation = &explained.report.explanation;
        let times = explanation.threads;
        let kernel = activity::in_kernel(explanation);
        let share = kernel * explanation.faulting.of_kernel?;
        let facts = || explained.objects.iter().map(|object| &object.facts);
        let is_much = share >= MUCH && share * (times.user + times.kernel) as f64 >= LEAST;
        is_much.then(|| Self {
            share,
            faults: times.faults,
            grown: explanation.faulting.grown_pages,
            code: explanation.kernel.first().map(|code| &code.name),
            malloc: facts().find_map(|facts| facts.malloc),
            huge_pages: facts().find_map(|facts| facts.huge_page_setting),
            command: Some(explained.command.as_str()).filter(|command| *command != UNKNOWN_COMMAND),
        })
    }

    fn keeps_memory(&self) -> bool {
        self.grown as f64 >= KEPT * self.faults as f64
    }

    /// Whether faults brought more than a small page each.
    fn has_huge_pages(&self) -> bool {
        self.grown as f64 > HUGE * self.faults as f64
    }

    /// The command with variables that keep freed memory, where they have an effect.
    fn keeping(&self) -> Option<String> {
        let command = self.command.filter(|_| self.malloc == Some(MallocLibrary::C))?;
        Some(format!("{KEEPING} {command}"))
    }

    fn draft(&self, says: String, words: &str, commands: Vec<String>) -> Draft {
        let place = self.code.map_or_else(String::new, |code| format!(", most in {code}"));
        let (series, share) = ("faulting".to_owned(), percent(100.0 * self.share));
        let evidence = FindingEvidence { series, value: 100.0 * self.share, says: share, course: Vec::new() };
        let remedy = FindingRemedy { words: words.to_owned(), commands, ..FindingRemedy::default() };
        let cost = FindingCost::at_most(CostBasis::CpuTime, 100.0 * self.share);
        Draft::measured(FindingSubject::Program, format!("{says}{place}"), cost, remedy)
            .with([evidence])
            .certainty(Certainty::Likely)
    }
}

/// A rule about page faults.
const fn rule(name: &'static str, finds: &'static str, judge: fn(&FaultCase<'_>) -> Option<Draft>) -> Rule {
    Rule { name, finds, kind: RuleKind::Problem, judge: Judge::Faults(judge) }
}

/// Memory that comes and goes.
pub(crate) const MEMORY_GIVEN_BACK: Rule = rule(
    "memory-given-back",
    "memory that a program gives back to the kernel and gets again, with a page fault for each page",
    |case| {
        if case.keeps_memory() {
            return None;
        }
        let says = format!(
            "The program gives memory back and gets it again: {} page faults for at most {} pages at one time",
            grouped(case.faults as f64),
            grouped(case.grown as f64)
        );
        Some(case.draft(says, REUSE, case.keeping().into_iter().collect()))
    },
);

/// Memory in huge pages, of which faults do not say whether it comes again.
pub(crate) const HUGE_PAGE_FAULTS: Rule = rule(
    "memory-in-huge-pages",
    "page faults for huge pages, which the kernel clears, that take much of the time",
    |case| {
        case.has_huge_pages().then(|| {
            let says = format!(
                "The kernel clears much memory for the program: {} page faults, many of them for huge pages",
                grouped(case.faults as f64)
            );
            let draft = case.draft(says, REUSE, case.keeping().into_iter().collect());
            draft.certainty(Certainty::Possible)
        })
    },
);

/// Memory that is used for the first time.
pub(crate) const FIRST_USE: Rule = rule(
    "first-use-of-memory",
    "page faults of memory that a program uses for the first time, which take much of its time",
    |case| {
        if !case.keeps_memory() || case.has_huge_pages() {
            return None;
        }
        let says = format!(
            "The program uses much memory for the first time: {} page faults, at each of which the kernel clears a page",
            grouped(case.faults as f64)
        );
        let (words, command) = match case.huge_pages {
            Some(Setting::Always) => {
                ("Use less memory, or let several threads use it for the first time", None)
            }
            _ => (
                "Ask for huge pages for large blocks (madvise with MADV_HUGEPAGE before they are used): one fault then brings 2 MiB. On a \
                 virtual machine whose host gives it memory late, they may not help: try it",
                case.command.filter(|_| case.malloc == Some(MallocLibrary::C)),
            ),
        };
        let command = command.map(|command| format!("numa run --thp on {command}"));
        // What a huge page takes differs between machines.
        let draft = case.draft(says, words, Vec::new()).certainty(Certainty::Possible);
        Some(draft.trying(command, "gives huge pages to what malloc allocates"))
    },
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;

    fn case(grown: u64, malloc: Option<MallocLibrary>) -> FaultCase<'static> {
        let (huge_pages, command) = (Some(Setting::Advised), Some("./app 7"));
        FaultCase { share: 0.42, faults: 1000, grown, code: None, malloc, huge_pages, command }
    }

    #[test]
    fn what_to_do_follows_from_whether_the_memory_stays() {
        let found = |case: &FaultCase<'_>| rules::judge_faults(case).unwrap();
        let gone = found(&case(100, Some(MallocLibrary::C)));
        assert_eq!(gone.rule, MEMORY_GIVEN_BACK.name);
        assert_eq!(gone.remedy.commands, [format!("{KEEPING} ./app 7")]);
        assert_eq!(gone.cost.percent(), Some(42.0));
        let stays = found(&case(900, Some(MallocLibrary::C)));
        assert_eq!(stays.rule, FIRST_USE.name);
        assert_eq!(stays.remedy.commands, ["numa run --thp on ./app 7"]);
        // Variables of one library do nothing for another, and what is always done needs no command.
        assert!(found(&case(100, Some(MallocLibrary::Jemalloc))).remedy.commands.is_empty());
        let huge = found(&case(9000, Some(MallocLibrary::C)));
        assert_eq!((huge.rule, huge.certainty), (HUGE_PAGE_FAULTS.name, Certainty::Possible));
        assert_eq!(huge.remedy.commands, [format!("{KEEPING} ./app 7")]);
        let always = FaultCase { huge_pages: Some(Setting::Always), ..case(900, Some(MallocLibrary::C)) };
        assert!(found(&always).remedy.commands.is_empty());
    }
}
