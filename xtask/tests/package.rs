//! The packages, used in a root directory with only a shell and their files.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "package/debian.rs"]
mod debian;
#[path = "package/image.rs"]
mod image;
#[path = "package/root.rs"]
mod root;
#[path = "package/rpm.rs"]
mod rpm;
#[path = "package/source.rs"]
mod source;
#[path = "package/unit.rs"]
mod unit;

use numakit_guest::programs::is_of_package;
use root::Root;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const COMPLETIONS: [&str; 4] = [
    "bash-completion/completions/numa",
    "bash-completion/completions/numakit",
    "zsh/site-functions/_numa",
    "fish/vendor_completions.d/numa.fish",
];
/// Prints a program's mappings with shell built-ins.
const MAPS: &str = "while read -r line; do echo \"$line\"; done < /proc/self/maps";

fn xtask(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(words).current_dir(TOP).output().unwrap()
}

fn good(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Whether npm is missing; prints a line that says so.
fn without_npm() -> bool {
    let missing = Command::new("npm").arg("--version").output().is_err();
    if missing {
        numakit_skips::PAGE.skip("npm, which builds the web page, is not installed");
    }
    missing
}

/// The packages, built once as tests are; `None` without Node.js.
fn packages() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        if without_npm() {
            return None;
        }
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("package");
        let _ = fs::remove_dir_all(&out);
        print!("{}", good(&xtask(&["package", "--profile", "dev", "--out", out.to_str().unwrap()])));
        Some(out)
    };
    BUILT.get_or_init(build).as_deref()
}

/// The file in a folder with this suffix.
fn ending(folder: &Path, end: &str) -> Option<PathBuf> {
    let mut paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.find(|path| path.to_str().unwrap().ends_with(end))
}

/// Checks programs, library, man pages, completions and the page in this folder of the root.
fn works(root: &Root, usr: &str, library: &str, man: &str) {
    for name in ["numa", "numakit"] {
        assert!(root.sh(&format!("{usr}/bin/{name} topo")).contains("node 0"));
    }
    let maps = root.sh(&format!("{usr}/bin/numa run -c 1 --busy off -- /bin/sh -c '{MAPS}'"));
    assert!(maps.contains("/var/cache/numakit/") && maps.contains("libnumaplace.so"), "{maps}");
    let maps = root.sh(&format!("LD_PRELOAD={library} /bin/sh -c '{MAPS}'"));
    assert!(maps.contains(library), "{maps}");
    assert!(root.sh(&format!("{usr}/bin/numaplace -V")).starts_with("numaplace "));
    assert!(root.sh(&format!("{usr}/bin/numascope -help")).contains("numascope"));
    let page = root.sh(&format!("{usr}/bin/numa man run"));
    assert!(page.contains(".TH numa-run 1"), "{page}");
    for name in ["numa", "numa-run", "numakit", "numaplace"] {
        let there = |ending: &str| root.path(man).join(format!("{name}.{ending}")).is_file();
        assert!(there("1") || there("1.gz"), "{name}");
    }
    let offered = root.sh(&format!("{usr}/bin/numa completions bash"));
    let completion = root.path(usr).join("share").join(COMPLETIONS[0]);
    assert_eq!(fs::read_to_string(completion).unwrap(), offered);
    serves_its_page(root, usr);
}

/// The same command, ended with all that it started after five minutes.
fn limited(command: &Command) -> Command {
    let mut limited = Command::new("timeout");
    limited.args(["-k", "5", "300"]).arg(command.get_program()).args(command.get_args());
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    limited.env_clear().envs(set);
    limited
}

/// Requests the page and its script.
fn serves_its_page(root: &Root, usr: &str) {
    let line = format!("{usr}/bin/numa live --no-open --listen 127.0.0.1:0 -e pgfault");
    let mut live = limited(&root.command(&line));
    let mut live = live.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(live.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.starts_with("control")).unwrap();
    let address = line.split_once("http://").unwrap().1.split_once('/').unwrap().0.to_owned();
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    let page = ask("/");
    let script = ask("/app.js");
    root.sh(&format!("{usr}/bin/numa ctl stop"));
    assert!(live.wait().unwrap().success());
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("app.js"), "{page}");
    assert!(script.starts_with("HTTP/1.1 200") && script.len() > 50_000, "{} bytes", script.len());
}

