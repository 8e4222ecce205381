//! The Debian package: what its own checker says, and an upgrade.

use super::{ending, good, packages, take_essential};
use crate::root::Root;
use std::fs;
use std::process::Command;

#[test]
#[ignore = "thorough: it builds the packages, 3 minutes"]
fn lintian_finds_nothing() {
    let Some(out) = packages() else { return };
    let Some(package) = ending(out, ".deb") else {
        return numakit_skips::TOOLS.skip("dpkg-deb is not installed");
    };
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning"]).arg(&package);
    let Ok(output) = lintian.output() else {
        return numakit_skips::PACKAGERS.skip("lintian is not installed; apt-get install -y lintian");
    };
    assert_eq!(good(&output), "");
}

#[test]
#[ignore = "thorough: it builds the packages, 3 minutes"]
fn the_debian_package_is_upgraded_and_purged_without_a_trace() {
    let Some(out) = packages() else { return };
    let Some(package) = ending(out, ".deb") else {
        return numakit_skips::TOOLS.skip("dpkg-deb is not installed");
    };
    let Some(root) = Root::new("upgraded") else { return };
    root.know("libc6", "2.36");
    take_essential(&root);
    let tree = root.path("/tmp/older");
    let deb = |words: &[&str]| good(&Command::new("dpkg-deb").args(words).output().unwrap());
    deb(&["--raw-extract", package.to_str().unwrap(), tree.to_str().unwrap()]);
    let control = tree.join("DEBIAN/control");
    let text = fs::read_to_string(&control).unwrap();
    let version = format!("Version: {}\n", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&version), "{text}");
    fs::write(&control, text.replace(&version, "Version: 0.0.1\n")).unwrap();
    let older = root.path("/tmp/older.deb");
    deb(&["--root-owner-group", "-Zxz", "-z0", "--build", tree.to_str().unwrap(), older.to_str().unwrap()]);
    let before = root.files();
    let dpkg = |words: &[&str]| {
        let mut line = root.as_root("dpkg");
        good(&line.arg("--root").arg(root.path("/")).arg("--force-not-root").args(words).output().unwrap())
    };
    dpkg(&["--install", older.to_str().unwrap()]);
    assert!(dpkg(&["--status", "numakit"]).contains("Version: 0.0.1\n"));
    dpkg(&["--install", package.to_str().unwrap()]);
    assert!(dpkg(&["--status", "numakit"]).contains(&version));
    assert!(root.path("/usr/lib/systemd/system/numakit.service").is_file());
    root.sh("/usr/bin/numa run -c 1 --busy off -- /bin/sh -c :");
    // Enabled where systemd does not run.
    let wants = root.path("/etc/systemd/system/multi-user.target.wants");
    fs::create_dir_all(&wants).unwrap();
    std::os::unix::fs::symlink("/usr/lib/systemd/system/numakit.service", wants.join("numakit.service"))
        .unwrap();
    dpkg(&["--purge", "numakit"]);
    assert!(wants.join("numakit.service").symlink_metadata().is_err(), "what enabled the unit");
    fs::remove_dir_all(root.path("/etc/systemd")).unwrap();
    let left = root.files();
    // The registry of this test is one that its user chose.
    let others = ["/var/lib/dpkg", "/tmp/cores"];
    let ours: Vec<_> =
        left.difference(&before).filter(|path| !others.iter().any(|other| path.starts_with(other))).collect();
    assert!(ours.is_empty(), "{ours:?}");
}
