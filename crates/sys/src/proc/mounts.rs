//! `mounts` of a process: lines of `SOURCE PATH SYSTEM OPTIONS 0 0`.

/// A mounted file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MountLine<'a> {
    /// Where it is mounted; blanks are written as `\\040`.
    pub path: &'a str,
    /// The kind of file system, such as `cgroup2`.
    pub system: &'a str,
    options: &'a str,
}

impl MountLine<'_> {
    /// Whether it is mounted with this option.
    pub fn has(&self, option: &str) -> bool {
        self.options.split(',').any(|known| known == option)
    }
}

/// The mounts in a text; malformed lines are skipped.
pub fn lines(text: &str) -> impl Iterator<Item = MountLine<'_>> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        Some(MountLine { path: words.next()?, system: words.next()?, options: words.next()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_path_a_system_and_options() {
        let text = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\nshort line\n\n";
        let found: Vec<_> = lines(text).collect();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path, found[0].system), ("/sys/fs/cgroup/cpu", "cgroup"));
        assert_eq!((found[0].has("cpu"), found[0].has("cpus")), (true, false));
    }
}
