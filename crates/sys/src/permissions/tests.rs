use super::*;
use crate::root::FileTree;

fn refused(permission: Permission, errno: i32) -> impl Fn(Permission) -> io::Result<()> {
    move |tried| match tried == permission {
        true => Err(io::Error::from_raw_os_error(errno)),
        false => Ok(()),
    }
}

/// What a machine of these files refuses where one call fails with this errno.
fn refusal(files: &[(&str, &str)], permission: Permission, errno: i32) -> Option<Refusal> {
    let mut tree = FileTree::new();
    for (path, text) in files {
        tree.file(path, *text);
    }
    let root = SysRoot::of_tree(tree);
    let surroundings = Surroundings::of(&root, |_| None);
    let all = Permissions::with(&root, surroundings, &Permission::ALL, refused(permission, errno));
    all.check(permission).err().cloned()
}

const FILTER: (&str, &str) = ("/proc/self/status", "Uid:\t0\t0\t0\t0\nSeccomp:\t2\n");
const NO_FILTER: (&str, &str) = ("/proc/self/status", "Uid:\t7\t7\t7\t7\nSeccomp:\t0\n");
const NODES: (&str, &str) = ("/sys/devices/system/node/online", "0\n");
const DOCKER: (&str, &str) = ("/.dockerenv", "");

#[test]
fn what_refuses_a_call_is_found_out() {
    let policies = |files: &[(&str, &str)], errno| refusal(files, Permission::Policies, errno);
    assert_eq!(policies(&[FILTER, NODES], libc::EPERM).unwrap().refuser, Refuser::Filter);
    // A filter may answer as a kernel without the call does.
    assert_eq!(policies(&[FILTER, NODES], libc::ENOSYS).unwrap().refuser, Refuser::Filter);
    assert_eq!(policies(&[FILTER], libc::ENOSYS).unwrap().refuser, Refuser::Kernel("CONFIG_NUMA"));
    assert_eq!(policies(&[NO_FILTER, NODES], libc::EPERM).unwrap().refuser, Refuser::Unknown);
    // The kernel looked at what it was asked with: the call is permitted.
    assert_eq!(policies(&[FILTER, NODES], libc::EINVAL), None);
    let nice = ("/proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000800000\n");
    assert_eq!(refusal(&[nice], Permission::RealTime, libc::EPERM).unwrap().refuser, Refuser::NoBudget);
    let limited = Refuser::Limit { limit: "RLIMIT_RTPRIO", capability: "CAP_SYS_NICE" };
    assert_eq!(refusal(&[FILTER], Permission::RealTime, libc::EPERM).unwrap().refuser, limited);
    let level = ("/proc/sys/kernel/perf_event_paranoid", "3\n");
    let counters = |files: &[(&str, &str)], errno| refusal(files, Permission::Counters, errno).unwrap();
    assert_eq!(counters(&[NO_FILTER, level], libc::EACCES).refuser, Refuser::Paranoid(3));
    assert_eq!(counters(&[FILTER, level], libc::EPERM).refuser, Refuser::Filter);
    assert_eq!(counters(&[NO_FILTER], libc::ENOSYS).refuser, Refuser::Kernel("CONFIG_PERF_EVENTS"));
}

#[test]
fn what_permits_it_depends_on_the_surroundings() {
    let fix = |place: (&str, &str), permission| {
        refusal(&[FILTER, NODES, place], permission, libc::EPERM).unwrap().fix.to_string()
    };
    assert_eq!(fix(DOCKER, Permission::Policies), "docker run --cap-add SYS_NICE ...");
    assert_eq!(fix(DOCKER, Permission::Counters), "docker run --cap-add PERFMON ...");
    assert!(fix(DOCKER, Permission::MovePages).contains("seccomp=PROFILE.json"));
    let pod = ("/var/run/secrets/kubernetes.io/namespace", "default");
    assert!(
        fix(pod, Permission::Policies).ends_with("securityContext: {capabilities: {add: [\"SYS_NICE\"]}}")
    );
    let containers = [DOCKER, pod, ("/run/.containerenv", ""), ("/proc/1/environ", "container=lxc\0")];
    for place in containers {
        for permission in Permission::ALL {
            let fix = fix(place, permission);
            assert!(!fix.contains("sudo") && !fix.contains("sysctl"), "{place:?} {permission:?}: {fix}");
        }
    }
}

