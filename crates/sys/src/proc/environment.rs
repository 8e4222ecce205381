//! `environ`: the initial environment of a program.

use std::borrow::Cow;

/// Variables in which launchers give a process its rank.
pub const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"];

/// `NAME=value`, each ended by a zero byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables(Vec<u8>);

impl Variables {
    /// Variables in these bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in order; a word without `=` is skipped.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        self.0.split(|&byte| byte == 0).filter_map(|word| {
            let equals = word.iter().position(|&byte| byte == b'=')?;
            Some((String::from_utf8_lossy(&word[..equals]), String::from_utf8_lossy(&word[equals + 1..])))
        })
    }

    /// The value of the first variable of this name.
    pub fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        self.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The rank that a launcher gave the process.
    pub fn rank(&self) -> Option<u32> {
        RANKS.iter().find_map(|name| self.get(name))?.parse().ok()
    }

    /// The schedule of loops of OpenMP with schedule(runtime), if `OMP_SCHEDULE` says one of these.
    pub fn loop_schedule(&self) -> Option<LoopSchedule> {
        LoopSchedule::parse(&self.get("OMP_SCHEDULE")?)
    }
}

/// Schedules of OpenMP by which threads may have unequal work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopSchedule {
    /// A fixed order, in which no thread takes iterations of another.
    Fixed,
    /// The first chunks are large.
    Guided,
}

impl LoopSchedule {
    /// The schedule of a value of `OMP_SCHEDULE`; `None` for others.
    pub fn parse(value: &str) -> Option<Self> {
        let value = value.trim().to_ascii_lowercase();
        let is_fixed = ["static", "auto", "monotonic"].iter().any(|start| value.starts_with(start));
        let is_guided = value.trim_start_matches("nonmonotonic:").starts_with("guided");
        if is_fixed { Some(Self::Fixed) } else { is_guided.then_some(Self::Guided) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_end_at_zeros_and_names_at_the_first_equals_sign() {
        let variables = Variables::new(b"A=1\0B=x=y\0nothing\0A=2\0=\0C=\xff\0".to_vec());
        assert_eq!(variables.iter().count(), 5);
        assert_eq!((variables.get("A").as_deref(), variables.get("B").as_deref()), (Some("1"), Some("x=y")));
        assert_eq!((variables.get("C").as_deref(), variables.get("nothing")), (Some("\u{fffd}"), None));
        assert!(Variables::default().is_empty() && Variables::default().get("").is_none());
    }

    #[test]
    fn a_schedule_is_fixed_or_guided_or_hands_out_iterations() {
        let of =
            |value: &str| Variables::new(format!("A=1\0OMP_SCHEDULE={value}\0").into_bytes()).loop_schedule();
        for fixed in ["static", " Static,4", "auto", "monotonic:dynamic"] {
            assert_eq!(of(fixed), Some(LoopSchedule::Fixed), "{fixed}");
        }
        assert_eq!([of("guided"), of("nonmonotonic:guided,3")], [Some(LoopSchedule::Guided); 2]);
        assert_eq!([of("dynamic,4"), of(""), Variables::default().loop_schedule()], [None; 3]);
    }

    #[test]
    fn the_launcher_of_the_rank_itself_comes_first() {
        let rank = |text: &str| Variables::new(text.as_bytes().to_vec()).rank();
        assert_eq!(rank("SLURM_PROCID=0\0PMI_RANK=3\0"), Some(3), "mpiexec within a job of Slurm");
        assert_eq!(rank("OMPI_COMM_WORLD_RANK=12\0"), Some(12));
        assert_eq!((rank("PMI_RANK=x\0"), rank("HOME=/\0")), (None, None));
    }
}
