//! `numa explain` in containers: contended lines are named where performance events are refused.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_containers::{Container, Profile, are_here};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of the host with what is tested, which containers see at the same path.
struct Programs(PathBuf);

impl Programs {
    /// The programs of the tests of `numa explain`; `None` without compilers.
    fn build() -> Option<Self> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/cli/tests/explain");
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("numakit-explained-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let built = Self(folder);
        let compiled = |compiler: &str, words: &[&str], source: &str| {
            let mut command = Command::new(compiler);
            command.args(words).arg(sources.join(source)).current_dir(&built.0);
            command.status().is_ok_and(|status| status.success())
        };
        if !compiled("cc", &["-O2", "-pthread", "-o", "contended"], "contended.c") {
            numakit_skips::COMPILERS.skip("there is no C compiler");
            return None;
        }
        if !compiled("javac", &["-d", "."], "TypeCheck.java") {
            numakit_skips::COMPILERS.skip("there is no javac");
            return None;
        }
        let home = built.0.join("home");
        std::fs::create_dir(&home).unwrap();
        // Of any user, as the directory of a volume.
        std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o1777)).unwrap();
        Some(built)
    }

    fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What `numa explain` says of a command in a container.
fn explained(container: &Container, home: &str, command: &str) -> Value {
    let script = format!("export HOME={home}; cd {home}; numa explain --json - -- {command}");
    let output = container.output(&["sh", "-c", &script]).unwrap();
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // The program's own output comes first.
    let json = text.find('{').map(|at| &text[at..]);
    serde_json::from_str(json.unwrap_or_else(|| panic!("{command}: {text} {error}"))).unwrap()
}

/// The file of the `java` of this machine, which links of /etc name, and the folder of its settings.
fn java() -> Option<(PathBuf, PathBuf)> {
    let found = Command::new("sh").args(["-c", "command -v java"]).output().ok()?;
    let file = Path::new(String::from_utf8_lossy(&found.stdout).trim()).canonicalize().ok()?;
    let settings = file.parent()?.parent()?.join("lib/jvm.cfg").canonicalize().ok()?;
    Some((file, settings.parent()?.to_owned()))
}

/// How often contention is looked for: on a busy machine two threads may hardly run at the same time.
const TRIES: usize = 5;

#[test]
fn contended_lines_are_named_in_containers() {
    if !are_here() {
        return;
    }
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return numakit_skips::MACHINE.skip("two CPUs are needed for contention");
    }
    let Some(programs) = Programs::build() else { return };
    let Some((java, settings)) = java() else { return numakit_skips::COMPILERS.skip("there is no java") };
    let docker = || Container::new(Profile::Docker).file("/.dockerenv", "");
    for (name, container) in
        [("root", docker()), ("user 1000", docker().user(1000)), ("Podman", Container::new(Profile::Podman))]
    {
        let path = programs.path();
        let mut container = container.mount(&programs.0, &path);
        if !settings.starts_with("/usr") {
            container = container.mount(&settings, &settings.display().to_string());
        }
        let of = |command: &str| explained(&container, &format!("{path}/home"), command);
        let apart = of(&format!("{path}/contended atomic-counters apart 1.5"));
        if apart["regime"] != "precise" {
            return numakit_skips::MACHINE
                .skip("samples of this machine do not name the instruction that waited");
        }
        assert_eq!(
            (&apart["road"], &apart["lines"]),
            (&"by timers in the program".into(), &Value::Array(vec![]))
        );
        for command in [
            format!("{path}/contended atomic-counters shared 1.5"),
            format!("{} -cp {path} TypeCheck shared 3", java.display()),
        ] {
            let named = (0..TRIES).any(|_| {
                let result = of(&command);
                let line = &result["lines"][0];
                println!("{name}, {command}: {} samples, {line}", result["samples"]["total"]);
                line["users"].as_array().is_some_and(|users| users.len() == 2)
            });
            // Newer Java machines do not have this cache any more.
            assert!(
                named || (command.contains("TypeCheck") && !command.contains("java-17")),
                "{name}, {command}: no contended line"
            );
        }
    }
}

#[test]
fn recordings_say_where_threads_waited() {
    if !are_here() {
        return;
    }
    let Some(programs) = Programs::build() else { return };
    let (path, home) = (programs.path(), programs.0.join("home"));
    let container =
        Container::new(Profile::Docker).file("/.dockerenv", "").user(1000).mount(&programs.0, &path);
    let script = format!(
        "export HOME={0}; cd {0}; numa record -o a.numa -- {path}/contended one-atomic shared 1 > out 2>&1 || cat out >&2; \
         numa export --to csv -o - a.numa",
        home.display()
    );
    let output = container.output(&["sh", "-c", &script]).unwrap();
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = lines.next().unwrap_or_else(|| panic!("{error}")).split(',').collect();
    let Some(at) = names.iter().position(|name| name.starts_with("access.samples")) else {
        panic!("no samples: {error} {text}")
    };
    let samples = lines.filter_map(|line| line.split(',').nth(at)?.parse::<f64>().ok()).fold(0.0, f64::max);
    assert!(samples >= 20.0, "{samples} samples: {error}");
}
