use super::*;
use numakit_sys::root::FileTree;

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const OTHER: &str = "0123456fffffffff0123456789abcdef0123456789abcdef0123456789abcdef";

fn put(tree: &mut FileTree, pid: u32, name: &str, groups: &str) {
    let zeros = "0 ".repeat(20);
    tree.file(&format!("/proc/{pid}/stat"), format!("{pid} ({name}) S 1 {zeros}\n"));
    tree.file(&format!("/proc/{pid}/cgroup"), groups);
}

/// A machine with systemd, containers of two runtimes, cgroup v2 or the hierarchies of v1.
fn machine(is_unified: bool) -> SysRoot {
    let mut tree = FileTree::new();
    let groups = |path: &str| match is_unified {
        true => format!("0::{path}\n"),
        false => format!("12:memory:{path}\n3:cpu,cpuacct:/\n1:name=systemd:{path}\n0::/\n"),
    };
    let docker = format!("/system.slice/docker-{ID}.scope");
    let podman = format!("/machine.slice/libpod-{OTHER}.scope/container");
    let conmon = format!("/machine.slice/libpod-conmon-{OTHER}.scope");
    for (pid, name, path) in [
        (1, "systemd", "/init.scope"),
        (10, "nginx", "/system.slice/nginx.service"),
        (11, "nginx", "/system.slice/nginx.service"),
        (12, "nginx-exporter", "/system.slice/nginx-exporter.service"),
        (20, "postgres", "/system.slice/system-postgresql.slice/postgresql@15-main.service"),
        (30, "python3", docker.as_str()),
        (31, "python3", docker.as_str()),
        (40, "java", podman.as_str()),
        (41, "conmon", conmon.as_str()),
        (50, "numa", "/system.slice/nginx.service"),
        (60, "bash", "/user.slice/user-1000.slice/user@1000.service/app.slice/nginx.service"),
        (70, "a-long-name-of-", "/user.slice"),
    ] {
        put(&mut tree, pid, name, &groups(path));
    }
    tree.symlink("/proc/self", "50");
    tree.symlink("/proc/70/exe", "/opt/a-long-name-of-a-program");
    let (mount, system) =
        if is_unified { ("/sys/fs/cgroup", "cgroup2") } else { ("/sys/fs/cgroup/memory", "cgroup") };
    tree.file("/proc/50/mounts", format!("cg {mount} {system} rw,memory 0 0\n"));
    for (path, pids) in [("/a", "10\n11\n"), ("/a/b", "20\n50\n"), ("/empty", "")] {
        tree.file(&format!("{mount}{path}/cgroup.procs"), pids);
    }
    SysRoot::of_tree(tree)
}

fn found(root: &SysRoot, choice: ProcessChoice) -> Vec<u32> {
    ChosenProcesses::find(&choice, root).unwrap().numbers().to_vec()
}

fn error(root: &SysRoot, choice: ProcessChoice) -> String {
    ChosenProcesses::find(&choice, root).unwrap_err().to_string()
}

fn unit_of(name: &str) -> ProcessChoice {
    ProcessChoice::Unit(name.to_owned())
}

fn group_of(path: &str) -> ProcessChoice {
    ProcessChoice::ControlGroup(path.to_owned())
}

fn container_of(name: &str) -> ProcessChoice {
    ProcessChoice::Container(name.to_owned())
}

fn name_of(pattern: &str) -> ProcessChoice {
    ProcessChoice::Name(pattern.parse().unwrap())
}

#[test]
fn processes_are_found_by_what_they_belong_to_in_both_versions_of_control_groups() {
    for is_unified in [true, false] {
        let root = machine(is_unified);
        // This process is in the unit, but observes.
        assert_eq!(found(&root, unit_of("nginx")), [10, 11, 60]);
        assert_eq!(found(&root, unit_of("postgresql@15-main.service")), [20]);
        assert_eq!(found(&root, unit_of("user-1000.slice")), [60]);
        assert_eq!(found(&root, group_of("system.slice/nginx.service/")), [10, 11]);
        assert_eq!(found(&root, group_of("/user.slice")), [60, 70]);
        let folder = if is_unified { "/sys/fs/cgroup/a" } else { "/sys/fs/cgroup/memory/a" };
        assert_eq!(found(&root, group_of(folder)), [10, 11, 20]);
        assert_eq!(found(&root, container_of("01234567")), [30, 31]);
        assert_eq!(found(&root, container_of(&format!("docker://{ID}"))), [30, 31]);
        assert_eq!(found(&root, container_of("0123456f")), [40]);
        assert_eq!(found(&root, name_of("nginx")), [10, 11, 12]);
        assert_eq!(found(&root, name_of("^nginx$|java")), [10, 11, 40]);
        // The kernel has cut the name of this program.
        assert_eq!(found(&root, name_of("of-a-program$")), [70]);
        assert_eq!(found(&root, ProcessChoice::Numbers(vec![20, 10])), [20, 10]);
    }
}

#[test]
fn what_was_found_is_said() {
    let root = machine(true);
    let words = |choice| ChosenProcesses::find(&choice, &root).unwrap().to_string();
    assert_eq!(words(name_of("nginx")), "programs named 'nginx': nginx 10, 11, nginx-exporter 12");
    assert_eq!(
        words(unit_of("postgresql@15-main")),
        "unit postgresql@15-main.service (/system.slice/system-postgresql.slice/postgresql@15-main.service): postgres 20"
    );
    assert_eq!(words(container_of("0123456f")), "container 0123456fffff: java 40");
    assert_eq!(words(ProcessChoice::Numbers(vec![10, 20])), "processes 10, 20");
}

