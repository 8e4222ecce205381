//! /proc/cpuinfo.

use crate::SysRoot;

/// What the kernel says of the first CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processor {
    /// Its model; of AArch64 the numbers of implementer and part, where x86 has a name.
    pub name: String,
    /// Whether the CPU is that of a virtual machine. Only x86 says so.
    pub is_virtual: bool,
}

impl Processor {
    /// Reads /proc/cpuinfo. A value that the file does not have is empty.
    pub fn read(root: &SysRoot) -> Self {
        Self::parse(&root.text("/proc/cpuinfo").unwrap_or_default())
    }

    /// Parses the content of the file.
    pub fn parse(cpus: &str) -> Self {
        let field = |name: &str| {
            let line = cpus.lines().find(|line| line.split(':').next().is_some_and(|n| n.trim() == name))?;
            Some(line.split_once(':')?.1.trim())
        };
        let parts = || ["CPU implementer", "CPU part"].map(|name| field(name).unwrap_or_default()).join(" ");
        let flags = field("flags").unwrap_or_default();
        Self {
            name: field("model name").map_or_else(parts, str::to_owned),
            is_virtual: flags.split(' ').any(|flag| flag == "hypervisor"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_has_a_name_or_numbers() {
        let x86 =
            "processor\t: 0\nmodel name\t: Some  CPU\nflags\t\t: fpu hypervisor sse\n\nprocessor\t: 1\n";
        assert_eq!(Processor::parse(x86), Processor { name: "Some  CPU".to_owned(), is_virtual: true });
        let arm = "processor\t: 0\nFeatures\t: fp hypervisor\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n";
        assert_eq!(Processor::parse(arm), Processor { name: "0x41 0xd40".to_owned(), is_virtual: false });
        assert_eq!(Processor::parse("").name.trim(), "");
        assert_ne!(Processor::read(&SysRoot::host()).name.trim(), "");
    }
}
