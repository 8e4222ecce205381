//! How a running program was started, as it can be typed again, and whether a program that is to be started runs already.

use numakit_sys::SysRoot;
use numakit_sys::command::quoted;
use numakit_sys::executable;
use numakit_sys::proc::{TaskDir, own_pid, processes};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What is longer is no command that somebody types again.
const MAX_BYTES: usize = 1000;
/// Processes between a process and the first one of its program, at most.
const MAX_DEPTH: usize = 64;
/// What nginx writes before its command line.
const BEFORE_COMMAND: &str = ": master process ";

/// What the kernel shows as the command line of a process.
#[derive(Debug, PartialEq, Eq)]
enum ShownLine {
    /// The words with which it was started.
    Words(Vec<String>),
    /// What the program has written over them, as in `postgres: writer` or `redis-server *:6379`.
    Title(String),
}

/// The command line that starts the program of a process again. Behind a program whose title has replaced its arguments comes
/// `arguments`, a word that is in place of them. `None` if the process has ended, or if its line contains more than text.
pub fn start_line(root: &SysRoot, pid: u32, arguments: &str) -> Option<String> {
    let words = match shown_line(root, pid)? {
        ShownLine::Words(words) => words,
        // Workers have titles; the process that started them often has its words.
        ShownLine::Title(_) => match shown_line(root, first_of_program(root, pid)?)? {
            ShownLine::Words(words) => words,
            ShownLine::Title(title) => of_title(root, pid, &title, arguments)?,
        },
    };
    Some(quoted(&words))
}

/// The process that runs the program of a command with the same arguments, or as a server that shows a title in place of them:
/// the one that started the others, if there are several.
pub fn running_already(root: &SysRoot, words: &[OsString]) -> Option<u32> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let file = executable::find(words.first()?, &path).ok()?.canonicalize().ok()?;
    let own = own_pid(root);
    let is_it = |pid: &u32| Some(*pid) != own && runs(root, *pid, &file, words);
    let found: Vec<u32> = processes(root).ok()?.into_iter().filter(is_it).collect();
    let is_first = |pid: &&u32| {
        TaskDir::of(root, **pid).stat().is_ok_and(|stat| stat.runs() && !found.contains(&stat.parent))
    };
    // The first process of a server has arguments where its workers have titles.
    found.iter().find(is_first).map(|pid| first_of_program(root, *pid).unwrap_or(*pid))
}

fn runs(root: &SysRoot, pid: u32, file: &Path, words: &[OsString]) -> bool {
    let Some(line) = shown_line(root, pid) else { return false };
    let (name, has_same_arguments) = match &line {
        ShownLine::Title(title) => (name_of(title), true),
        ShownLine::Words(own) => {
            (own[0].as_str(), own[1..].iter().map(OsStr::new).eq(words[1..].iter().map(OsString::as_os_str)))
        }
    };
    let is_named =
        || Path::new(name).file_name() == words.first().and_then(|word| Path::new(word).file_name());
    // Where the file may not be read, the program is known by its name.
    has_same_arguments && program(root, pid).map_or_else(is_named, |program| Path::new(&program) == file)
}

fn program(root: &SysRoot, pid: u32) -> Option<String> {
    root.link(&TaskDir::of(root, pid).path("exe")).ok()
}

/// `None` if it has ended or is one of the kernel, or if the line contains more than text.
fn shown_line(root: &SysRoot, pid: u32) -> Option<ShownLine> {
    let line = TaskDir::of(root, pid).bytes("cmdline").ok()?;
    // What a title does not fill is zero.
    let end = line.iter().rposition(|byte| *byte != 0)? + 1;
    let text = str::from_utf8(&line[..end.min(MAX_BYTES + 1)]).ok().filter(|text| text.len() <= MAX_BYTES)?;
    if text.contains(|c: char| c != '\0' && c.is_control()) {
        return None;
    }
    let first = text.split('\0').next().filter(|first| !first.is_empty())?;
    let is_title = first.contains(' ') && program(root, pid).as_deref() != Some(first);
    Some(match is_title {
        true => ShownLine::Title(first.to_owned()),
        // An empty argument at the end is one, too.
        false => {
            let whole = str::from_utf8(line.strip_suffix(&[0]).unwrap_or(&line)).ok()?;
            ShownLine::Words(whole.split('\0').map(str::to_owned).collect())
        }
    })
}

