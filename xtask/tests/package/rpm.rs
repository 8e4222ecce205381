//! The package of rpm, in a root of its own.

use super::{ending, good, packages, take_essential, works};
use crate::root::Root;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Installs what the argument names, and so on, with a database in the root.
fn rpm(root: &Root, words: &[&str]) -> String {
    let mut rpm = root.as_root("rpm");
    // The machine that builds has rpm as a tool; nothing in the root is known to it.
    rpm.arg("--root").arg(root.path("/")).args(["--dbpath", "/var/lib/rpm"]).args(words);
    let output = rpm.output().unwrap();
    good(&output) + &String::from_utf8_lossy(&output.stderr)
}

/// The same package with a lower version, made from the same specification.
fn older(out: &Path, root: &Root) -> String {
    let work = root.path("/tmp/older");
    fs::create_dir_all(&work).unwrap();
    let text = fs::read_to_string(out.join("rpm/numakit.spec")).unwrap();
    let (before, after) = text.split_once("Version: ").unwrap();
    let rest = after.split_once('\n').unwrap().1;
    let spec = work.join("numakit.spec");
    fs::write(&spec, format!("{before}Version: 0.0.1\n{rest}")).unwrap();
    let mut build = Command::new("rpmbuild");
    build.args(["-bb", "--quiet", "--define", &format!("_topdir {}", work.display())]);
    build.args(["--define", &format!("numakit_root {}", out.join("rpm/root").display())]);
    build.args(["--define", "__os_install_post %{nil}", "--define", "_build_id_links none"]);
    build.args(["--define", "debug_package %{nil}", "--define", "_binary_payload w0.xzdio"]);
    good(&build.arg(&spec).output().unwrap());
    let machine = good(&Command::new("uname").arg("-m").output().unwrap());
    let package = work.join(format!("RPMS/{0}/numakit-0.0.1-1.{0}.rpm", machine.trim()));
    package.to_str().unwrap().to_owned()
}

#[test]
#[ignore = "thorough: it builds the packages, 3 minutes"]
fn the_rpm_is_installed_upgraded_and_removed_without_a_trace() {
    let Some(out) = packages() else { return };
    let Some(package) = ending(out, ".rpm") else {
        return numakit_skips::PACKAGERS.skip("rpmbuild is not installed");
    };
    let Some(root) = Root::new("rpm") else { return };
    take_essential(&root);
    let older = older(out, &root);
    let before = root.files();
    // No package of the root provides its shell.
    rpm(&root, &["--install", "--nodeps", &older]);
    assert_eq!(rpm(&root, &["-q", "numakit", "--queryformat", "%{VERSION}"]), "0.0.1");
    rpm(&root, &["--upgrade", "--nodeps", package.to_str().unwrap()]);
    assert_eq!(rpm(&root, &["-q", "numakit", "--queryformat", "%{VERSION}"]), env!("CARGO_PKG_VERSION"));
    assert!(root.path("/usr/lib/systemd/system/numakit.service").is_file());
    works(&root, "/usr", "/usr/lib64/libnumaplace.so", "/usr/share/man/man1");
    let said = rpm(&root, &["--erase", "numakit"]);
    assert!(said.contains("~/.cache/numakit stays"), "{said}");
    // The registry and the runtime directory of this test are those that its user chose. Folders that packages share stay, since
    // no package of this root has them.
    let others = ["/var/lib/rpm", "/tmp/cores", "/run/numakit"];
    let is_other = |path: &Path| others.iter().any(|other| path.starts_with(other));
    let is_shared = |path: &Path| root.path(path).is_dir() && !path.to_string_lossy().contains("numakit");
    let left = root.files();
    let ours: Vec<_> = left
        .difference(&before)
        .filter(|path| !is_other(path.as_path()) && !is_shared(path.as_path()))
        .collect();
    assert!(ours.is_empty(), "{ours:?}");
}
