//! `status` of a process or of a thread: lines of `Name:` and a value.

use numakit_model::CpuSet;

/// The text of the file. Fields are parsed when they are read.
#[derive(Debug, Clone, Default)]
pub struct TaskStatus(String);

impl TaskStatus {
    /// Status with this text.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The value of a field, trimmed.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.0, name)
    }

    /// Its user ids: real, effective, saved, and of the file system.
    pub fn users(&self) -> Vec<u32> {
        let ids = self.field("Uid").unwrap_or_default().split_ascii_whitespace();
        ids.map_while(|id| id.parse().ok()).collect()
    }

    /// Its effective user.
    pub fn user(&self) -> Option<u32> {
        self.users().get(1).copied()
    }

    /// Whether it has a capability, by its number.
    pub fn is_capable(&self, capability: u32) -> bool {
        self.has_bit("CapEff", capability)
    }

    /// Whether it handles a signal, by its number.
    pub fn catches(&self, signal: i32) -> bool {
        // The lowest bit is that of signal 1.
        u32::try_from(signal)
            .ok()
            .and_then(|signal| signal.checked_sub(1))
            .is_some_and(|bit| self.has_bit("SigCgt", bit))
    }

    /// Whether a field that is a set has a bit.
    fn has_bit(&self, field: &str, bit: u32) -> bool {
        let set = self.field(field).and_then(|hex| u64::from_str_radix(hex, 16).ok());
        set.and_then(|set| set.checked_shr(bit)).is_some_and(|set| set & 1 == 1)
    }

    /// Whether it has another number in a PID namespace of its own.
    pub fn is_in_namespace(&self) -> bool {
        self.field("NSpid").is_some_and(|numbers| numbers.split_ascii_whitespace().count() > 1)
    }

    /// Its number in its own PID namespace.
    pub fn inner_number(&self) -> Option<u32> {
        self.field("NSpid")?.split_ascii_whitespace().last()?.parse().ok()
    }

    /// The CPUs that it may run on.
    pub fn allowed_cpus(&self) -> Option<CpuSet> {
        CpuSet::parse_list(self.field("Cpus_allowed_list")?).ok()
    }

    /// The nodes on which it may allocate memory.
    pub fn allowed_nodes(&self) -> Option<CpuSet> {
        CpuSet::parse_list(self.field("Mems_allowed_list")?).ok()
    }

    /// A field of memory, in bytes.
    pub fn bytes(&self, name: &str) -> Option<u64> {
        let kib: u64 = self.field(name)?.strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kib.saturating_mul(1024))
    }
}

/// The value of a field in such a text.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = TaskStatus::new(
            "Name:\ta: b\nUid:\t1000\t0\t7\t8\nVmRSS:\t   12 kB\nVmRSSx:\t 9 kB\nCapEff:\t0000000000080000\nSigCgt:\t0000000000000004\nNSpid:\t4711\t7\n\
             Cpus_allowed:\tff\nCpus_allowed_list:\t0-3,8\nMems_allowed_list:\tx\n"
                .to_owned(),
        );
        assert_eq!((status.field("Name"), status.field("Nam")), (Some("a: b"), None));
        assert_eq!((status.users(), status.user()), (vec![1000, 0, 7, 8], Some(0)));
        assert!(status.is_capable(19) && !status.is_capable(18));
        assert!(status.catches(3) && !status.catches(2) && !status.catches(0) && !status.catches(99));
        assert!(status.inner_number() == Some(7) && status.is_in_namespace());
        assert_eq!(
            (status.bytes("VmRSS"), status.bytes("VmSize"), status.bytes("Name")),
            (Some(12288), None, None)
        );
        assert_eq!(status.allowed_cpus().unwrap().to_string(), "0-3,8");
        assert_eq!(status.allowed_nodes(), None);
        let none = TaskStatus::default();
        assert_eq!((none.users(), none.user(), none.is_capable(0)), (vec![], None, false));
    }
}
