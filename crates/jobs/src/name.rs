//! The name of a process's job.

use numakit_processes::{container_names, container_of_group};
use numakit_sys::SysRoot;
use numakit_sys::proc::cgroup::{self, GroupLine};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;

/// Bytes of a name.
pub const MAX_NAME: usize = 100;
/// Digits of a container's number where it has no name.
const DIGITS: usize = 12;
/// Containers whose names are kept.
const MAX_KEPT: usize = 10_000;

/// Names jobs.
#[derive(Debug)]
pub struct JobNames {
    /// Below this folder are the files of container runtimes.
    runtimes: Option<PathBuf>,
    containers: HashMap<String, String>,
}

impl JobNames {
    /// Those of a machine. The files of container runtimes are read on the machine itself only.
    pub fn of(root: &SysRoot) -> Self {
        Self { runtimes: root.is_host().then(|| PathBuf::from("/")), containers: HashMap::new() }
    }

    /// Forgets the names of containers, which may have new ones.
    pub fn forget(&mut self) {
        self.containers.clear();
    }

    /// The job of a process with these control groups (`/proc/PID/cgroup`) and this user.
    pub fn name(&mut self, groups: &str, user: &str) -> String {
        let lines: Vec<GroupLine<'_>> = cgroup::lines(groups).collect();
        let paths = || lines.iter().map(|line| line.path);
        let name = (paths().find_map(slurm).map(|job| format!("slurm/{job}")))
            .or_else(|| paths().find_map(container_of_group).map(|number| self.container(number)))
            .or_else(|| paths().find_map(pod).map(|pod| format!("pod/{pod}")))
            .or_else(|| paths().find_map(unit).map(|unit| format!("unit/{unit}")))
            .or_else(|| cgroup::unified(groups).and_then(own_group).map(|path| format!("cgroup{path}")))
            .unwrap_or_else(|| format!("user/{user}"));
        cleaned(&name)
    }

    fn container(&mut self, number: &str) -> String {
        if let Some(name) = self.containers.get(number) {
            return name.clone();
        }
        let known = self.runtimes.as_ref().map(|below| container_names(below, number)).unwrap_or_default();
        let short = number.get(..DIGITS).unwrap_or(number);
        let name = format!("container/{}", known.first().map_or(short, String::as_str));
        if self.containers.len() >= MAX_KEPT {
            self.containers.clear();
        }
        self.containers.insert(number.to_owned(), name.clone());
        name
    }
}

/// The group that is all of a job, of which this one may be a part: a job of Slurm has a group for each step.
pub fn group_of_job(path: &str) -> &str {
    let named = slurm(path).or_else(|| container_of_group(path)).or_else(|| pod(path)).or_else(|| unit(path));
    let Some(named) = named else { return path };
    // The name is a part of the path.
    let end = (named.as_ptr() as usize).saturating_sub(path.as_ptr() as usize) + named.len();
    let rest = path.get(end..).unwrap_or_default();
    path.get(..end + rest.find('/').unwrap_or(rest.len())).unwrap_or(path)
}

/// `123` of `/slurm/uid_0/job_123/step_0` and of `/system.slice/slurmstepd.scope/job_123`.
fn slurm(path: &str) -> Option<&str> {
    let mut parts = path.split('/').skip_while(|part| !part.starts_with("slurm"));
    parts.next()?;
    let number = parts.find_map(|part| part.strip_prefix("job_"))?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(number)
}

/// The number of a pod outside of its containers.
fn pod(path: &str) -> Option<&str> {
    let part = path.split('/').rfind(|part| part.contains("pod") && !part.starts_with("kubepods."))?;
    let part = part.strip_suffix(".slice").unwrap_or(part);
    path.contains("kubepods").then(|| part.rsplit_once("pod").map(|(_, number)| number))?
}

/// The innermost service or scope, without those of sessions.
fn unit(path: &str) -> Option<&str> {
    let is_unit = |part: &&str| {
        let session = part.starts_with("session-") || part.starts_with("user@") || *part == "init.scope";
        (part.ends_with(".service") || part.ends_with(".scope")) && !session
    };
    path.split('/').rfind(is_unit)
}

/// A group of cgroup v2 that is neither the root nor one of systemd's slices and sessions.
fn own_group(path: &str) -> Option<&str> {
    let is_systemd =
        |part: &str| part.ends_with(".slice") || part.ends_with(".scope") || part.ends_with(".service");
    path.split('/').any(|part| !part.is_empty() && !is_systemd(part)).then_some(path)
}

