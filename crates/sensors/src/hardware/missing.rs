//! Why events of the tables are unavailable, and the fixes.

use super::names;
use crate::events::{EventTable, FieldsError, HW_CACHE, Identity, Section, Spread};
use crate::glob::Pattern;
use crate::pmu::{DEVICES, EncodeError, privilege};
use crate::sensor::Absent;
use numakit_model::{Fix, Unavailable};

/// Sections whose PMUs the machine lacks.
pub struct MissingPmus<'a> {
    /// The sections and their tables.
    pub sections: Vec<(&'a EventTable, &'a Section)>,
    /// Names of PMUs that cannot be parsed.
    pub unusable: Vec<(String, Unavailable)>,
    cpu: String,
    pmus: Vec<String>,
    seen: String,
    virtual_machine: bool,
}

impl<'a> MissingPmus<'a> {
    /// An empty list, for a machine with these PMUs.
    pub fn new(identity: &Identity, pmus: &[String]) -> Self {
        let seen = match pmus.is_empty() {
            true => format!("{DEVICES} has no PMU"),
            false => format!("seen {}", names::ranges(pmus)),
        };
        Self {
            sections: Vec::new(),
            unusable: Vec::new(),
            cpu: identity.to_string(),
            pmus: pmus.to_vec(),
            seen,
            virtual_machine: identity.has("hypervisor"),
        }
    }

    /// Why a section has no events.
    pub fn why(&self, section: &Section) -> Unavailable {
        if let Some((_, why)) = self.unusable.iter().find(|(pmu, _)| section.is_for(pmu)) {
            return why.clone();
        }
        let pmus = names::several(&section.pmus);
        let missing = format!("counts of {pmus}");
        Unavailable::new(missing, format!("no PMU {pmus}; {}", self.seen), self.fix(section))
    }

    fn fix(&self, section: &Section) -> Fix {
        let of_cores = section.spread == Spread::Cpu || section.pmus.iter().any(|p| p == HW_CACHE);
        match (self.virtual_machine, of_cores) {
            (true, true) => return privilege::other_core_pmu(),
            (true, false) => {
                return Fix::OtherMachine("bare metal: virtual machines do not have these PMUs".to_owned());
            }
            (false, true) => return privilege::other_kernel(),
            (false, false) => {}
        }
        let first = section.pmus.first().map_or("", String::as_str);
        match DRIVERS.iter().find(|(start, ..)| first.starts_with(start)) {
            Some((_, "", option)) => Fix::BuildOption((*option).to_owned()),
            // If the driver is loaded and the PMU is missing, the machine does not have it.
            Some((start, module, option)) if !self.has(start) => {
                Fix::Driver { module: (*module).to_owned(), option: (*option).to_owned() }
            }
            _ => Fix::OtherKernel("that knows it, if this machine has such a part".to_owned()),
        }
    }

    /// Whether the machine has a PMU whose name starts with this.
    fn has(&self, start: &str) -> bool {
        let pattern = Pattern::new(&format!("{start}*"));
        self.pmus.iter().any(|pmu| pattern.fits(pmu))
    }

    /// Why there are no events at all; `first` is the first absent metric.
    pub fn nothing(&self, first: Option<&Absent>) -> Unavailable {
        let Some((_, section)) = self.sections.first() else {
            return match first {
                Some(absent) => absent.why.clone(),
                None => Unavailable::new(
                    "hardware counters",
                    format!("no table of events for {}; {}", self.cpu, self.seen),
                    Fix::OtherMachine(
                        "a processor that numakit has a table for: docs/guide/counters.md".to_owned(),
                    ),
                ),
            };
        };
        let lacks = |a: &&Absent| self.sections.iter().any(|(_, section)| self.why(section) == a.why);
        if let Some(absent) = first.filter(|a| !lacks(a) || !self.unusable.is_empty()) {
            return absent.why.clone();
        }
        let mut platforms: Vec<&str> =
            self.sections.iter().map(|(table, _)| table.platform.as_str()).collect();
        platforms.dedup();
        let mut pmus: Vec<&str> =
            self.sections.iter().flat_map(|(_, s)| s.pmus.iter().map(String::as_str)).collect();
        pmus.sort_unstable();
        pmus.dedup();
        Unavailable::new(
            format!("hardware counters of {}", platforms.join(", ")),
            format!("no PMU {}; {}", pmus.join(", ").replace("[0-9]*", "*"), self.seen),
            self.fix(section),
        )
    }
}

/// Prefix of PMU names, their module (empty: none), and the kernel option.
const DRIVERS: [(&str, &str, &str); 12] = [
    ("uncore_", "intel_uncore", "CONFIG_PERF_EVENTS_INTEL_UNCORE"),
    ("amd_", "amd_uncore", "CONFIG_PERF_EVENTS_AMD_UNCORE"),
    ("arm_cmn", "arm-cmn", "CONFIG_ARM_CMN"),
    ("arm_dmc620", "arm_dmc620_pmu", "CONFIG_ARM_DMC620_PMU"),
    ("ampere_mcu", "ampere_cspmu", "CONFIG_AMPERE_CORESIGHT_PMU_ARCH_SYSTEM"),
    ("nvidia_", "nvidia_cspmu", "CONFIG_NVIDIA_CORESIGHT_PMU_ARCH_SYSTEM_PMU"),
    ("hisi_sccl*_hha", "hisi_uncore_hha_pmu", "CONFIG_HISI_PMU"),
    ("hisi_sccl*_ddrc", "hisi_uncore_ddrc_pmu", "CONFIG_HISI_PMU"),
    ("hisi_sccl*_l3c", "hisi_uncore_l3c_pmu", "CONFIG_HISI_PMU"),
    ("hisi_", "hisi_uncore_pa_pmu", "CONFIG_HISI_PMU"),
    ("cxl_pmu", "cxl_pmu", "CONFIG_CXL_PMU"),
    ("hv_24x7", "", "CONFIG_HV_PERF_CTRS, in a partition that may see performance data"),
];

/// The kernel has no event of this name.
pub fn unnamed(missing: String, error: &FieldsError) -> Unavailable {
    let fix = Fix::OtherKernel("that names it, if this machine has it".to_owned());
    Unavailable::new(missing, error.to_string(), fix)
}

/// The PMU has no such fields.
pub fn no_room(missing: String, error: &EncodeError) -> Unavailable {
    let fix = Fix::OtherKernel("whose driver has these fields".to_owned());
    Unavailable::new(missing, error.to_string(), fix)
}
