//! How many cores a user may hold, from a file of the machine's administrator.
//!
//! ```text
//! default 16          # users without another line
//! user alice 32
//! group hpc 64        # of several groups the largest counts
//! uid 1000 8
//! ```
//!
//! A line with the user's name or number comes first, then the groups, then the default. Without a matching line
//! there is no limit. Root has none unless it is named.

use numakit_registry::Holding;
use numakit_sys::{file, user};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

const MACHINE_FILE: &str = "/etc/numakit/limits";
/// A file with a line for each user of a large site has a hundredth of this.
const MAX_BYTES: u64 = 16 << 20;

/// Why the limits are unknown.
#[derive(Debug, Error)]
pub enum LimitsError {
    /// A line that cannot be parsed.
    #[error(
        "{}:{line}: {problem}; a line is 'default CORES', 'user NAME CORES', 'group NAME CORES' or 'uid NUMBER CORES'",
        file.display()
    )]
    Line {
        /// The file.
        file: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// The file that `NUMAKIT_LIMITS` names cannot be read.
    #[error("the limits in {} cannot be read: {reason}; name another file in NUMAKIT_LIMITS, or unset it", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
}

/// More cores were requested than the user may hold.
#[derive(Debug, Error)]
#[error(
    "{requested} cores were requested, but {user} may hold {limit} and holds {held}; request fewer, wait, use --share, or change {}:{line}",
    file.display()
)]
pub struct LimitExceeded {
    /// Cores that were selected.
    pub requested: u32,
    /// The user.
    pub user: String,
    /// How many the user may hold.
    pub limit: u32,
    /// How many the user holds.
    pub held: u32,
    /// The file of limits.
    pub file: PathBuf,
    /// Its line.
    pub line: usize,
}

impl LimitExceeded {
    /// Whether waiting for the user's other programs to release cores may help.
    pub fn is_temporary(&self) -> bool {
        self.requested <= self.limit
    }
}

/// The users that a line limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitSubject {
    /// All users without another line.
    Default,
    /// The user of this name.
    User(String),
    /// The user of this number.
    Id(u32),
    /// The members of this group.
    Group(String),
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its number, from 1.
    pub line: usize,
    /// The users that it limits.
    pub subject: LimitSubject,
    /// How many cores they may hold.
    pub cores: u32,
}

/// Parses the text of the file; an error is the number of the line and the problem.
pub fn parse(text: &str) -> Result<Vec<Rule>, (usize, String)> {
    let mut rules = Vec::new();
    for (at, text) in text.lines().enumerate() {
        let line = at + 1;
        let words: Vec<&str> = text.split('#').next().unwrap_or("").split_whitespace().collect();
        let (subject, cores) = match words[..] {
            [] => continue,
            ["default", cores] => (LimitSubject::Default, cores),
            ["user", name, cores] => (LimitSubject::User(name.to_owned()), cores),
            ["group", name, cores] => (LimitSubject::Group(name.to_owned()), cores),
            ["uid", id, cores] => {
                let id = id.parse().map_err(|_| (line, format!("'{id}' is not the number of a user")))?;
                (LimitSubject::Id(id), cores)
            }
            _ => return Err((line, format!("'{}' is not understood", words.join(" ")))),
        };
        let cores = cores.parse().map_err(|_| (line, format!("'{cores}' is not a number of cores")))?;
        rules.push(Rule { line, subject, cores });
    }
    Ok(rules)
}

/// The user for whom a limit is wanted.
#[derive(Clone, Copy)]
pub struct LimitedUser<'a> {
    /// The user's number.
    pub id: u32,
    /// The user's name, where there is one.
    pub name: Option<&'a str>,
    /// Whether the user is in the group of this name.
    pub is_member: &'a dyn Fn(&str) -> bool,
}

/// The rule that applies to a user.
pub fn rule_for<'a>(rules: &'a [Rule], user: &LimitedUser<'_>) -> Option<&'a Rule> {
    let named = |rule: &&Rule| match &rule.subject {
        LimitSubject::User(name) => user.name == Some(name),
        LimitSubject::Id(id) => *id == user.id,
        _ => false,
    };
    if let Some(rule) = rules.iter().rfind(named) {
        return Some(rule);
    }
    if user.id == 0 {
        return None;
    }
    let in_group =
        |rule: &&Rule| matches!(&rule.subject, LimitSubject::Group(name) if (user.is_member)(name));
    let of_groups = rules.iter().filter(in_group).max_by_key(|rule| rule.cores);
    of_groups.or_else(|| rules.iter().rfind(|rule| rule.subject == LimitSubject::Default))
}

