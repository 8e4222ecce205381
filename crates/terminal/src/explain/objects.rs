//! The objects of a result: a table, and the verdicts on them.

use super::{activity, named, percent};
use crate::cure::offered;
use numakit_cure::Cure;
use numakit_explain::first_touch::TouchEvidence;
use numakit_explain::members::{ObjectMembers, UsedMember};
use numakit_explain::object_use::NodeShare;
use numakit_explain::python::ScriptShares;
use numakit_explain::share::ShareEstimate;
use numakit_explain::{CodeShare, ExplainedObject, ObjectTouch, Regime, SeenProcess};
use numakit_findings::explained::{JudgedObject, JudgedReport};
use numakit_findings::finding::{Finding, FindingCost, FindingSubject, Worth};
use numakit_findings::lowered;
use numakit_model::numbers::{ABSENT, NumberStyle};
use numakit_model::thresholds::MIN_SAMPLES;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Objects with a smaller part of the time at memory are left out.
const MIN_SHARE: f64 = 0.005;
/// Nodes with a smaller part are left out, and more than this many are only counted.
const MIN_NODE: f64 = 0.02;
const MAX_NODES: usize = 4;
/// Members that are shown below an object.
const MAX_MEMBERS: usize = 4;
/// Nearly all.
const ALL: f64 = 0.98;
pub(super) const NAME_WIDTH: usize = 44;
/// The name of a program has at most 15 letters, the number of a process seven.
const PROCESS_WIDTH: usize = 23;
/// Functions of Python that are named of an object; with fewer looks, those that use it and those that allocated it are left out.
const MAX_SCRIPTS: usize = 3;
const MIN_USES: u64 = 10;
const MIN_ALLOCATIONS: u64 = 3;
/// A program with less of its time at far memory has nothing far.
const FAR: f64 = 0.02;

/// The findings about the program as a whole: those that stand first, and those that come after what it does, since an object
/// costs more.
pub fn of_program(findings: &[Finding]) -> (String, String) {
    let is_of_program = |finding: &&Finding| finding.subject == FindingSubject::Program;
    let first = findings.iter().take_while(is_of_program).count();
    let later = words(findings.iter().skip(first).filter(is_of_program));
    let later = if later.is_empty() { later } else { format!("\n{}\n", later.trim_end()) };
    (words(findings.iter().take(first)), later)
}

fn words<'a>(findings: impl Iterator<Item = &'a Finding>) -> String {
    let mut out = String::new();
    for Finding { says, cost, remedy, .. } in findings {
        let commands = remedy.commands.iter().map(|command| ("try now", command.clone()));
        // Writing to a string cannot fail.
        _ = writeln!(out, "{says}.");
        [("do", remedy.words.clone()), ("cost", cost.words())]
            .into_iter()
            .chain(commands)
            .for_each(|(heading, text)| _ = writeln!(out, "  {heading:<8} {text}"));
        out.push('\n');
    }
    out
}

/// What the program does; before that, where nothing has a verdict, that too little was seen.
pub fn activity(judged: &JudgedReport) -> String {
    let report = &judged.report;
    let activity = judged.activity();
    let sentence = activity::sentence(&activity);
    if let Some(why) = judged.too_few_samples() {
        // What it waits for stands first: a program that sleeps has no samples.
        return match activity.is_busy {
            true => format!("{why}.\n"),
            false => format!("{}.\n{why}.\n", capital(&sentence)),
        };
    }
    let Some(time) = &report.explanation.time else { return String::new() };
    if !judged.findings.is_empty() || time.remote + time.contended > FAR {
        return format!("{}.\n", capital(&sentence));
    }
    match report.explanation.remote_share {
        Some(_) => format!("Nothing is remote; {sentence}.\n"),
        None => format!("{}; no memory is remote on a machine of one node.\n", capital(&sentence)),
    }
}

/// What is wrong that matters most, and what is to be said beside it: other programs that take CPUs from the program, or what is
/// wrong with the program itself.
pub(super) fn causes(judged: &JudgedReport) -> Vec<(FindingSubject, String)> {
    let cause = judged.cause().map(|place| &judged.findings[place]);
    let beside = judged.beside_cause().map(|place| &judged.findings[place]);
    let is_own_second = cause.is_some_and(Finding::is_of_others);
    let first = cause.map(|finding| (finding.subject, caused(judged, finding)));
    let second = beside.map(|finding| {
        let says = caused(judged, finding);
        let says = match (is_own_second, finding.subject) {
            (false, _) => says,
            (true, FindingSubject::Object(_)) => format!("In the program itself, {says}"),
            (true, _) => format!("In the program itself: {}", lowered(&says)),
        };
        (finding.subject, says)
    });
    first.into_iter().chain(second).collect()
}

