//! Running processes that a user chooses: by their numbers, or by what they belong to. What belongs to a control group, a unit, a
//! container or a name changes while it is observed, so a choice can be looked at again.

mod containers;
mod pattern;

pub use self::containers::{names as container_names, of_group as container_of_group};
pub use self::pattern::{NamePattern, NamePatternError};

use numakit_model::suggest;
use numakit_sys::SysRoot;
use numakit_sys::proc::{TaskDir, TaskStat, cgroup, mounts, own_pid, printable, processes};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use thiserror::Error;

/// Time between two looks, in ns; a look takes at most one in this many parts of the time.
const EACH: u64 = 1_000_000_000;
const SHARE: u64 = 200;
/// Similar names, and processes or groups that are listed by name.
const MAX_LISTED: usize = 8;
/// The kernel cuts the names of programs to this many bytes.
const CUT: usize = 15;
/// Kinds of units that have processes.
const UNITS: [&str; 3] = [".service", ".scope", ".slice"];

/// What a user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessChoice {
    /// These processes.
    Numbers(Vec<u32>),
    /// All processes of a control group and of those below it: a folder below /sys/fs/cgroup, or a path as in
    /// /proc/PID/cgroup.
    ControlGroup(String),
    /// All processes of a unit of systemd; `.service` may be left out.
    Unit(String),
    /// All processes of a container, by its number, at least six digits of it, or its name.
    Container(String),
    /// All processes whose program has a matching name.
    Name(NamePattern),
}

impl ProcessChoice {
    fn option(&self) -> &'static str {
        match self {
            Self::Numbers(_) => "--pid",
            Self::ControlGroup(_) => "--cgroup",
            Self::Unit(_) => "--unit",
            Self::Container(_) => "--container",
            Self::Name(_) => "--name",
        }
    }

    fn value(&self) -> String {
        match self {
            Self::Numbers(pids) => pids.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
            Self::ControlGroup(text) | Self::Unit(text) | Self::Container(text) => text.clone(),
            Self::Name(pattern) => pattern.text().to_owned(),
        }
    }
}

/// A choice that no process meets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{option} {value}: {problem}; {fix}")]
pub struct ChoiceError {
    option: &'static str,
    value: String,
    problem: String,
    fix: String,
}

/// Which processes belong to a choice.
#[derive(Debug, Clone)]
enum Membership {
    /// These.
    Numbers(Vec<u32>),
    /// Those of a folder of control groups and of the folders below it.
    Folder(String),
    /// Those in one of these control groups, or below it.
    Groups(Vec<String>),
    /// Those of the container with this number.
    Container(String),
    /// Those whose name matches.
    Name(NamePattern),
}

/// Processes that a user has chosen, and those that belong to the same choice later.
#[derive(Debug, Clone)]
pub struct ChosenProcesses {
    membership: Membership,
    numbers: Vec<u32>,
    words: String,
    /// The time of the next look.
    next: u64,
}

impl ChosenProcesses {
    /// The processes that meet a choice now. An error if there is none, or if one that was named is not there.
    pub fn find(choice: &ProcessChoice, root: &SysRoot) -> Result<Self, ChoiceError> {
        let error = |problem: String, fix: String| ChoiceError {
            option: choice.option(),
            value: printable(choice.value().as_bytes()),
            problem,
            fix,
        };
        let (membership, what) = match choice {
            ProcessChoice::Numbers(pids) => {
                if let Some(pid) = pids.iter().find(|pid| !TaskDir::of(root, **pid).exists()) {
                    let missing = error("there is no such process".to_owned(), LISTS.to_owned());
                    return Err(ChoiceError { value: pid.to_string(), ..missing });
                }
                if let Some(pid) = pids.iter().find(|pid| is_of_kernel(root, **pid)) {
                    let kernel = error(
                        "it is a thread of the kernel and runs no program".to_owned(),
                        LISTS.to_owned(),
                    );
                    return Err(ChoiceError { value: pid.to_string(), ..kernel });
                }
                (Membership::Numbers(pids.clone()), String::new())
            }
            ProcessChoice::ControlGroup(path) => (group(root, path), format!("control group {path}")),
            ProcessChoice::Unit(name) => unit(root, name).map_err(|(problem, fix)| error(problem, fix))?,
            ProcessChoice::Container(name) => {
                container(root, name).map_err(|(problem, fix)| error(problem, fix))?
            }
            ProcessChoice::Name(pattern) => {
                (Membership::Name(pattern.clone()), format!("programs named '{}'", pattern.text()))
            }
        };
        let mut found = Self { membership, numbers: Vec::new(), words: String::new(), next: 0 };
        found.numbers = found.now(root);
        if found.numbers.is_empty() {
            let (problem, fix) = nothing(root, choice);
            return Err(error(problem, fix));
        }
        found.words = match what.is_empty() {
            true => listed(root, &found.numbers, false),
            false => printable(format!("{what}: {}", listed(root, &found.numbers, true)).as_bytes()),
        };
        Ok(found)
    }