/// The rules of a file.
#[derive(Debug, Clone, Default)]
pub struct CoreLimits {
    file: PathBuf,
    rules: Vec<Rule>,
    warning: Option<String>,
}

impl CoreLimits {
    /// Reads `$NUMAKIT_LIMITS`, else `/etc/numakit/limits`. If the former cannot be read, that is an error; if the
    /// latter cannot be read, there are no limits.
    pub fn of_this_machine() -> Result<Self, LimitsError> {
        match std::env::var_os("NUMAKIT_LIMITS").filter(|name| !name.is_empty()) {
            Some(named) => Self::read(named.into()),
            None => match Self::read(PathBuf::from(MACHINE_FILE)) {
                Err(LimitsError::Unreadable { file, reason }) => Ok(Self::unlimited(&file, &reason)),
                read => read,
            },
        }
    }

    fn read(file: PathBuf) -> Result<Self, LimitsError> {
        let text = match text_of(&file) {
            Ok(text) => text,
            Err(reason) => return Err(LimitsError::Unreadable { file, reason }),
        };
        match parse(&text) {
            Ok(rules) => Ok(Self { file, rules, warning: None }),
            Err((line, problem)) => Err(LimitsError::Line { file, line, problem }),
        }
    }

    fn unlimited(file: &Path, reason: &io::Error) -> Self {
        let is_absent = matches!(reason.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        let warning = (!is_absent).then(|| {
            let file = file.display();
            let fix = match reason.kind() {
                io::ErrorKind::PermissionDenied => {
                    format!("make the file readable for all, as root: chmod a+r {file}")
                }
                _ if file::is_at_open_files_limit(reason) => {
                    "raise the limit of open files: ulimit -n 1024".to_owned()
                }
                _ => "name a file that can be read in NUMAKIT_LIMITS".to_owned(),
            };
            format!("the limits in {file} cannot be read ({reason}), so they are ignored; {fix}")
        });
        Self { warning, ..Self::default() }
    }

    /// The warning about a file that could not be read.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Whether this user may hold `requested` more cores. Ask where cores are selected, under the allocation lock: until the
    /// reservation, no other process can then take cores.
    pub fn check(&self, holdings: &[Holding], requested: u32) -> Result<(), LimitExceeded> {
        if self.rules.is_empty() {
            return Ok(());
        }
        let id = user::real_id();
        let name = user::name(id);
        let groups = user::groups();
        let is_member = |group: &str| user::group(group).is_some_and(|group| groups.contains(&group));
        let Some(rule) =
            rule_for(&self.rules, &LimitedUser { id, name: name.as_deref(), is_member: &is_member })
        else {
            return Ok(());
        };
        let own =
            holdings.iter().filter(|holding| holding.holder.as_ref().is_some_and(|holder| holder.user == id));
        let held: u32 = own.map(Holding::cores).sum();
        if held.saturating_add(requested) <= rule.cores {
            return Ok(());
        }
        let user = name.unwrap_or_else(|| id.to_string());
        let (limit, file, line) = (rule.cores, self.file.clone(), rule.line);
        Err(LimitExceeded { requested, user, limit, held, file, line })
    }
}

/// The text of a file that an environment variable names; it never waits.
fn text_of(path: &Path) -> io::Result<String> {
    // This is how a user says that there are no limits.
    if path == Path::new("/dev/null") {
        return Ok(String::new());
    }
    file::named_text(path, MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_registry::{Holder, HolderState};

    const FILE: &str =
        "# of the machine\ndefault 16\nuser alice 32 # busy\n\ngroup hpc 64\ngroup few 2\nuid 7 8\n";

    fn limit(id: u32, name: Option<&str>, groups: &[&str]) -> Option<u32> {
        let rules = parse(FILE).unwrap();
        let is_member = |group: &str| groups.contains(&group);
        rule_for(&rules, &LimitedUser { id, name, is_member: &is_member }).map(|rule| rule.cores)
    }

    #[test]
    fn names_come_before_groups_and_groups_before_the_default() {
        assert_eq!(limit(1000, Some("alice"), &["hpc"]), Some(32));
        assert_eq!(limit(7, None, &["hpc"]), Some(8));
        assert_eq!(limit(1001, Some("bob"), &["few", "hpc"]), Some(64));
        assert_eq!(limit(1001, Some("bob"), &["few"]), Some(2));
        assert_eq!(limit(1001, Some("bob"), &[]), Some(16));
    }

    #[test]
    fn root_has_no_limit_unless_it_is_named() {
        assert_eq!(limit(0, Some("root"), &["hpc"]), None);
        let rules = parse("default 1\nuser root 4").unwrap();
        let is_member = |_: &str| false;
        let user = LimitedUser { id: 0, name: Some("root"), is_member: &is_member };
        assert_eq!(rule_for(&rules, &user).map(|rule| (rule.line, rule.cores)), Some((2, 4)));
    }

    #[test]
    fn limits_of_the_machine_that_cannot_be_read_are_a_warning() {
        let file = std::env::temp_dir();
        let Err(LimitsError::Unreadable { reason, .. }) = CoreLimits::read(file.clone()) else {
            panic!("a folder")
        };
        let limits = CoreLimits::unlimited(&file, &reason);
        assert!(limits.warning().unwrap().contains("cannot be read (it is a folder and not"), "{limits:?}");
        assert!(
            limits.warning().unwrap().ends_with("name a file that can be read in NUMAKIT_LIMITS"),
            "{limits:?}"
        );
        let closed = CoreLimits::unlimited(&file, &io::ErrorKind::PermissionDenied.into());
        assert!(closed.warning().unwrap().ends_with(&format!("chmod a+r {}", file.display())), "{closed:?}");
        assert!(limits.check(&[], 1000).is_ok());
        let missing = CoreLimits::read(file.join("no-such-file")).unwrap_err();
        let LimitsError::Unreadable { reason, .. } = missing else { panic!("{missing}") };
        assert_eq!(CoreLimits::unlimited(&file, &reason).warning(), None);
        assert!(CoreLimits::read("/dev/null".into()).unwrap().check(&[], 1000).is_ok());
    }

    #[test]
    fn limits_in_a_fifo_are_not_waited_for() {
        let fifo = std::env::temp_dir().join(format!("numakit-limits-{}", std::process::id()));
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let error = CoreLimits::read(fifo.clone()).unwrap_err();
        std::fs::remove_file(&fifo).unwrap();
        assert!(error.to_string().contains("cannot be read: it is a FIFO and not"), "{error}");
    }

    #[test]
    fn waiting_helps_only_within_the_limit() {
        let id = user::real_id();
        let (file, rules) = (PathBuf::from("/limits"), parse(&format!("uid {id} 3")).unwrap());
        let limits = CoreLimits { file, rules, warning: None };
        let held = Holding {
            cpus: numakit_model::CpuSet::range(0, 1),
            state: HolderState::Held,
            holder: Some(Holder { user: id, ..Holder::default() }),
            same_pid_namespace: true,
            is_own: false,
        };
        let refused = |requested| limits.check(std::slice::from_ref(&held), requested).unwrap_err();
        assert!(limits.check(std::slice::from_ref(&held), 1).is_ok());
        assert!(refused(2).is_temporary() && !refused(4).is_temporary());
        let expected = "may hold 3 and holds 2; request fewer, wait, use --share, or change /limits:1";
        assert!(refused(2).to_string().ends_with(expected), "{}", refused(2));
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line, part) in [
            ("default 4\nuser bob", 2, "'user bob'"),
            ("\n\nuid bob 4", 3, "'bob' is not the number of a user"),
            ("default -1", 1, "'-1' is not a number of cores"),
            ("group hpc many", 1, "'many'"),
            ("Default 4", 1, "'Default 4'"),
        ] {
            let (at, problem) = parse(text).unwrap_err();
            assert!(at == line && problem.contains(part), "{text}: {at} {problem}");
        }
    }
}