#[test]
fn commands_of_the_administrator_have_sudo_where_there_is_one() {
    let level = ("/proc/sys/kernel/perf_event_paranoid", "3\n");
    let with = |permission, errno, status, has_sudo: bool| {
        let mut tree = FileTree::new();
        tree.file("/proc/self/status", status).file(level.0, level.1);
        if has_sudo {
            tree.file("/usr/bin/sudo", "");
        }
        let root = SysRoot::of_tree(tree);
        let surroundings =
            Surroundings::of(&root, |name| (name == "PATH").then(|| "/bin:/usr/bin".to_owned()));
        let surroundings =
            Surroundings { program: "/usr/bin/numa".into(), user: "me".into(), ..surroundings };
        let all = Permissions::with(&root, surroundings, &Permission::ALL, refused(permission, errno));
        all.refusals[0].fix.to_string()
    };
    let command = "sysctl kernel.perf_event_paranoid=2";
    let counters = |status, has_sudo| with(Permission::Counters, libc::EACCES, status, has_sudo);
    assert_eq!(counters("Uid:\t7\t7\t7\t7\n", true), format!("sudo {command}"));
    assert_eq!(counters("Uid:\t7\t7\t7\t7\n", false), format!("as root: {command}"));
    assert_eq!(counters("Uid:\t0\t0\t0\t0\n", true), command);
    let realtime = with(Permission::RealTime, libc::EPERM, "Uid:\t7\t7\t7\t7\n", true);
    assert!(realtime.starts_with("sudo setcap cap_sys_nice=ep /usr/bin/numa; or"), "{realtime}");
    assert!(realtime.contains("'me - rtprio 1'"), "{realtime}");
}

#[test]
fn the_runtime_is_recognised() {
    let runtime = |files: &[(&str, &str)], variables: &[(&str, &str)]| {
        let mut tree = FileTree::new();
        for (path, text) in files {
            tree.file(path, *text);
        }
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Surroundings::of(&SysRoot::of_tree(tree), variable).runtime
    };
    assert_eq!(runtime(&[], &[]), Runtime::Host);
    assert_eq!(runtime(&[DOCKER], &[]), Runtime::Docker);
    // A virtual machine that was made of an image.
    let machine = [("pid", 0xEFFF_FFFC_u64), ("ipc", 0xEFFF_FFFF), ("uts", 0xEFFF_FFFE)];
    let with = |namespaces: [(&str, u64); 3]| {
        let mut tree = FileTree::new();
        tree.file(DOCKER.0, "");
        for (kind, number) in namespaces {
            tree.symlink(&format!("/proc/self/ns/{kind}"), &format!("{kind}:[{number}]"));
        }
        Surroundings::of(&SysRoot::of_tree(tree), |_| None).runtime
    };
    assert_eq!(with(machine), Runtime::Host);
    assert_eq!(with([machine[0], machine[1], ("uts", 7)]), Runtime::Docker);
    assert_eq!(runtime(&[DOCKER], &[("KUBERNETES_SERVICE_HOST", "10.0.0.1")]), Runtime::Kubernetes);
    assert_eq!(runtime(&[("/run/.containerenv", "")], &[]), Runtime::Podman);
    assert_eq!(runtime(&[], &[("APPTAINER_CONTAINER", "/x.sif")]), Runtime::Apptainer);
    assert_eq!(runtime(&[("/proc/1/environ", "container=lxc\0")], &[]), Runtime::Lxc);
    assert_eq!(runtime(&[("/run/systemd/container", "systemd-nspawn\n")], &[]), Runtime::Nspawn);
    assert_eq!(runtime(&[], &[("container", "oci")]), Runtime::Other);
    let group = |path: &'static str| vec![("/proc/self/cgroup", path)];
    assert_eq!(
        runtime(&group("0::/kubepods.slice/kubepods-pod1.slice/cri-2.scope\n"), &[]),
        Runtime::Kubernetes
    );
    assert_eq!(runtime(&group("4:cpuset:/docker/12ab\n"), &[]), Runtime::Docker);
    assert_eq!(runtime(&group("0::/system.slice/docker-12ab.scope\n"), &[]), Runtime::Docker);
    let service = group("0::/system.slice/db.service\n");
    assert_eq!(runtime(&service, &[("INVOCATION_ID", "1")]), Runtime::SystemdUnit("db.service".to_owned()));
    assert_eq!(runtime(&service, &[]), Runtime::Host);
}

#[test]
fn this_process_may_set_its_affinity() {
    assert!(Permissions::own().check(Permission::Affinity).is_ok());
}

#[test]
fn the_number_of_a_container_is_that_of_its_mounts() {
    let id = "0123456789abcdef".repeat(4);
    let of = |source: &str| {
        let mut tree = FileTree::new();
        tree.file(
            "/proc/self/mountinfo",
            format!("22 27 0:21 / /proc rw - proc proc rw\n9 1 8:1 {source} /etc/hostname rw - ext4 x rw\n"),
        );
        Surroundings::of(&SysRoot::of_tree(tree), |_| None).container
    };
    assert_eq!(of(&format!("/var/lib/docker/containers/{id}/hostname")), Some(id.clone()));
    assert_eq!(of(&format!("/run/containers/storage/overlay-containers/{id}/userdata/hostname")), Some(id));
    assert_eq!((of("/srv/containers/web/hostname"), of("/etc/hostname")), (None, None));
}