/// A finding with its object, and with what it costs. The share of what other programs do says that already.
fn caused(judged: &JudgedReport, finding: &Finding) -> String {
    let FindingSubject::Object(place) = finding.subject else {
        return match &finding.cost {
            FindingCost::Share { .. } if !finding.is_of_others() => {
                format!("{} (it costs {})", finding.says, finding.cost.words())
            }
            _ => finding.says.clone(),
        };
    };
    let name = judged.objects.get(place as usize).map(|object| object.distinct_name(&judged.objects));
    let worth = finding.remedy.worth.as_ref().and_then(|worth| worth.at_most);
    let worth = worth
        .map(|share| format!(" (a cure saves at most {} of the CPU time)", percent(share)))
        .unwrap_or_default();
    format!("{}: {}{worth}", name.unwrap_or_default(), finding.says)
}

/// The begin of a sentence.
pub(super) fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default() + letters.as_str()
}

/// The table, and what there is to say about each object with a verdict.
pub fn objects(judged: &JudgedReport, rows: usize) -> String {
    let part = if judged.report.regime == Regime::Precise { "MEM%" } else { "PAGES%" };
    let table = table(&judged.objects, (&judged.report.processes, judged.cure.as_ref()), part, rows);
    let samples = &judged.report.explanation.samples;
    match judged.has_few_at_memory() && !table.is_empty() {
        true => format!(
            "{table}  MEM% is uncertain: of {} samples at memory outside of the caches, fewer than {MIN_SAMPLES}.\n",
            samples.recovered.saturating_sub(samples.in_cache)
        ),
        false => table,
    }
}

/// The same of any objects of these processes with their cure; `part` is what their shares are called.
pub fn table(
    objects: &[JudgedObject],
    (processes, cure): (&[SeenProcess], Option<&Cure>),
    part: &str,
    rows: usize,
) -> String {
    let shown: Vec<&JudgedObject> =
        objects.iter().filter(|judged| judged.object.time_share >= MIN_SHARE).take(rows).collect();
    if shown.is_empty() {
        return String::new();
    }
    // Where one process has all of them, its name says nothing.
    let users: BTreeSet<u32> =
        shown.iter().flat_map(|judged| &judged.object.object.processes).copied().collect();
    let process = |words: &str| match users.len() {
        0 | 1 => String::new(),
        _ => format!(" {words:<PROCESS_WIDTH$}"),
    };
    let mut out = format!(
        "\n  {:<NAME_WIDTH$}{} {:>8} {part:>6}  {:<16} {:<16} {:<22} VERDICT\n",
        "OBJECT",
        process("PROCESS"),
        "SIZE",
        "HOME",
        "USED FROM",
        "REMOTE"
    );
    for JudgedObject { object, finding } in &shown {
        // Writing to a string cannot fail.
        _ = writeln!(
            out,
            "  {:<NAME_WIDTH$}{} {:>8} {:6.1}  {:<16} {:<16} {:<22} {}",
            cut(&object.object.name),
            process(&process_words(&object.object.processes, processes)),
            size(object),
            object.time_share * 100.0,
            nodes(&object.home),
            nodes(&object.used_from),
            remote(object),
            finding.as_ref().map_or("-", |finding| finding.rule),
        );
        object.members.iter().for_each(|members| out.push_str(&members_line(members)));
    }
    out.push_str(&scripts(&shown));
    shown.iter().for_each(|judged| out.push_str(&verdict(judged, objects, cure)));
    out
}