    /// The processes when they were found.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Whether other processes may meet the choice later. Those that were named by their numbers stay the same.
    pub fn may_grow(&self) -> bool {
        !matches!(self.membership, Membership::Numbers(_))
    }

    /// Whether one of these runs in a container in which this process does not run.
    pub fn are_contained(&self, root: &SysRoot) -> bool {
        let container = |groups: String| {
            cgroup::lines(&groups).find_map(|line| containers::of_group(line.path).map(str::to_owned))
        };
        let space = |task: TaskDir<'_>| root.link(&task.path("ns/pid")).ok();
        let own = TaskDir::own(root).text("cgroup").ok().and_then(container);
        let (own_space, host) = (space(TaskDir::own(root)), root);
        self.numbers.iter().any(|&pid| {
            let of = container(groups_of(host, pid));
            let is_other = |space: String| own_space.as_ref().is_some_and(|own| *own != space);
            of.is_some() && of != own || space(TaskDir::of(host, pid)).is_some_and(is_other)
        })
    }

    /// From now on the choice is that of the processes that were found, and no others belong to it.
    pub fn keep(&mut self) {
        self.membership = Membership::Numbers(self.numbers.clone());
    }

    /// The processes that meet the choice now, if it is time for a look: `clock` is the time in ns.
    pub fn look(&mut self, root: &SysRoot, clock: &dyn Fn() -> u64) -> Option<Vec<u32>> {
        let start = clock();
        if start < self.next {
            return None;
        }
        let now = self.now(root);
        let end = clock();
        self.next = end + EACH.max(end.saturating_sub(start) * SHARE);
        Some(now)
    }

    /// The processes that meet the choice now, without this one and without those that have ended.
    fn now(&self, root: &SysRoot) -> Vec<u32> {
        let own = own_pid(root);
        let of_those = |pids: Vec<u32>, is_wanted: &dyn Fn(u32, &TaskStat) -> bool| {
            let is_one = |pid: &u32| {
                let stat = TaskDir::of(root, *pid).stat();
                Some(*pid) != own
                    && stat.is_ok_and(|stat| stat.runs() && !stat.kernel && is_wanted(*pid, &stat))
            };
            pids.into_iter().filter(is_one).collect()
        };
        let any = |_, _: &TaskStat| true;
        match &self.membership {
            Membership::Numbers(pids) => {
                pids.iter().copied().filter(|pid| TaskDir::of(root, *pid).exists()).collect()
            }
            Membership::Folder(path) => {
                let mut found = BTreeSet::new();
                add_of_folder(root, path, &mut found);
                of_those(found.into_iter().collect(), &any)
            }
            Membership::Groups(groups) => {
                let is_one = |path: &str| groups.iter().any(|group| is_below(path, group));
                of_those(of_groups(root, is_one), &any)
            }
            Membership::Container(number) => {
                of_those(of_groups(root, |path| containers::of_group(path) == Some(number)), &any)
            }
            Membership::Name(pattern) => {
                of_those(processes(root).unwrap_or_default(), &|pid, stat| has_name(root, pid, stat, pattern))
            }
        }
    }
}