#[test]
fn what_is_not_there_has_an_error_with_its_fix() {
    let root = machine(true);
    for (choice, says) in [
        (
            ProcessChoice::Numbers(vec![10, 99]),
            "--pid 99: there is no such process; 'numa top --once' lists the processes",
        ),
        (
            unit_of("ngin"),
            "--unit ngin: no process is in a control group of a unit with that name; there are nginx.service",
        ),
        (
            group_of("/system.slice/ngin.service"),
            "--cgroup /system.slice/ngin.service: no process is in such a control group; there are \
             /system.slice/nginx.service",
        ),
        (
            group_of("/sys/fs/cgroup/empty"),
            "--cgroup /sys/fs/cgroup/empty: the control group has no processes; 'numa top --once' lists the processes",
        ),
        (
            group_of("/sys/fs/cgroup/emty"),
            "--cgroup /sys/fs/cgroup/emty: there is no such control group; there are /sys/fs/cgroup/empty",
        ),
        (
            container_of("012345"),
            "--container 012345: 2 containers have it: 0123456789ab, 0123456fffff; give more digits",
        ),
        (
            container_of("web"),
            "--container web: there is no container with processes that has this name or number; there are 0123456789ab, \
             0123456fffff; names need root",
        ),
        (name_of("ngimx"), "--name ngimx: no program that runs has a matching name; there are nginx"),
        (
            name_of("zzzzzzzzz"),
            "--name zzzzzzzzz: no program that runs has a matching name; 'numa top --once' lists the processes",
        ),
    ] {
        let error = error(&root, choice);
        assert!(error.starts_with(says), "{error}");
    }
    let bare = SysRoot::of_tree(FileTree::new());
    assert!(error(&bare, unit_of("nginx")).ends_with("give --cgroup, --name or --pid"));
    assert!(error(&bare, container_of("web")).ends_with("give --cgroup or --pid"));
}

#[test]
fn processes_that_come_and_go_are_seen_by_looks_whose_cost_is_bounded() {
    let root = machine(true);
    let mut chosen = ChosenProcesses::find(&unit_of("nginx"), &root).unwrap();
    assert!(chosen.may_grow());
    let at = |time: u64| move || time;
    assert_eq!(chosen.look(&root, &at(5)), Some(vec![10, 11, 60]));
    root.change(|tree| {
        tree.remove("/proc/10/stat");
        put(tree, 90, "nginx", "0::/system.slice/nginx.service\n");
    });
    assert_eq!(chosen.look(&root, &at(EACH)), None);
    assert_eq!(chosen.look(&root, &at(5 + EACH)), Some(vec![11, 60, 90]));
    // A look that takes 100 ms is followed by a long pause.
    let time = std::cell::Cell::new(10 * EACH);
    let slow = || time.replace(time.get() + EACH / 10);
    assert!(chosen.look(&root, &slow).is_some());
    assert_eq!(chosen.look(&root, &at(29 * EACH)), None);
    assert!(chosen.look(&root, &at(31 * EACH)).is_some());
    let numbers = ProcessChoice::Numbers(vec![11]);
    assert!(!ChosenProcesses::find(&numbers, &root).unwrap().may_grow());
}

#[test]
fn neither_numa_itself_nor_a_thread_of_the_kernel_is_observed() {
    let root = machine(true);
    let itself = error(&root, name_of("^numa$"));
    assert_eq!(
        itself,
        "--name ^numa$: only this numa itself has a matching name; 'numa top --once' lists the processes"
    );
    assert!(!error(&root, name_of("^numb$")).contains("there are numa"));
    root.change(|tree| {
        let zeros = "0 ".repeat(14);
        tree.file("/proc/2/stat", format!("2 (kthreadd) S 0 0 0 0 -1 2129984 {zeros}\n"));
    });
    let kernel = error(&root, ProcessChoice::Numbers(vec![10, 2]));
    assert!(kernel.starts_with("--pid 2: it is a thread of the kernel and runs no program; "), "{kernel}");
}

#[test]
fn containers_are_told_from_the_machine_and_from_the_own_one() {
    let contained = |own: u32, choice: ProcessChoice| {
        let mut tree = FileTree::new();
        let docker = format!("0::/system.slice/docker-{ID}.scope\n");
        for (pid, groups) in
            [(50, "0::/user.slice\n"), (30, docker.as_str()), (31, docker.as_str()), (32, "0::/a\n")]
        {
            put(&mut tree, pid, "app", groups);
            tree.symlink(&format!("/proc/{pid}/ns/pid"), if pid == 32 { "pid:[7]" } else { "pid:[1]" });
        }
        tree.symlink("/proc/self", &own.to_string());
        let root = SysRoot::of_tree(tree);
        ChosenProcesses::find(&choice, &root).unwrap().are_contained(&root)
    };
    let one = |pid| ProcessChoice::Numbers(vec![pid]);
    assert!(contained(50, one(30)) && contained(50, ProcessChoice::Container(ID.to_owned())));
    assert!(contained(50, one(32)), "it has numbers of its own");
    assert!(!contained(31, one(30)) && !contained(30, one(50)) && !contained(50, one(50)));
}