/// Printable ASCII of limited length. What is cut differs by a number.
fn cleaned(name: &str) -> String {
    let mut clean: String =
        name.chars().map(|c| if c.is_ascii_graphic() { c } else { '?' }).take(4 * MAX_NAME).collect();
    if clean != name || clean.len() > MAX_NAME {
        let mut hash = DefaultHasher::new();
        name.hash(&mut hash);
        clean.truncate(MAX_NAME - 9);
        clean = format!("{clean}~{:08x}", hash.finish() as u32);
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(groups: &str) -> String {
        let root = SysRoot::of_tree(Default::default());
        JobNames::of(&root).name(groups, "anna")
    }

    #[test]
    fn every_kind_of_job_has_its_name() {
        let id = "0123456789abcdef".repeat(4);
        for (groups, expected) in [
            ("0::/slurm/uid_0/job_123/step_0/task_1\n", "slurm/123"),
            ("0::/system.slice/slurmstepd.scope/job_7/step_batch\n", "slurm/7"),
            ("0::/system.slice/docker-ID.scope\n", "container/0123456789ab"),
            ("4:memory:/docker/ID\n0::/\n", "container/0123456789ab"),
            ("0::/kubepods.slice/kubepods-pod1.slice/crio-ID.scope\n", "container/0123456789ab"),
            ("0::/kubepods.slice/kubepods-burstable-pod12_3.slice\n", "pod/12_3"),
            ("0::/kubepods/besteffort/pod12\n", "pod/12"),
            ("0::/system.slice/nginx.service\n", "unit/nginx.service"),
            ("1:name=systemd:/system.slice/cron.service\n0::/\n", "unit/cron.service"),
            ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope\n", "unit/app-x.scope"),
            ("0::/user.slice/user-1000.slice/session-3.scope\n", "user/anna"),
            ("0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", "user/anna"),
            ("0::/batch/a\n", "cgroup/batch/a"),
            ("0::/\n", "user/anna"),
            ("", "user/anna"),
            ("0::/slurm/job_x\n", "cgroup/slurm/job_x"),
        ] {
            assert_eq!(name(&groups.replace("ID", &id)), expected, "{groups}");
        }
    }

    #[test]
    fn a_job_has_one_group_for_all_its_parts() {
        let id = "0123456789abcdef".repeat(4);
        for (path, expected) in [
            (
                "/system.slice/slurmstepd.scope/job_7/step_batch/user/task_0",
                "/system.slice/slurmstepd.scope/job_7",
            ),
            ("/slurm/uid_0/job_123", "/slurm/uid_0/job_123"),
            ("/system.slice/docker-ID.scope/init.scope", "/system.slice/docker-ID.scope"),
            ("/docker/ID/a", "/docker/ID"),
            ("/kubepods.slice/kubepods-pod1.slice/x", "/kubepods.slice/kubepods-pod1.slice"),
            ("/system.slice/udev.service/udev", "/system.slice/udev.service"),
            ("/batch/a", "/batch/a"),
            ("/", "/"),
            ("", ""),
        ] {
            assert_eq!(group_of_job(&path.replace("ID", &id)), expected.replace("ID", &id));
        }
    }

    #[test]
    fn a_container_that_renames_itself_has_its_new_name_once_names_are_forgotten() {
        let id = "0123456789abcdef".repeat(4);
        let top = std::env::temp_dir().join(format!("numakit-job-names-{}", std::process::id()));
        let folder = top.join(format!("var/lib/docker/containers/{id}"));
        std::fs::create_dir_all(&folder).unwrap();
        let mut names = JobNames { runtimes: Some(top.clone()), containers: HashMap::new() };
        let mut named = |json: &str, forget: bool| {
            std::fs::write(folder.join("config.v2.json"), json).unwrap();
            if forget {
                names.forget();
            }
            names.name(&format!("0::/system.slice/docker-{id}.scope\n"), "anna")
        };
        assert_eq!(named(r#"{"Name":"/web"}"#, false), "container/web");
        assert_eq!(named(r#"{"Name":"/shop"}"#, false), "container/web");
        assert_eq!(named(r#"{"Name":"/shop"}"#, true), "container/shop");
        let odd = named(r#"{"Name":"/a\"b\nc"}"#, true);
        assert!(odd.starts_with("container/") && odd.bytes().all(|b| b.is_ascii_graphic()), "{odd}");
        std::fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn hostile_names_are_printable_bounded_and_stay_different() {
        let long = |end: &str| name(&format!("0::/{}{end}\n", "x".repeat(5000)));
        assert!(long("a").len() == MAX_NAME && long("a") != long("b"), "{}", long("a"));
        let odd = [name("0::/a\x1b[2J\n"), name("0::/a?[2J\n"), name("0::/ä\"\n")];
        assert!(odd.iter().all(|name| name.bytes().all(|b| b.is_ascii_graphic())), "{odd:?}");
        assert_ne!(odd[0], odd[1]);
    }
}