impl fmt::Display for ChosenProcesses {
    /// What was chosen: `process 7`, `unit nginx.service (/system.slice/nginx.service): nginx 812, 813`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

fn is_of_kernel(root: &SysRoot, pid: u32) -> bool {
    TaskDir::of(root, pid).stat().is_ok_and(|stat| stat.kernel)
}

const LISTS: &str = "'numa top --once' lists the processes";

/// `process 7`, `processes 7, 9`; or with names, `nginx 812, 813, sh 901`.
fn listed(root: &SysRoot, pids: &[u32], with_names: bool) -> String {
    if !with_names {
        let numbers: Vec<String> = pids.iter().map(u32::to_string).collect();
        return format!("{} {}", if pids.len() == 1 { "process" } else { "processes" }, numbers.join(", "));
    }
    let (mut words, mut last) = (Vec::new(), None);
    for pid in pids.iter().take(MAX_LISTED) {
        let name = TaskDir::of(root, *pid).stat().map(|stat| stat.name()).unwrap_or_default();
        words.push(if last.as_ref() == Some(&name) { pid.to_string() } else { format!("{name} {pid}") });
        last = Some(name);
    }
    let more = match pids.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    words.join(", ") + &more
}

/// Whether the program of a process has a matching name. One that the kernel has cut is that of its file.
fn has_name(root: &SysRoot, pid: u32, stat: &TaskStat, pattern: &NamePattern) -> bool {
    let name = stat.name();
    let whole = || {
        let program = root.link(&TaskDir::of(root, pid).path("exe")).ok()?;
        let program = program.rsplit('/').next()?.to_owned();
        program.starts_with(&name).then_some(program)
    };
    pattern.matches(&name) || (name.len() >= CUT && whole().is_some_and(|whole| pattern.matches(&whole)))
}

/// The control groups of a process, one of each hierarchy.
fn groups_of(root: &SysRoot, pid: u32) -> String {
    TaskDir::of(root, pid).text("cgroup").unwrap_or_default()
}

/// The processes with a control group like that.
fn of_groups(root: &SysRoot, is_wanted: impl Fn(&str) -> bool) -> Vec<u32> {
    let all = processes(root).unwrap_or_default().into_iter();
    all.filter(|pid| cgroup::lines(&groups_of(root, *pid)).any(|line| is_wanted(line.path))).collect()
}

/// All control groups that have processes.
fn all_groups(root: &SysRoot) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for pid in processes(root).unwrap_or_default() {
        found.extend(cgroup::lines(&groups_of(root, pid)).map(|line| line.path.to_owned()));
    }
    found
}

