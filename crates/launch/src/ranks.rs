//! MPI ranks that a program starts on its cores.

use crate::Environment;
use numakit_placement::check::LOCAL_RANKS;
use std::ffi::OsString;

/// The variables for the default binding of Open MPI until version 4, and since version 5. Options of `mpirun` override
/// both; without the modifier in the second one, rank files would not bind.
const OPEN_MPI: [(&str, &str); 2] = [
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("PRTE_MCA_hwloc_default_binding_policy", "none:overload-allowed"),
];
/// Intel MPI's switch, and the variables of users who want ranks to be bound.
const INTEL_MPI: &str = "I_MPI_PIN";
const INTEL_MPI_BINDS: [&str; 2] = ["I_MPI_PIN_DOMAIN", "I_MPI_PIN_PROCESSOR_LIST"];
/// MPICH binds ranks only if this is set.
const MPICH: &str = "HYDRA_BINDING";

/// Makes the library divide the cores among ranks, and keeps MPI libraries from binding ranks by default. Does
/// nothing if this process is a rank itself.
pub fn divide(words: &[OsString], environment: &mut Environment) {
    if LOCAL_RANKS.iter().any(|(rank, _)| environment.get(rank).is_some()) {
        return;
    }
    environment.set("NUMA_RANKS", "1");
    if !words.iter().any(asks_for_cpus) {
        OPEN_MPI.iter().for_each(|(name, value)| environment.set_default(name, *value));
    }
    if INTEL_MPI_BINDS.iter().all(|name| environment.get(name).is_none()) {
        environment.set_default(INTEL_MPI, "0");
    }
    INTEL_MPI_BINDS.iter().chain([&MPICH]).for_each(|name| environment.report_kept(name));
}

/// `--map-by slot:PE=2`, `--map-by pe-list=0,1`: then Open MPI binds, and 5 does not start with another default.
fn asks_for_cpus(word: &OsString) -> bool {
    let word = word.to_string_lossy().to_ascii_lowercase();
    word.contains("pe=") || word.contains("pe-list=")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(words: &[&str], before: &[(&str, &str)]) -> Vec<String> {
        let before = before.iter().map(|(name, value)| (name.into(), value.into()));
        let mut environment = Environment::of(before);
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        divide(&words, &mut environment);
        environment.changes().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn ranks_are_not_bound_by_default() {
        assert_eq!(
            changes(&["mpirun", "-np", "2", "./app"], &[]),
            [
                "set NUMA_RANKS=1",
                "set OMPI_MCA_hwloc_base_binding_policy=none",
                "set PRTE_MCA_hwloc_default_binding_policy=none:overload-allowed",
                "set I_MPI_PIN=0",
            ]
        );
    }

    #[test]
    fn bindings_of_the_user_are_kept() {
        let own = [
            ("OMPI_MCA_hwloc_base_binding_policy", "core"),
            ("I_MPI_PIN_DOMAIN", "omp"),
            ("HYDRA_BINDING", "numa"),
        ];
        assert_eq!(
            changes(&["mpirun", "./app"], &own),
            [
                "set NUMA_RANKS=1",
                "kept OMPI_MCA_hwloc_base_binding_policy=core: it was set before",
                "set PRTE_MCA_hwloc_default_binding_policy=none:overload-allowed",
                "kept I_MPI_PIN_DOMAIN=omp: it was set before",
                "kept HYDRA_BINDING=numa: it was set before",
            ]
        );
        for mapping in ["slot:PE=2", "pe-list=0,1:ordered"] {
            assert_eq!(
                changes(&["mpirun", "--map-by", mapping, "./app"], &[]),
                ["set NUMA_RANKS=1", "set I_MPI_PIN=0"]
            );
        }
    }

    #[test]
    fn a_rank_is_not_divided() {
        for (name, _) in LOCAL_RANKS {
            assert!(changes(&["app"], &[(name, "0")]).is_empty(), "{name}");
        }
    }
}