/// The members of an object with most of its time, below its row.
fn members_line(ObjectMembers { r#type, used, .. }: &ObjectMembers) -> String {
    let member = |UsedMember { name, offset, size, share }: &UsedMember| {
        format!("{} in {name} (offset {offset}, {size} B)", percent(*share))
    };
    let shown: Vec<&UsedMember> =
        used.iter().filter(|member| member.share >= MIN_SHARE).take(MAX_MEMBERS).collect();
    if shown.is_empty() {
        return String::new();
    }
    let more = match used.len() - shown.len() {
        0 => String::new(),
        more => format!(", {more} more"),
    };
    let shown: Vec<String> = shown.into_iter().map(member).collect();
    format!("    {}: {}{more}\n", r#type, shown.join(", "))
}

/// The functions of Python that allocated and used these objects.
fn scripts(shown: &[&JudgedObject]) -> String {
    let words = |shares: &ScriptShares| {
        let function = |code: &CodeShare| {
            let line = code.name.line.map_or_else(String::new, |line| format!(":{line}"));
            let function = code.name.function.as_deref().unwrap_or_default();
            format!("{function} ({}{line}) {}", code.name.module, percent(code.share))
        };
        shares.functions.iter().take(MAX_SCRIPTS).map(function).collect::<Vec<_>>().join(", ")
    };
    let mut out = String::new();
    for ExplainedObject { object, python_use, python_allocation, .. } in
        shown.iter().map(|judged| &judged.object)
    {
        for (what, shares, least) in
            [("allocated in", python_allocation, MIN_ALLOCATIONS), ("used in", python_use, MIN_USES)]
        {
            if shares.looks >= least {
                let (name, words, looks) = (cut(&object.name), words(shares), shares.looks);
                // Writing to a string cannot fail.
                _ = writeln!(out, "  {name:<NAME_WIDTH$} {what:<12} {words} of {looks} looks");
            }
        }
    }
    if out.is_empty() { out } else { format!("\n  {:<NAME_WIDTH$} PYTHON FUNCTIONS\n{out}", "OBJECT") }
}

/// `postgres 4711`, `12 x postgres`, or the number of processes of several programs.
fn process_words(of: &[u32], processes: &[SeenProcess]) -> String {
    let names: BTreeSet<&str> =
        processes.iter().filter(|known| of.contains(&known.pid)).map(|known| known.name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    match (of, names.as_slice()) {
        ([pid], [name]) => format!("{name} {pid}"),
        ([pid], _) => pid.to_string(),
        (all, [name]) => format!("{} x {name}", all.len()),
        (all, _) => format!("{} processes", all.len()),
    }
}

fn verdict(judged: &JudgedObject, all: &[JudgedObject], cure: Option<&Cure>) -> String {
    let JudgedObject { object, finding } = judged;
    let Some(Finding { says, remedy, .. }) = finding else { return String::new() };
    let name = judged.distinct_name(all);
    let mut out = format!("\n{name}: {says}\n");
    let users: Vec<String> =
        object.used_by.iter().map(|code| format!("{} {}", named(&code.name), percent(code.share))).collect();
    let worth = remedy.worth.as_ref().map(worth);
    let touched = object.first_touch.first().map(touched);
    for (heading, text) in [
        ("touched", touched),
        ("used by", (!users.is_empty()).then(|| users.join(", "))),
        ("do", Some(remedy.words.clone())),
        ("worth", worth),
        ("cure", cure.and_then(|cure| offered::words(cure, &name))),
        ("try now", remedy.commands.first().cloned()),
        ("", remedy.expect.as_ref().map(|expect| format!("it {expect}"))),
    ] {
        if let Some(text) = text {
            _ = writeln!(out, "  {heading:<8} {text}");
        }
    }
    out
}

/// Who touched most of it first.
fn touched(touch: &ObjectTouch) -> String {
    let node = touch.node.map_or_else(String::new, |node| format!(" on node {node}"));
    let (thread, share) = (touch.thread, percent(touch.share));
    let known = match touch.known_by {
        TouchEvidence::PageFaults => format!("{share} of the page faults"),
        TouchEvidence::SampledFaults => format!("{share} of the page faults that its samples counted"),
        TouchEvidence::Homes => format!("as it seems: it allocated it, and {share} of its pages are there"),
    };
    let chain = if touch.chain.is_empty() { String::new() } else { format!(": {}", touch.chain.join(" < ")) };
    format!("first by thread {thread}{node}, {known}{chain}")
}

fn worth(worth: &Worth) -> String {
    match worth.at_most {
        Some(share) => format!("at most {} of the CPU time: {}", percent(share), worth.why),
        None => worth.why.clone(),
    }
}

pub(super) fn size(object: &ExplainedObject) -> String {
    match object.object.size {
        0 => ABSENT.to_owned(),
        size => NumberStyle::Bytes.words(size as f64),
    }
}

pub(super) fn remote(object: &ExplainedObject) -> String {
    interval(object.remote)
}

/// A share with its interval.
pub(super) fn interval(share: Option<ShareEstimate>) -> String {
    share.map_or_else(
        || "-".to_owned(),
        |far| format!("{} ({:.0} to {:.0})", percent(far.share), far.low * 100.0, far.high * 100.0),
    )
}

/// `node 0`, `0: 25 % 1: 75 %` or the number of nodes.
pub(super) fn nodes(parts: &[NodeShare]) -> String {
    let named: Vec<&NodeShare> = parts.iter().filter(|part| part.share >= MIN_NODE).collect();
    match named.as_slice() {
        [] => "-".to_owned(),
        [only] if only.share >= ALL => format!("node {}", only.node),
        named if named.len() <= MAX_NODES => {
            let part = |part: &&NodeShare| format!("{}:{:.0}%", part.node, part.share * 100.0);
            named.iter().map(part).collect::<Vec<_>>().join(" ")
        }
        named => format!("{} nodes", named.len()),
    }
}

/// A name in the width of the column of the table.
pub(super) fn cut(name: &str) -> String {
    cut_to(name, NAME_WIDTH)
}

/// A name in a width. Source files lose their folders first. Then the middle goes: functions stand at the beginning, lines at the
/// end. Of a path the end tells more than the beginning.
pub(super) fn cut_to(name: &str, width: usize) -> String {
    let name = without_folders(name);
    let length = name.chars().count();
    if length <= width {
        return name;
    }
    let left = if name.starts_with('/') { 0 } else { width.saturating_sub(3) * 2 / 3 };
    let end = (length + 3 + left).saturating_sub(width);
    let part = |from: usize, to: usize| name.chars().skip(from).take(to - from).collect::<String>();
    format!("{}...{}", part(0, left), part(end, length))
}

/// A name in which source files in parentheses have no folders.
fn without_folders(name: &str) -> String {
    let file = |part: &str| {
        let end = part.find(')').unwrap_or(0);
        let start = part[..end].rfind('/').map_or(0, |slash| slash + 1);
        part[start..].to_owned()
    };
    let mut parts = name.split_inclusive('(');
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.map(file).collect::<String>()
}
