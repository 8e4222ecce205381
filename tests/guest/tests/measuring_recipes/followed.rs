//! A page of the guide, followed on this machine in one shell from its first command to its last: all blocks marked `sh`.

use super::text_of;
use numakit_guest::{Failure, programs};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any recipe takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(1800);
/// What the shell prints in front of what a block prints.
const NEXT: char = '\u{1e}';

/// A folder for the files of a recipe, with what its commands need.
pub struct Place {
    folder: PathBuf,
    shell: Command,
    before: String,
}

/// What a block printed, to standard output and standard error.
pub struct Block {
    pub commands: String,
    pub printed: String,
}

impl Place {
    /// With `numa`, which keeps all that it keeps in this folder.
    pub fn new(name: &str) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("numakit-recipe-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("bin")).unwrap();
        std::os::unix::fs::symlink(programs::numa()?, folder.join("bin/numa")).unwrap();
        let mut shell = Command::new("sh");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = [folder.join("bin")].into_iter().chain(std::env::split_paths(&path));
        shell.env("PATH", std::env::join_paths(path).unwrap()).current_dir(&folder);
        for (variable, inside) in [
            ("HOME", ""),
            ("XDG_STATE_HOME", "state"),
            ("NUMAKIT_CACHE", "cache"),
            ("NUMAKIT_REGISTRY", "registry"),
        ] {
            shell.env(variable, folder.join(inside));
        }
        Ok(Self { folder, shell, before: String::new() })
    }

    /// A program that the page calls by its name: a script of the shell.
    pub fn script(&self, name: &str, text: &str) {
        let path = self.folder.join("bin").join(name);
        let source = path.with_extension("text");
        fs::write(&source, text).unwrap();
        // Another process writes it: the kernel starts no program that a child of this one may have open.
        assert!(Command::new("install").arg("-m755").args([&source, &path]).status().unwrap().success());
    }

    /// A copy of an example of the guide.
    pub fn example(&self, name: &str) {
        let from = numakit_guest::place::root().join("docs/examples").join(name);
        fs::copy(from, self.folder.join(name)).unwrap();
    }

    /// Commands before the first block, such as what ends a server however the recipe ends.
    pub fn before(&mut self, commands: &str) {
        self.before = format!("{commands}\n");
    }

    /// A variable for all commands.
    pub fn set(&mut self, variable: &str, value: impl AsRef<OsStr>) {
        self.shell.env(variable, value);
    }

    /// Follows the page. All blocks must succeed.
    pub fn follow(&mut self, page: &str) -> Vec<Block> {
        self.follow_marked(page, &["sh"])
    }

    /// Follows the blocks of the page with one of these marks.
    pub fn follow_marked(&mut self, page: &str, marks: &[&str]) -> Vec<Block> {
        self.follow_blocks(page, marks, usize::MAX)
    }

    /// Follows the first block of the page; where its files are.
    pub fn begin(&mut self, page: &str) -> &Path {
        self.follow_blocks(page, &["sh"], 1);
        &self.folder
    }

    fn follow_blocks(&mut self, page: &str, marks: &[&str], most: usize) -> Vec<Block> {
        let mut blocks = blocks(page, marks);
        blocks.truncate(most);
        assert!(!blocks.is_empty(), "{page} has no block marked {marks:?}");
        let steps = blocks.iter().map(|block| format!("printf '\\036'\n{block}"));
        let script = format!("set -e\n{}{}", self.before, steps.collect::<String>());
        let output = self.folder.join("printed");
        let file = File::create(&output).unwrap();
        self.shell.arg("-c").arg(script).stdin(Stdio::null()).stderr(file.try_clone().unwrap()).stdout(file);
        let child = self.shell.process_group(0).spawn().unwrap();
        let status = Group(child).ended(page, &output);
        let printed = String::from_utf8_lossy(&fs::read(&output).unwrap()).into_owned();
        let each: Vec<&str> = printed.split(NEXT).skip(1).collect();
        let failed = blocks.get(each.len().saturating_sub(1)).map_or("", String::as_str);
        assert!(status && each.len() == blocks.len(), "{page}:\n{failed}\n{printed}");
        println!("{}", printed.replace(NEXT, "----\n"));
        let results = blocks.into_iter().zip(each);
        results.map(|(commands, printed)| Block { commands, printed: printed.to_owned() }).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The shell with all that it started in the background and that is in its group.
struct Group(Child);

impl Group {
    /// Whether it succeeded.
    fn ended(&mut self, page: &str, output: &Path) -> bool {
        let began = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.success();
            }
            let printed = || String::from_utf8_lossy(&fs::read(output).unwrap_or_default()).into_owned();
            assert!(began.elapsed() < LIMIT, "{page} does not end:\n{}", printed());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What the page has started in the background, also where a command of it failed. Mostly none is left, and kill says so.
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-s", "TERM", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}

/// The commands of each block with one of these marks.
fn blocks(page: &str, marks: &[&str]) -> Vec<String> {
    let text = text_of(page);
    let marked = marked_blocks(&text).filter(|(mark, _)| marks.contains(mark));
    marked.map(|(_, block)| block.to_owned()).collect()
}

/// All blocks of a page, each with its mark: the words behind the fence that opens it.
pub fn marked_blocks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("```").skip(1).step_by(2).map(|block| block.split_once('\n').unwrap())
}

/// What the block with this command printed.
pub fn printed<'a>(blocks: &'a [Block], command: &str) -> &'a str {
    let block = blocks.iter().find(|block| block.commands.contains(command));
    &block.unwrap_or_else(|| panic!("no {command}")).printed
}

/// Whether samples told where time goes. Beside programs that use all CPUs the calibration may refuse them; a line says so then.
pub fn samples_tell(printed: &str) -> bool {
    let refused = printed.contains("Samples of this machine land elsewhere");
    if refused {
        numakit_skips::SAMPLES.skip_part("samples of this machine land elsewhere than at what waited, now");
    }
    !refused
}
