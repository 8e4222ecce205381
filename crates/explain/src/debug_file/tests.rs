use super::*;
use crate::member_path::{self, VariableByte};
use crate::symbols::Symbols;
use crate::variables::VariableFiles;
use object::{ObjectSegment, ObjectSymbol};
use std::fs;
use std::process::Command;

const SOURCE: &str = "
struct pair { long first, second; };
static struct pair pairs[64];
static __attribute__((noinline)) long inner(long n) { pairs[n % 64].second += n; return pairs[n % 64].second; }
int main(int count, char **words) { (void)words; return (int)inner(count); }
";

/// A program, as it was and without symbols, and its debug information.
struct Built {
    folder: PathBuf,
    whole: PathBuf,
    stripped: PathBuf,
    debug: PathBuf,
}

fn run(line: &[&str]) -> bool {
    Command::new(line[0]).args(&line[1..]).status().is_ok_and(|status| status.success())
}

/// `None` without the tools.
fn built(name: &str, flags: &[&str]) -> Option<Built> {
    let folder = std::env::temp_dir().join(format!("numakit-debug-{}-{name}", std::process::id()));
    _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name);
    fs::write(path("app.c"), SOURCE).unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let [source, whole, stripped, debug] =
        ["app.c", "whole", "app", "app.debug"].map(|name| text(&path(name)));
    let made = run(&[&["cc", "-g", "-O1", "-o", &whole, &source], flags].concat())
        && run(&["objcopy", "--only-keep-debug", &whole, &debug])
        && run(&["objcopy", "--strip-all", &whole, &stripped])
        && run(&["objcopy", &format!("--add-gnu-debuglink={debug}"), &stripped]);
    if !made {
        numakit_skips::COMPILERS.skip("cc or objcopy does not work");
        return None;
    }
    Some(Built { whole: path("whole"), stripped: path("app"), debug: path("app.debug"), folder })
}

impl Built {
    /// The address of a symbol, and its place in the file.
    fn symbol(&self, name: &str) -> (u64, u64) {
        let bytes = fs::read(&self.whole).unwrap();
        let elf = object::File::parse(bytes.as_slice()).unwrap();
        let address = elf.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap().address();
        let is_there = |s: &object::Segment<'_, '_>| (s.address()..s.address() + s.size()).contains(&address);
        let segment = elf.segments().find(is_there).unwrap();
        (address, address - segment.address() + segment.file_range().0)
    }

    /// The function, line and variable of the stripped program, and the member of the variable.
    fn names(&self) -> (Option<String>, Option<u32>, Option<String>, Option<String>) {
        let code = Symbols::default().name(&self.stripped, "app", self.symbol("inner").1);
        let address = self.symbol("pairs").0;
        let variables = VariableFiles::default().of(&self.stripped).unwrap();
        let variable = variables.find(address + 8).and_then(|variable| variables.name(variable));
        let byte = VariableByte { variable: address, offset: 16 * 3 + 8 };
        let member = member_path::of_file(&self.stripped, &[byte]).remove(&byte);
        (code.function, code.line, variable, member)
    }

    fn is_named(&self) -> bool {
        let text = |text: &str| Some(text.to_owned());
        self.names() == (text("inner"), Some(4), text("pairs"), text("[3].second"))
    }
}

impl Drop for Built {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_stripped_program_has_the_names_of_its_debug_file() {
    for flags in [&["-Wl,--build-id=sha1"][..], &["-Wl,--build-id=none"]] {
        let Some(built) = built("link", flags) else { return };
        assert_eq!(of(&built.whole), None, "it has its own");
        assert_eq!(of(&built.stripped).as_ref(), Some(&built.debug), "{flags:?}");
        assert!(built.is_named(), "{flags:?}: {:?}", built.names());
        let below = built.folder.join(".debug/app.debug");
        fs::create_dir(built.folder.join(".debug")).unwrap();
        fs::rename(&built.debug, &below).unwrap();
        assert_eq!(of(&built.stripped), Some(below.clone()), "{flags:?}");
        // That of another build is not taken.
        let other = fs::read(&built.stripped).unwrap();
        fs::write(&below, &other[..other.len() / 2]).unwrap();
        assert_eq!(of(&built.stripped), None, "{flags:?}");
        let (function, line, variable, member) = built.names();
        assert!(function.as_deref() != Some("inner") && line.is_none() && variable.is_none());
        assert_eq!(member, None);
    }
}

#[test]
fn debug_files_are_found_by_build_id_and_where_they_are_installed() {
    let Some(built) = built("id", &["-Wl,--build-id=0x0102aabb"]) else { return };
    let root = built.folder.join("root");
    for place in [
        ".build-id/01/02aabb.debug".to_owned(),
        format!("{}/app.debug", &built.folder.display().to_string()[1..]),
    ] {
        let installed = root.join(FOLDER).join(place);
        fs::create_dir_all(installed.parent().unwrap()).unwrap();
        fs::rename(&built.debug, &installed).unwrap();
        assert_eq!(find(&built.stripped, &["/".into(), root.clone()]), Some(installed.clone()));
        fs::rename(&installed, &built.debug).unwrap();
        fs::write(&installed, "no program").unwrap();
        // It is beside the program.
        assert_eq!(find(&built.stripped, &["/".into(), root.clone()]).as_ref(), Some(&built.debug));
    }
}

#[test]
fn files_are_seen_by_the_root_of_their_process() {
    assert_eq!(root(Path::new("/proc/12/root/usr/bin/app")), Path::new("/proc/12/root"));
    assert_eq!(root(Path::new("/usr/bin/app")), Path::new("/"));
    assert_eq!(root(Path::new("/proc/12/cwd/app")), Path::new("/"));
    assert_eq!(of(Path::new("/no/such/file")), None);
    assert_eq!(of(Path::new("/etc/passwd")), None);
}