#[test]
#[ignore = "thorough: it builds the packages, 3 minutes"]
fn the_tarball_works_in_a_clean_root() {
    let Some(out) = packages() else { return };
    let tarball = ending(out, "-linux.tar.gz").unwrap();
    let Some(root) = Root::new("tarball") else { return };
    fs::create_dir_all(root.path("/opt/numakit")).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&tarball).args(["--strip-components=1", "--no-same-owner", "-C"]);
    good(&tar.arg(root.path("/opt/numakit")).output().unwrap());
    for completion in COMPLETIONS {
        assert!(root.path("/opt/numakit/share").join(completion).is_file(), "{completion}");
    }
    let documents = root.path("/opt/numakit/share/doc/numakit");
    links_work(&documents);
    for page in ["html/index.html", "html/explain.html", "html/guide.css", "html/images/live.png"] {
        assert!(documents.join(page).is_file(), "{page}");
    }
    let licences = fs::read_to_string(documents.join("THIRD-PARTY-LICENSES")).unwrap();
    for linked in ["\nring 0.", "uplot:\n", "\nclap 4.", "Permission is hereby granted", "Apache License"] {
        assert!(licences.contains(linked), "{linked}");
    }
    works(&root, "/opt/numakit", "/opt/numakit/lib/libnumaplace.so", "/opt/numakit/share/man/man1");
}