/// The oldest of the ancestors of a process that run the same program.
fn first_of_program(root: &SysRoot, pid: u32) -> Option<u32> {
    let own = program(root, pid)?;
    let mut first = pid;
    for _ in 0..MAX_DEPTH {
        let parent = TaskDir::of(root, first).stat().ok()?.parent;
        if program(root, parent).as_ref() != Some(&own) {
            break;
        }
        first = parent;
    }
    Some(first)
}

/// The words of a program with a title: the file, and `arguments` unless the title repeats them.
fn of_title(root: &SysRoot, pid: u32, title: &str, arguments: &str) -> Option<Vec<String>> {
    let is_plain = |word: &str| word.chars().all(|c| c.is_alphanumeric() || "-_./=:,+@%".contains(c));
    if let Some((_, line)) = title.split_once(BEFORE_COMMAND) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        // Where a word had spaces, nobody knows which.
        if !words.is_empty() && words.iter().all(|word| is_plain(word)) {
            return Some(words.into_iter().map(str::to_owned).collect());
        }
    }
    let file = program(root, pid)?;
    // A file that is several programs chooses by its name.
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let named = format!("{folder}/{}", name_of(title));
    let is_there = root.exists(&format!("{}{named}", TaskDir::of(root, pid).path("root")));
    Some(vec![if is_there { named } else { file }, arguments.to_owned()])
}

/// The program that a title names.
fn name_of(title: &str) -> &str {
    title.split([':', ' ']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::root::FileTree;

    fn process(tree: &mut FileTree, pid: u32, parent: u32, program: &str, line: &str) {
        let zeros = "0 ".repeat(20);
        tree.file(&format!("/proc/{pid}/stat"), format!("{pid} (x) S {parent} {zeros}\n"));
        tree.symlink(&format!("/proc/{pid}/exe"), program);
        tree.file(&format!("/proc/{pid}/cmdline"), line);
    }

    fn machine() -> SysRoot {
        let mut tree = FileTree::new();
        process(&mut tree, 1, 0, "/sbin/init", "init\0");
        process(&mut tree, 10, 1, "/pg/bin/postgres", "/pg/bin/postgres\0-D\0/my data\0");
        process(&mut tree, 11, 10, "/pg/bin/postgres", "postgres: writer \0\0\0");
        process(&mut tree, 20, 1, "/bin/redis-check-rdb", "redis-server *:6379\0\0\0");
        tree.file("/proc/20/root/bin/redis-server", "");
        process(&mut tree, 30, 1, "/sbin/nginx", "nginx: master process /sbin/nginx -c /etc/n.conf\0");
        process(&mut tree, 31, 30, "/sbin/nginx", "nginx: worker process\0");
        process(&mut tree, 40, 1, "/sbin/nginx", "nginx: master process nginx -g daemon off;\0");
        process(&mut tree, 50, 1, "/bin/empty", "empty\0\0");
        process(&mut tree, 60, 1, "/bin/odd", "odd\0\x1b[2J\0");
        process(&mut tree, 70, 1, "/my app", "/my app\0-x\0");
        SysRoot::of_tree(tree)
    }

    #[test]
    fn servers_with_titles_are_started_by_their_first_process_or_their_file() {
        let root = machine();
        let of = |pid| start_line(&root, pid, "ARGS");
        assert_eq!(of(10).as_deref(), Some("/pg/bin/postgres -D '/my data'"));
        assert_eq!(of(11), of(10));
        assert_eq!(of(20).as_deref(), Some("/bin/redis-server ARGS"));
        assert_eq!(of(30).as_deref(), Some("/sbin/nginx -c /etc/n.conf"));
        assert_eq!(of(31), of(30));
        assert_eq!(of(40).as_deref(), Some("/sbin/nginx ARGS"));
        assert_eq!(of(50).as_deref(), Some("empty ''"));
        assert_eq!(of(70).as_deref(), Some("'/my app' -x"));
        assert_eq!((of(60), of(99)), (None, None));
    }

    #[test]
    fn a_program_runs_already_with_the_same_arguments_or_a_title() {
        let root = machine();
        let runs = |pid, file: &str, line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            super::runs(&root, pid, Path::new(file), &words)
        };
        assert!(runs(20, "/bin/redis-check-rdb", "redis-server"));
        assert!(runs(30, "/sbin/nginx", "nginx -c other"));
        assert!(runs(70, "/my app", "app -x") && !runs(70, "/my app", "app -y"));
        assert!(!runs(20, "/bin/redis-cli", "redis-cli"));
        let own: Vec<OsString> = std::env::args_os().collect();
        assert_ne!(running_already(&SysRoot::host(), &own), Some(std::process::id()));
        assert_eq!(running_already(&root, &["no-such-program-here".into()]), None);
    }
}