/// Whether a group is another one, or below it.
fn is_below(path: &str, above: &str) -> bool {
    let above = above.trim_end_matches('/');
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A folder of a mounted hierarchy is read itself: in a namespace of control groups, its processes have other paths.
fn group(root: &SysRoot, path: &str) -> Membership {
    let mounted = TaskDir::own(root).text("mounts").unwrap_or_default();
    let mut hierarchies = mounts::lines(&mounted).filter(|mount| mount.system.starts_with("cgroup"));
    match hierarchies.any(|mount| is_below(path, mount.path)) {
        true => Membership::Folder(path.trim_end_matches('/').to_owned()),
        false => Membership::Groups(vec![format!("/{}", path.trim_matches('/'))]),
    }
}

/// Adds the processes of a folder of control groups and of the folders below it.
fn add_of_folder(root: &SysRoot, folder: &str, found: &mut BTreeSet<u32>) {
    let text = root.text(&format!("{folder}/cgroup.procs")).unwrap_or_default();
    found.extend(text.split_ascii_whitespace().filter_map(|word| word.parse::<u32>().ok()));
    for name in root.list(folder).unwrap_or_default() {
        let below = format!("{folder}/{name}");
        if root.exists(&format!("{below}/cgroup.procs")) {
            add_of_folder(root, &below, found);
        }
    }
}

/// A problem and its fix.
type Problem = (String, String);

/// The control groups of a unit: those with its name, of the system or of a user.
fn unit(root: &SysRoot, name: &str) -> Result<(Membership, String), Problem> {
    let has_kind = UNITS.iter().any(|kind| name.ends_with(kind));
    let name = if has_kind { name.to_owned() } else { format!("{name}.service") };
    let all = all_groups(root);
    let part = |path: &str| {
        let end = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        end.map(|end| &path[..end]).find(|above| above.rsplit('/').next() == Some(&name)).map(str::to_owned)
    };
    let groups: BTreeSet<String> = all.iter().filter_map(|path| part(path)).collect();
    if groups.is_empty() {
        let units: BTreeSet<&str> = all
            .iter()
            .flat_map(|path| path.split('/'))
            .filter(|part| UNITS.iter().any(|kind| part.ends_with(kind)))
            .collect();
        let near = suggest::nearest(&name, units.iter().copied(), MAX_LISTED);
        let fix = match (near.as_slice(), units.is_empty()) {
            (_, true) => {
                "systemd runs nothing here that can be seen; give --cgroup, --name or --pid".to_owned()
            }
            ([], false) => format!("'systemctl status {name}' says whether it runs"),
            (near, false) => format!("there are {}", near.join(", ")),
        };
        return Err(("no process is in a control group of a unit with that name".to_owned(), fix));
    }
    let groups: Vec<String> = groups.into_iter().collect();
    let what = format!("unit {name} ({})", groups.join(", "));
    Ok((Membership::Groups(groups), what))
}

/// The container with a number that begins so, or with a name.
fn container(root: &SysRoot, wanted: &str) -> Result<(Membership, String), Problem> {
    // Kubernetes writes `containerd://NUMBER`.
    let wanted = wanted.split_once("://").map_or(wanted, |(_, number)| number);
    let groups = all_groups(root);
    let numbers: BTreeSet<&str> = groups.iter().filter_map(|path| containers::of_group(path)).collect();
    // The files of runtimes are those of this machine.
    let names = |number: &str| match root.is_host() {
        true => containers::names(Path::new("/"), number),
        false => Vec::new(),
    };
    let by_number = |number: &&&str| containers::is_number(wanted) && number.starts_with(wanted);
    let mut found: Vec<&str> = numbers.iter().filter(by_number).copied().collect();
    if found.is_empty() {
        found = numbers
            .iter()
            .filter(|number| names(number).iter().any(|name| name == wanted))
            .copied()
            .collect();
    }
    let shown = |number: &str| {
        let short = number.get(..12).unwrap_or(number);
        names(number).first().map_or_else(|| short.to_owned(), |name| format!("{name} ({short})"))
    };
    let list = |numbers: &[&str]| {
        numbers.iter().take(MAX_LISTED).map(|number| shown(number)).collect::<Vec<_>>().join(", ")
    };
    match found.as_slice() {
        [number] => Ok((Membership::Container((*number).to_owned()), format!("container {}", shown(number)))),
        [] => {
            let of_lxc: Vec<String> =
                groups.iter().filter(|path| containers::is_lxc(path, wanted)).cloned().collect();
            if !of_lxc.is_empty() {
                return Ok((Membership::Groups(of_lxc), format!("container {wanted}")));
            }
            let all: Vec<&str> = numbers.into_iter().collect();
            let fix = match all.as_slice() {
                [] => "no process that can be seen here is in a container of Docker, Podman, containerd or CRI-O; \
                       give --cgroup or --pid"
                    .to_owned(),
                all => format!("there are {}; names need root", list(all)),
            };
            Err(("there is no container with processes that has this name or number".to_owned(), fix))
        }
        several => Err((
            format!("{} containers have it: {}", several.len(), list(several)),
            "give more digits".to_owned(),
        )),
    }
}

/// Why no process meets a choice, and what the user may have meant.
fn nothing(root: &SysRoot, choice: &ProcessChoice) -> Problem {
    let (problem, known): (&str, BTreeSet<String>) = match choice {
        ProcessChoice::Name(pattern) => {
            let own = own_pid(root);
            if own.and_then(|own| Some(has_name(root, own, &TaskDir::of(root, own).stat().ok()?, pattern)))
                == Some(true)
            {
                return ("only this numa itself has a matching name".to_owned(), LISTS.to_owned());
            }
            let name =
                |pid| TaskDir::of(root, pid).stat().ok().filter(|stat| !stat.kernel).map(|stat| stat.name());
            let others = processes(root).unwrap_or_default().into_iter().filter(|pid| Some(*pid) != own);
            ("no program that runs has a matching name", others.filter_map(name).collect())
        }
        ProcessChoice::ControlGroup(path) => match group(root, path) {
            Membership::Folder(path) if root.exists(&format!("{path}/cgroup.procs")) => {
                ("the control group has no processes", BTreeSet::new())
            }
            Membership::Folder(path) => {
                let above = path.rsplit_once('/').map_or("", |(above, _)| above).to_owned();
                let beside = root.list(&above).unwrap_or_default();
                let beside = beside.into_iter().map(|name| format!("{above}/{name}"));
                let is_group = |path: &String| root.exists(&format!("{path}/cgroup.procs"));
                ("there is no such control group", beside.filter(is_group).collect())
            }
            _ => ("no process is in such a control group", all_groups(root)),
        },
        _ => ("it has no processes", BTreeSet::new()),
    };
    let near = suggest::nearest(&choice.value(), known.iter().map(String::as_str), MAX_LISTED);
    let fix = match near.is_empty() {
        true => LISTS.to_owned(),
        false => printable(format!("there are {}", near.join(", ")).as_bytes()),
    };
    (problem.to_owned(), fix)
}

#[cfg(test)]
mod tests;
