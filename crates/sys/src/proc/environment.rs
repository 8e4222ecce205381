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
    fn the_launcher_of_the_rank_itself_comes_first() {
        let rank = |text: &str| Variables::new(text.as_bytes().to_vec()).rank();
        assert_eq!(rank("SLURM_PROCID=0\0PMI_RANK=3\0"), Some(3), "mpiexec within a job of Slurm");
        assert_eq!(rank("OMPI_COMM_WORLD_RANK=12\0"), Some(12));
        assert_eq!((rank("PMI_RANK=x\0"), rank("HOME=/\0")), (None, None));
    }
}