/// Checks that README and guide, and all that they link to, are there.
fn links_work(documents: &Path) {
    let (mut checked, mut pages) = (0, vec![documents.join("README.md")]);
    let guide = fs::read_dir(documents.join("docs/guide")).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(guide.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for link in links.filter(|link| !link.is_empty() && !link.contains([':', ' '])) {
            assert!(page.parent().unwrap().join(link).exists(), "{} links to {link}", page.display());
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}

#[test]
#[ignore = "thorough: it builds the packages, 3 minutes"]
fn checksums_and_the_bill_of_materials_are_beside_the_packages() {
    let Some(out) = packages() else { return };
    let mut check = Command::new("sha256sum");
    let checked = good(&check.args(["--check", "SHA256SUMS"]).current_dir(out).output().unwrap());
    for end in ["-linux.tar.gz: OK\n", ".cdx.json: OK\n"] {
        assert!(checked.contains(end), "{checked}");
    }
    let sbom = fs::read(ending(out, ".cdx.json").unwrap()).unwrap();
    let folder = ending(out, "-linux").unwrap().join("share/doc/numakit");
    assert_eq!(fs::read(folder.join("sbom.cdx.json")).unwrap(), sbom);
    let sbom: serde_json::Value = serde_json::from_slice(&sbom).unwrap();
    assert_eq!((&sbom["bomFormat"], &sbom["specVersion"]), (&"CycloneDX".into(), &"1.6".into()));
    let parts = sbom["components"].as_array().unwrap();
    let has = |start: &str| parts.iter().any(|part| part["purl"].as_str().unwrap().starts_with(start));
    for part in [
        "npm/uplot@",
        "generic/glibc@2.",
        "generic/zstd@1.",
        "generic/libnumaplace.so@",
        "generic/rust-std@1.",
    ] {
        assert!(has(&format!("pkg:{part}")), "{part}");
    }
    let licences = fs::read_to_string(folder.join("THIRD-PARTY-LICENSES")).unwrap();
    let crates = licences.split("\n\n").nth(1).unwrap().lines();
    for (name, version) in crates.map(|line| line.split_once(": ").unwrap().0.split_once(' ').unwrap()) {
        let part = parts.iter().find(|part| part["name"] == name && part["version"] == version);
        assert_eq!(part.unwrap()["hashes"][0]["content"].as_str().unwrap().len(), 64, "{name} {version}");
    }
}

#[test]
#[ignore = "thorough: it builds the packages, 3 minutes"]
fn the_same_commit_gives_the_same_packages() {
    let Some(out) = packages() else { return };
    let again = out.with_file_name("package-again");
    let _ = fs::remove_dir_all(&again);
    good(&xtask(&["package", "--profile", "dev", "--out", again.to_str().unwrap()]));
    let sums = |folder: &Path| fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    assert_eq!(sums(&again), sums(out));
}

#[test]
#[ignore = "thorough: it builds the packages, 3 minutes"]
fn the_program_needs_no_library() {
    let Some(out) = packages() else { return };
    let Some(root) = Root::empty("empty") else { return };
    let folder = ending(out, "-linux").unwrap();
    fs::copy(folder.join("bin/numa"), root.path("/numa")).unwrap();
    let version = good(&root.program("/numa", &["--version"]).output().unwrap());
    assert!(version.starts_with("numa "), "{version}");
}

#[test]
#[ignore = "thorough: it builds the packages, 3 minutes"]
fn the_debian_package_installs_and_works_in_a_clean_root() {
    let Some(out) = packages() else { return };
    let Some(package) = ending(out, ".deb") else {
        return numakit_skips::TOOLS.skip("dpkg-deb is not installed");
    };
    let Some(root) = Root::new("debian") else { return };
    root.know("libc6", "2.36");
    let dpkg = |words: &[&str]| {
        let mut line = root.as_root("dpkg");
        line.arg("--root").arg(root.path("/")).arg("--force-not-root").args(words);
        good(&line.output().unwrap())
    };
    dpkg(&["--install", package.to_str().unwrap()]);
    assert!(dpkg(&["--status", "numakit"]).contains("Status: install ok installed"));
    assert_eq!(dpkg(&["--verify", "numakit"]), "");
    let files = dpkg(&["--listfiles", "numakit"]);
    let library = files.lines().find(|line| line.ends_with("/libnumaplace.so")).unwrap().to_owned();
    works(&root, "/usr", &library, "/usr/share/man/man1");
    let allocator = library.replace("libnumaplace", "libnumalloc");
    let maps = root.sh(&format!("LD_PRELOAD={allocator} /bin/sh -c '{MAPS}'"));
    assert!(maps.contains(&allocator), "{maps}");
    take_essential(&root);
    dpkg(&["--remove", "numakit"]);
    for file in ["/usr/bin/numa", "/usr/bin/numakit", "/usr/bin/numaplace", &library, "/usr/share/man/man1"] {
        assert!(!root.path(file).exists(), "{file}");
    }
}

/// What a script of a package may use in any Debian.
fn take_essential(root: &Root) {
    for program in ["rm", "stat", "grep"] {
        root.take_program(&Path::new("/usr/bin").join(program));
    }
}

/// While a program holds cores, its registry and the libraries that its children load stay.
const REMOVALS: &str = r#"
set -e
numa() { chroot "$0" /usr/bin/numa "$@"; }
package() { dpkg --root="$0" --force-not-root "$@"; }
registry="$0/dev/shm/numakit-cores"
cache="$0/var/cache/numakit"
until_free() { while grep -q ":$(stat -c %i "$registry") " /proc/locks; do sleep 0.1; done; }

package --install "$1"
mkfifo "$0/tmp/held" "$0/tmp/end"
numa run -c 1 --busy off -- /bin/sh -c 'echo >/tmp/held; read -r line </tmp/end' &
read -r line <"$0/tmp/held"
package --remove numakit
test -f "$registry"
test -d "$cache"
echo >"$0/tmp/end"
wait
until_free
package --purge numakit
test ! -e "$registry"
test ! -e "$cache"

package --install "$1"
numa run -c 1 --busy off -- /bin/sh -c :
until_free
test -f "$registry"
test -d "$cache"
package --remove numakit
test ! -e "$registry"
test ! -e "$cache"
"#;

#[test]
#[ignore = "thorough: it builds the packages, 3 minutes"]
fn removing_the_debian_package_leaves_only_what_programs_use() {
    let Some(out) = packages() else { return };
    let Some(package) = ending(out, ".deb") else {
        return numakit_skips::TOOLS.skip("dpkg-deb is not installed");
    };
    let Some(root) = Root::new("removed") else { return };
    root.know("libc6", "2.36");
    take_essential(&root);
    let done = limited(&root.beside(REMOVALS, &[package.to_str().unwrap()])).output().unwrap();
    let said = good(&done);
    assert_eq!(said.matches("programs hold cores").count(), 1, "{said}");
    assert_eq!(said.matches("~/.cache/numakit stays").count(), 3, "{said}");
}

#[test]
fn missing_tools_for_another_machine_are_named() {
    let none = xtask(&["package", "--target", "m68k-unknown-linux-gnu"]);
    let error = String::from_utf8(none.stderr).unwrap();
    assert!(none.status.code() == Some(2) && error.contains("--target takes x86_64-"), "{error}");
    let arm = "aarch64-unknown-linux-gnu";
    let folder = Command::new("rustc").args(["--print", "target-libdir", "--target", arm]).output().unwrap();
    if Path::new(good(&folder).trim()).is_dir() {
        return numakit_skips::MACHINE.skip(format_args!("the target {arm} is installed"));
    }
    let lacks = xtask(&["package", "--target", arm]);
    let error = String::from_utf8(lacks.stderr).unwrap();
    assert!(lacks.status.code() == Some(2) && error.contains(&format!("rustup target add {arm}")), "{error}");
}

#[test]
#[ignore = "thorough: it builds and installs, 2 minutes"]
fn cargo_install_includes_the_page_man_pages_and_completions() {
    if without_npm() {
        return;
    }
    let top = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed");
    let _ = fs::remove_dir_all(&top);
    let mut install = Command::new("cargo");
    install.args(["install", "--locked", "--offline", "--profile", "dev", "--path", "crates/cli"]);
    install.args(["--features", "numakit", "--root"]).arg(&top).current_dir(TOP);
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_package(name)) {
        install.env_remove(name);
    }
    good(&install.output().unwrap());
    let numa = |words: &str| {
        let mut numa = Command::new(top.join("bin/numa"));
        numa.args(words.split(' ')).current_dir(&top).env("NUMAKIT_REGISTRY", top.join("cores"));
        numa.env("NUMAKIT_CACHE", top.join("cache")).env("HOME", &top).env("XDG_RUNTIME_DIR", &top);
        String::from_utf8(numa.output().unwrap().stdout).unwrap()
    };
    let found: serde_json::Value = serde_json::from_str(&numa("doctor --json")).unwrap();
    let page = found["findings"].as_array().unwrap().iter().find(|finding| finding["about"] == "web page");
    assert_eq!(page.unwrap()["state"], "ok", "{page:?}");
    let version = Command::new(top.join("bin/numakit")).arg("--version").output().unwrap();
    assert_eq!(good(&version), numa("--version"));
    numa("man --dir man1");
    assert!(top.join("man1/numa.1").is_file() && top.join("man1/numa-run.1").is_file());
    for shell in ["bash", "zsh", "fish"] {
        assert!(numa(&format!("completions {shell}")).contains("numa"), "{shell}");
    }
}

/// The files of a crate's package.
fn packaged(package: &str) -> String {
    let mut list = Command::new("cargo");
    list.args(["package", "--list", "--allow-dirty", "--offline", "-p", package]).current_dir(TOP);
    good(&list.output().unwrap())
}

#[test]
fn packaged_crates_have_the_files_of_their_build_scripts() {
    let holds = |list: &str, file: &str| list.lines().any(|line| line == file);
    let launch = packaged("numakit-launch");
    for file in ["build.rs", "native/Makefile", "native/place/os_linux.c", "native/include/numaplace.h"] {
        assert!(holds(&launch, file), "{file}: {launch}");
    }
    let server = packaged("numakit-server");
    assert!(holds(&server, "build.rs") && !server.contains("node_modules"), "{server}");
    for name in ["index.html", "app.js", "app.css", "icon.svg"] {
        let built = Path::new(TOP).join("web/dist").join(name).is_file();
        assert_eq!(holds(&server, &format!("web/dist/{name}")), built, "{name}: {server}");
    }
}
