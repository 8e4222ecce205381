//! The sources and the recipes.

use super::{ending, good, packages};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Unpacks what ends so, and returns its only folder.
fn unpacked(out: &Path, end: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("unpacked{end}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    good(
        &Command::new("tar")
            .arg("-xf")
            .arg(ending(out, end).unwrap())
            .arg("-C")
            .arg(&folder)
            .output()
            .unwrap(),
    );
    ending(&folder, end.split('.').next().unwrap()).unwrap()
}

#[test]
#[ignore = "thorough: it builds numa with all its crates, 5 minutes"]
fn the_sources_build_without_a_network_and_without_node() {
    let Some(out) = packages() else { return };
    let top = unpacked(out, "-source.tar.gz");
    let mut build = Command::new("unshare");
    build.args(["--map-root-user", "--net", "cargo", "build", "--offline", "--frozen", "--bin", "numa"]);
    // Whether it builds is tried, not how fast it is.
    build.args(["--config", "profile.dev.opt-level=0"]);
    build.current_dir(&top).env_clear().env("CARGO_HOME", top.join("target/home"));
    // A Node.js that fails.
    let programs = top.join("target/programs");
    fs::create_dir_all(&programs).unwrap();
    for name in ["node", "npm"] {
        std::os::unix::fs::symlink("/bin/false", programs.join(name)).unwrap();
    }
    let path = std::env::join_paths(
        [programs].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    build.env("PATH", path.unwrap());
    for name in ["HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
        build.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    let output = build.output().unwrap();
    if String::from_utf8_lossy(&output.stderr).starts_with("unshare") {
        return numakit_skips::PRIVILEGES.skip("'unshare --map-root-user --net' does not work here");
    }
    good(&output);
    let doctor = Command::new(top.join("target/debug/numa")).args(["doctor", "--json"]).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let page = found["findings"].as_array().unwrap().iter().find(|finding| finding["about"] == "web page");
    assert_eq!(page.unwrap()["state"], "ok", "{page:?}");
}

#[test]
#[ignore = "thorough: it builds the packages, 3 minutes"]
fn recipes_name_the_files_beside_them() {
    let Some(out) = packages() else { return };
    let top = unpacked(out, "-recipes.tar.gz");
    let read = |name: &str| fs::read_to_string(top.join(name)).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let sums = fs::read_to_string(out.join("SHA256SUMS")).unwrap();
    for (recipe, end) in [
        ("spack/packages/numakit/package.py".to_owned(), "-source.tar.gz"),
        (format!("easybuild/numakit-{version}.eb"), "-linux.tar.gz"),
    ] {
        let sum = sums.lines().find(|line| line.ends_with(end)).unwrap().split(' ').next().unwrap();
        let text = read(&recipe);
        let is_filled = !["@VERSION@", "@SOURCE@", "@TARBALL@"].iter().any(|name| text.contains(name));
        assert!(text.contains(sum) && text.contains(version) && is_filled, "{text}");
    }
    for script in ["slurm/prolog", "slurm/epilog"] {
        let mut run = Command::new(top.join(script));
        // Without numa a job starts all the same.
        let output = run.env("PATH", "/nowhere").env("SLURM_JOB_ID", "7").output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty());
        assert!(String::from_utf8_lossy(&output.stderr).contains("job 7 has no label"), "{output:?}");
    }
}

/// Checks Kubernetes's own schema, without fields that it does not know.
const VALIDATE: &str = "import sys, yaml, kubernetes_validate as k
for version in sys.argv[2:]:
    k.validate(yaml.safe_load(open(sys.argv[1])), version, strict=True)
print('valid')";

#[test]
fn the_daemon_set_has_the_schema_of_kubernetes() {
    let manifest = Path::new(super::TOP).join("packaging/kubernetes/daemonset.yaml");
    let python = std::env::var("NUMAKIT_PYTHON").unwrap_or_else(|_| "python3".into());
    let has = Command::new(&python).args(["-c", "import kubernetes_validate"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        return numakit_skips::PYTHON.skip("NUMAKIT_PYTHON names no Python with kubernetes-validate");
    }
    let mut validate = Command::new(&python);
    validate.args(["-W", "ignore", "-c", VALIDATE]).arg(&manifest).args(["1.25", "1.37"]);
    assert_eq!(good(&validate.output().unwrap()), "valid\n");
    let broken = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken.yaml");
    fs::write(&broken, fs::read_to_string(&manifest).unwrap().replace("hostPID: true", "hostPid: true"))
        .unwrap();
    let mut validate = Command::new(&python);
    let refused = validate.args(["-W", "ignore", "-c", VALIDATE]).arg(&broken).arg("1.37").output().unwrap();
    assert!(!refused.status.success());
}

#[test]
fn the_daemon_set_is_what_the_chart_renders() {
    let Ok(version) = Command::new("helm").arg("version").output() else {
        return numakit_skips::PACKAGERS
            .skip("helm is not installed; go install helm.sh/helm/v3/cmd/helm@v3.18.6");
    };
    good(&version);
    let chart = Path::new(env!("CARGO_TARGET_TMPDIR")).join("chart");
    let _ = fs::remove_dir_all(&chart);
    let packaging = Path::new(super::TOP).join("packaging");
    good(&Command::new("cp").arg("-a").arg(packaging.join("helm/numakit")).arg(&chart).output().unwrap());
    let about = fs::read_to_string(chart.join("Chart.yaml")).unwrap();
    fs::write(chart.join("Chart.yaml"), about.replace("@VERSION@", env!("CARGO_PKG_VERSION"))).unwrap();
    let helm = |words: &[&str]| Command::new("helm").args(words).arg(&chart).output().unwrap();
    good(&helm(&["lint", "--strict"]));
    let rendered = good(&helm(&["template", "numakit", "--namespace", "monitoring"]));
    let rendered = rendered.replace(env!("CARGO_PKG_VERSION"), "@VERSION@");
    let kept = packaging.join("kubernetes/daemonset.yaml");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&kept, &rendered).unwrap();
    }
    assert_eq!(fs::read_to_string(&kept).unwrap(), rendered, "UPDATE=1 renews {}", kept.display());
    for (values, says) in [("tokenSecret=", "insecure=true"), ("port=0", "port"), ("prot=1", "prot")] {
        let refused = helm(&["template", "numakit", "--set", values]);
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && error.contains(says), "{values}: {error}");
    }
}
