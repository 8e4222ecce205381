//! Machines by name, from public documents: `EPYC 9755 x2`.
//!
//! Each is a file in `presets/`: lines of a key and a value.
//!
//! | key | value |
//! |---|---|
//! | `name` | the processor, the number of packages if there are several, and the firmware's setting |
//! | `also` | another name |
//! | `year` | when the processor came out |
//! | `source` | the public document that the facts are from; may be repeated |
//! | `machine` | a description, as of `--synthetic` |
//! | `nodes` | numbers of the nodes, if they are not 0, 1, 2 and so on |
//! | `cpus` | CPUs of a node with CPUs, in their order, where no numbering gives them |
//! | `memory` | number of a node and its memory, where nodes differ |
//! | `distance` | a row of the distances, in the order of the nodes |
//!
//! What no source states is left out, and absent in the machine.

mod names;
mod text;

use numakit_model::{Topology, suggest};
use thiserror::Error;

/// A machine that exists.
#[derive(Debug)]
pub struct Preset {
    /// By which `--machine` finds it.
    pub name: &'static str,
    /// Other names.
    pub also: Vec<&'static str>,
    /// When its processor came out.
    pub year: u16,
    /// The public documents that its facts are from.
    pub sources: Vec<&'static str>,
    /// What is known of it.
    pub topology: Topology,
}

/// A preset that cannot be read.
#[derive(Debug, Error)]
#[error("preset {file}: {problem}")]
pub struct PresetError {
    /// Its file.
    pub file: &'static str,
    /// What is wrong.
    pub problem: String,
}

/// Why there is no machine of a name.
#[derive(Debug, Error)]
pub enum NoMachine {
    /// No preset has it.
    #[error("there is no machine '{name}'; {}'numa topo --machine list' lists all", did_you_mean(.near))]
    Unknown {
        /// The name.
        name: String,
        /// Names of similar machines, nearest first.
        near: Vec<&'static str>,
    },
    /// Its file has a mistake.
    #[error(transparent)]
    Damaged(#[from] PresetError),
}

fn did_you_mean(near: &[&str]) -> String {
    match near {
        [] => String::new(),
        _ => format!("did you mean '{}'? ", near.join("', '")),
    }
}

/// All machines, in the order of vendors and years.
pub fn all() -> impl Iterator<Item = Result<Preset, PresetError>> {
    FILES.iter().map(|(file, text)| text::preset(file, text))
}

/// The machine of a name, without regard to case, spaces, vendors and families of processors: `2x AMD EPYC 9755
/// 128-Core Processor` is `EPYC 9755 x2`.
pub fn find(name: &str) -> Result<Preset, NoMachine> {
    let asked = names::pieces(name);
    let file = FILES.iter().find(|(_, text)| text::names(text).any(|known| names::pieces(known) == asked));
    match file {
        Some((file, text)) => Ok(text::preset(file, text)?),
        None => Err(NoMachine::Unknown { name: name.chars().take(100).collect(), near: near(name, &asked) }),
    }
}

/// Machines that share the most with the pieces of a name, or whose names look alike.
fn near(name: &str, asked: &[String]) -> Vec<&'static str> {
    const MAX: usize = 4;
    let known = || FILES.iter().filter_map(|(_, text)| text::names(text).next());
    let shared = |known: &str| {
        let pieces = names::pieces(known);
        // A number of packages alone says nothing.
        let has = |piece: &&String| !piece.starts_with('x') && asked.contains(piece);
        pieces.iter().filter(has).count()
    };
    let best = known().map(shared).max().unwrap_or(0);
    match best {
        0 => {
            // The name of a family alone, which all its machines begin with.
            let lower = name.trim().to_lowercase();
            let of_family: Vec<&str> = known()
                .filter(|known| !lower.is_empty() && known.to_lowercase().contains(&lower))
                .take(MAX)
                .collect();
            if of_family.is_empty() { suggest::nearest(&lower, known(), MAX) } else { of_family }
        }
        _ => known().filter(|known| shared(known) == best).take(MAX).collect(),
    }
}

macro_rules! files {
    ($($name:literal)*) => {
        /// Every preset with the name of its file.
        static FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../presets/", $name, ".txt")))),*];
    };
}

files! {
    "opteron-6276-x4" "opteron-6272-x2" "opteron-6380-x16-numaconnect" "x3755-x2-numaconnect"
    "opteron-6328-x18-numaconnect2" "epyc-7251" "epyc-7451-x2" "epyc-7551-x2" "epyc-7742-x2"
    "epyc-7742-x2-nps4" "dgx-a100" "epyc-7763-x2" "epyc-7763-x2-nps4" "epyc-7t83-x2-nps2"
    "epyc-8434p-l3-as-numa" "epyc-9654-x2" "epyc-9654-x2-l3-as-numa" "epyc-9754-x2" "epyc-9754-x2-cxl"
    "epyc-9755-x2" "epyc-9375f-x2-smt-off" "epyc-9135-x2-smt-off" "threadripper-2990wx" "xeon-e5-2660-v2-x2"
    "xeon-e5-2680-v4-x2-smt-off" "xeon-gold-6148-x2-snc2" "xeon-gold-6248r-x2" "xeon-platinum-8480-x2"
    "xeon-platinum-8480-x2-snc4" "xeon-max-9480-x2-flat" "xeon-max-9480-x2-snc4-flat"
    "xeon-max-9468-x2-snc4-flat" "xeon-max-9470c-x2-flat" "xeon-max-9460-x2-flat" "xeon-6980p-x2"
    "xeon-6776p-x2" "xeon-phi-7250" "xeon-phi-7250-flat" "graviton2" "graviton3" "graviton4" "graviton4-x2"
    "altra-q80-30" "altra-q80-30-x2" "grace-x2" "gh200" "gb200-x2" "dgx-spark" "kunpeng-920-x2" "sg2042"
    "elbrus-8c-x4" "power8-smt-off" "power9-ac922-4-gpus" "power9-ac922-6-gpus" "power10-x16"
}

#[cfg(test)]
mod tests;
