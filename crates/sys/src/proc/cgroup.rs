//! `cgroup` of a process: lines of `NUMBER:CONTROLLERS:PATH`, one for each hierarchy.

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

/// The path of the group of cgroup v2.
pub fn unified(text: &str) -> Option<&str> {
    lines(text).find(|line| line.is_unified).map(|line| line.path)
}

#[cfg(test)]
mod tests {
    use super::*;

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
