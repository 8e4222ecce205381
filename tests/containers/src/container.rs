//! A container: its configuration, and how it runs and ends.

use crate::Profile;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Where the program is inside.
pub const NUMA: &str = "/opt/numa";

/// What Docker and Podman leave to root.
const CAPABILITIES: [&str; 14] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "MKNOD",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETFCAP",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
    "AUDIT_WRITE",
];

/// What containers may not see or change.
const MASKED: [&str; 7] = [
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/sched_debug",
    "/sys/firmware",
];
const READ_ONLY: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Why a container cannot be made.
#[derive(Debug, Error)]
pub enum ContainerError {
    /// A file or a program of this machine.
    #[error("{what}: {source}")]
    System {
        /// What was done.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The program to run inside.
    #[error(transparent)]
    Numa(#[from] numakit_guest::Failure),
}

/// What runs in a container, and in which.
#[derive(Debug, Clone)]
pub struct Container {
    profile: Profile,
    capabilities: Vec<String>,
    user: u32,
    read_only: bool,
    files: Vec<(String, String)>,
    mounts: Vec<(PathBuf, String)>,
}

impl Container {
    /// Of root, under a filter.
    pub fn new(profile: Profile) -> Self {
        let capabilities = CAPABILITIES.map(|name| format!("CAP_{name}")).to_vec();
        Self { profile, capabilities, user: 0, read_only: false, files: Vec::new(), mounts: Vec::new() }
    }

    /// With a capability more, without `CAP_`.
    pub fn capability(mut self, name: &str) -> Self {
        self.capabilities.push(format!("CAP_{name}"));
        self
    }

    /// As another user.
    pub fn user(mut self, user: u32) -> Self {
        self.user = user;
        self
    }

    /// With a root file system that nobody can write to.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// With a file in its root file system.
    pub fn file(mut self, path: &str, text: &str) -> Self {
        self.files.push((path.to_owned(), text.to_owned()));
        self
    }

    /// With a folder of this machine.
    pub fn mount(mut self, folder: &Path, inside: &str) -> Self {
        self.mounts.push((folder.to_owned(), inside.to_owned()));
        self
    }

    /// Runs a command to its end.
    pub fn output(&self, command: &[&str]) -> Result<Output, ContainerError> {
        self.start(command)?.wait()
    }

    /// Starts a command.
    pub fn start(&self, command: &[&str]) -> Result<Running, ContainerError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("numakit-{}-{number}", std::process::id());
        let bundle = std::env::temp_dir().join(&name);
        self.root_folder(&bundle.join("rootfs"))?;
        let config = self.config(command)?;
        let file = bundle.join("config.json");
        fs::write(&file, config.to_string()).map_err(on("write", &file))?;
        let mut runc = Command::new("runc");
        runc.arg("run").arg("-b").arg(&bundle).arg(&name);
        runc.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = runc.spawn().map_err(on("start runc in", &bundle))?;
        Ok(Running { name, bundle, child })
    }

    fn root_folder(&self, root: &Path) -> Result<(), ContainerError> {
        let make = |path: &Path| fs::create_dir_all(path).map_err(on("make", path));
        for folder in
            ["usr", "proc", "sys", "dev", "tmp", "run", "var/cache", "home", "root", "etc", "opt/numa"]
        {
            make(&root.join(folder))?;
        }
        let all = fs::Permissions::from_mode(0o1777);
        let tmp = root.join("tmp");
        fs::set_permissions(&tmp, all).map_err(on("open", &tmp))?;
        for folder in ["bin", "sbin", "lib", "lib64"] {
            let link = root.join(folder);
            symlink(Path::new("usr").join(folder), &link).map_err(on("link", &link))?;
        }
        for name in ["passwd", "group", "ld.so.cache"] {
            let (from, to) = (Path::new("/etc").join(name), root.join("etc").join(name));
            fs::copy(&from, &to).map_err(on("copy", &from))?;
        }
        for (path, text) in &self.files {
            let file = root.join(path.trim_start_matches('/'));
            make(file.parent().unwrap_or(root))?;
            fs::write(&file, text).map_err(on("write", &file))?;
        }
        for (_, inside) in &self.mounts {
            make(&root.join(inside.trim_start_matches('/')))?;
        }
        Ok(())
    }

    fn config(&self, command: &[&str]) -> Result<Value, ContainerError> {
        let of_root = self.user == 0;
        let capabilities = match of_root {
            true => {
                json!({"bounding": self.capabilities, "permitted": self.capabilities, "effective": self.capabilities})
            }
            false => json!({"bounding": self.capabilities}),
        };
        let namespaces = ["pid", "ipc", "uts", "mount", "network"].map(|kind| json!({"type": kind}));
        let mut linux = json!({
            "namespaces": namespaces,
            "resources": {},
            "maskedPaths": MASKED,
            "readonlyPaths": READ_ONLY,
        });
        let file = Path::new("the seccomp profile");
        if let Some(filter) = self.profile.seccomp(&self.capabilities).map_err(on("read", file))? {
            linux["seccomp"] = filter;
        }
        let path = [format!("PATH={NUMA}:/usr/sbin:/usr/bin")];
        Ok(json!({
            "ociVersion": "1.0.2",
            "process": {
                "terminal": false,
                "user": {"uid": self.user, "gid": self.user},
                "args": command,
                "env": path,
                "cwd": "/",
                "noNewPrivileges": true,
                "capabilities": capabilities,
            },
            "root": {"path": "rootfs", "readonly": self.read_only},
            "hostname": "numakit",
            "mounts": self.mounts()?,
            "linux": linux,
        }))
    }

    fn mounts(&self) -> Result<Vec<Value>, ContainerError> {
        let mount = |inside: &str, kind: &str, options: &[&str]| json!({"destination": inside, "type": kind, "source": kind, "options": options});
        let bind = |from: &Path, inside: &str, mode: &str| json!({"destination": inside, "type": "bind", "source": from, "options": ["rbind", mode]});
        let numa = numakit_guest::programs::numa()?;
        let mut mounts = vec![
            mount("/proc", "proc", &[]),
            mount("/dev", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
            mount("/dev/shm", "tmpfs", &["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]),
            mount("/sys", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
            bind(Path::new("/usr"), "/usr", "ro"),
            bind(numa.parent().unwrap_or(&numa), NUMA, "ro"),
        ];
        mounts.extend(self.mounts.iter().map(|(from, inside)| bind(from, inside, "rw")));
        Ok(mounts)
    }
}

/// Within this time everything that is waited for has happened.
const PATIENCE: Duration = Duration::from_secs(600);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// A container that runs. When this is dropped, it is killed, and its bundle goes with it.
#[derive(Debug)]
pub struct Running {
    name: String,
    bundle: PathBuf,
    /// runc, with the streams of the command.
    pub child: Child,
}

impl Running {
    /// Sends a signal to the first process inside, as `docker kill` does.
    pub fn signal(&self, name: &str) -> Result<(), ContainerError> {
        let mut runc = Command::new("runc");
        runc.args(["kill", &self.name, name]);
        let output = runc.output().map_err(on("start runc for", &self.bundle))?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                Err(on("signal the container of", &self.bundle)(io::Error::other(error)))
            }
        }
    }

    /// Kills everything inside, once it runs.
    pub fn kill(mut self) -> Result<(), ContainerError> {
        let late = Instant::now() + PATIENCE;
        while let Err(error) = self.signal("KILL") {
            if Instant::now() >= late {
                return Err(error);
            }
            std::thread::sleep(PAUSE);
        }
        self.ended().map(drop)
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Result<Output, ContainerError> {
        let (stdout, stderr) = (all_of(self.child.stdout.take()), all_of(self.child.stderr.take()));
        let status = self.ended()?;
        Ok(Output {
            status,
            stdout: stdout.join().unwrap_or_default(),
            stderr: stderr.join().unwrap_or_default(),
        })
    }

    fn ended(&mut self) -> Result<ExitStatus, ContainerError> {
        let late = Instant::now() + PATIENCE;
        loop {
            let failed = on("wait for the container of", &self.bundle);
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if Instant::now() >= late => return Err(failed(io::ErrorKind::TimedOut.into())),
                Ok(None) => std::thread::sleep(PAUSE),
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = Command::new("runc").args(["delete", "--force", &self.name]).output();
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        let _ = fs::remove_dir_all(&self.bundle);
    }
}

/// Reads a stream of a child while it runs.
fn all_of(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut all);
        }
        all
    })
}

fn on(what: &str, path: &Path) -> impl FnOnce(io::Error) -> ContainerError {
    let what = format!("cannot {what} {}", path.display());
    move |source| ContainerError::System { what, source }
}
