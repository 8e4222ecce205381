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
            match command.status() {
                Ok(status) => assert!(status.success(), "{source} does not compile"),
                Err(error) => {
                    numakit_skips::COMPILERS.skip(format_args!("{compiler} cannot be started: {error}"));
                    return None;
                }
            }
            Some(())
        };
        compiled("cc", &["-O2", "-pthread", "-o", "contended"], "contended.c")?;
        compiled("javac", &["-d", "."], "TypeCheck.java")?;
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

/// What a command in a container prints, and what `numa explain` says of it.
fn explained(container: &Container, home: &str, command: &str) -> (String, Value) {
    let script = format!("export HOME={home}; cd {home}; numa explain --json - -- {command}");
    let output = container.output(&["sh", "-c", &script]).unwrap();
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // Standard output is the result's alone.
    let result = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{command}: {why}: {text} {error}"));
    (error.into_owned(), result)
}

/// The file of the `java` of this machine, which links of /etc name, and the folder of its settings.
fn java() -> Option<(PathBuf, PathBuf)> {
    let found = Command::new("sh").args(["-c", "command -v java"]).output().ok()?;
    let file = Path::new(String::from_utf8_lossy(&found.stdout).trim()).canonicalize().ok()?;
    let settings = file.parent()?.parent()?.join("lib/jvm.cfg").canonicalize().ok()?;
    Some((file, settings.parent()?.to_owned()))
}

#[test]
fn measuring_contended_lines_are_named_in_containers() {
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
        let (_, apart) = of(&format!("{path}/contended atomic-counters apart 2"));
        if apart["regime"] != "precise" {
            return numakit_skips::MACHINE
                .skip("samples of this machine do not name the instruction that waited");
        }
        assert_eq!(
            (&apart["road"], &apart["lines"]),
            (&"by timers in the program".into(), &Value::Array(vec![]))
        );
        let is_named = |command: &str| {
            let (printed, result) = of(command);
            let line = &result["lines"][0];
            println!("{name}, {command}: {} samples, {line}", result["samples"]["total"]);
            (printed, line["users"].as_array().is_some_and(|users| users.len() == 2))
        };
        assert!(
            is_named(&format!("{path}/contended atomic-counters shared 2")).1,
            "{name}: no contended line"
        );
        // Not every Java machine has this cache: whether a check takes longer where both threads use it tells the truth.
        let check = |way: &str| {
            let (printed, named) = is_named(&format!("{} -cp {path} TypeCheck {way} 3", java.display()));
            let ns = printed.lines().find_map(|line| line.strip_suffix(" ns")?.parse::<f64>().ok());
            (ns.unwrap_or_else(|| panic!("{name}: {printed}")), named)
        };
        let ((apart, _), (shared, named)) = (check("apart"), check("shared"));
        let times_longer = shared / apart;
        assert!(
            named || times_longer < 2.0,
            "{name}: {times_longer:.1} times as long, and no contended line"
        );
    }
}

#[test]
fn measuring_recordings_say_where_threads_waited() {
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
