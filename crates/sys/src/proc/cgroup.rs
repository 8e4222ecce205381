//! `cgroup` of a process: lines of `NUMBER:CONTROLLERS:PATH`, one for each hierarchy.

use super::mounts;

/// A hierarchy, and the group in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupLine<'a> {
    controllers: &'a str,
    /// The hierarchy of cgroup v2.
    pub is_unified: bool,
    /// The path of the group from the root of its hierarchy.
    pub path: &'a str,
}

impl GroupLine<'_> {
    /// Whether the hierarchy is that of a controller of cgroup v1.
    pub fn has(&self, controller: &str) -> bool {
        self.controllers.split(',').any(|known| known == controller)
    }
}

/// The hierarchies in a text; malformed lines are skipped.
pub fn lines(text: &str) -> impl Iterator<Item = GroupLine<'_>> {
    text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        Some(GroupLine { controllers, is_unified: number == "0" && controllers.is_empty(), path })
    })
}

/// The folder of a control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupFolder {
    /// Its path.
    pub path: String,
    /// Whether it is one of cgroup v2.
    pub is_unified: bool,
}

/// The folders of the groups of a process in the mounted hierarchies of cgroup v2 and of these controllers of v1. For each,
/// the folder of the group itself comes first, then those of the groups above it. `groups` is the process's list of groups,
/// `mounted` its list of mounts; `exists` says whether a file is there.
pub fn folders(
    groups: &str,
    mounted: &str,
    controllers: &[&str],
    mut exists: impl FnMut(&str) -> bool,
) -> Vec<GroupFolder> {
    let mut folders = Vec::new();
    for mount in mounts::lines(mounted) {
        let is_unified = mount.system == "cgroup2";
        let is_of = |controller| mount.system == "cgroup" && mount.has(controller);
        let group = lines(groups).find(|group| match is_unified {
            true => group.is_unified,
            false => controllers.iter().any(|name| is_of(name) && group.has(name)),
        });
        let Some(group) = group else { continue };
        // In a control group namespace, the mount shows the process's own group, while the path is that of the host.
        let is_there = exists(&format!("{}{}/cgroup.procs", mount.path, group.path));
        let mut path = if is_there { group.path.trim_end_matches('/') } else { "" };
        loop {
            folders.push(GroupFolder { path: format!("{}{path}", mount.path), is_unified });
            let Some(above) = path.rfind('/') else { break };
            path = &path[..above];
        }
    }
    folders
}

/// The path of the group of cgroup v2.
pub fn unified(text: &str) -> Option<&str> {
    lines(text).find(|line| line.is_unified).map(|line| line.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_go_upwards_from_the_own_group() {
        let mounted = "cgroup2 /cg cgroup2 rw 0 0\ncgroup /cg/cpu cgroup rw,cpu 0 0\ncgroup /cg/pids cgroup rw,pids 0 0\n";
        let groups = "4:cpu,cpuacct:/x/y\n5:pids:/x\n0::/a\n";
        let paths = |there: &'static str| -> Vec<(String, bool)> {
            let found = folders(groups, mounted, &["cpu"], |file| file.starts_with(there));
            found.into_iter().map(|folder| (folder.path, folder.is_unified)).collect()
        };
        let unified = [("/cg/a".to_owned(), true), ("/cg".to_owned(), true)];
        let cpu = ["/cg/cpu/x/y", "/cg/cpu/x", "/cg/cpu"].map(|path| (path.to_owned(), false));
        assert_eq!(paths("/cg"), [&unified[..], &cpu].concat());
        // The mount of a namespace is the own group.
        assert_eq!(paths("/cg/a"), [&unified[..], &cpu[2..]].concat());
    }

    #[test]
    fn groups_of_both_versions_are_distinguished() {
        let text = "5:cpuset,cpu:/x:y\n\n:bad\n1:name=systemd:/init\n0::/user.slice/a\n";
        let paths = |has: &dyn Fn(&GroupLine<'_>) -> bool| lines(text).find(has).map(|line| line.path);
        assert_eq!(paths(&|line| line.has("cpuset")), Some("/x:y"));
        assert_eq!(paths(&|line| line.has("cpu")), Some("/x:y"));
        assert_eq!(paths(&|line| line.has("systemd")), None);
        assert_eq!((unified(text), unified("5:cpuset:/x\n7::/y\n")), (Some("/user.slice/a"), None));
    }
}
