//! OpenMP loops with shares by place: what a program gets for `--loops adaptive`.

use crate::command::CommandRequest;
use crate::environment::Environment;
use crate::preload::{Library, PreloadError};
use crate::program::Obstacle;
use numakit_sys::proc::LoopSchedule;
use std::path::PathBuf;
use thiserror::Error;

/// Loops of gcc's OpenMP begin with the shares of a static schedule, and members without work steal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdaptiveLoops {
    /// The library that the program preloads.
    pub library: PathBuf,
    /// The iterations that a chunk has at least; `None` as the loop says.
    pub chunk: Option<u32>,
}

/// A value of `--loops`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopsOption {
    /// The iterations that a chunk has at least.
    pub chunk: Option<u32>,
}

/// Not a value of `--loops`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is not adaptive or adaptive,CHUNK with at least one iteration, such as adaptive,64")]
pub struct NotLoops(String);

/// Parses `adaptive` or `adaptive,CHUNK`.
pub fn loops(text: &str) -> Result<LoopsOption, NotLoops> {
    let wrong = || NotLoops(text.to_owned());
    match text.split_once(',').map_or((text, None), |(name, chunk)| (name, Some(chunk))) {
        ("adaptive", None) => Ok(LoopsOption { chunk: None }),
        ("adaptive", Some(chunk)) => match chunk.parse() {
            Ok(chunk @ 1..) => Ok(LoopsOption { chunk: Some(chunk) }),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

impl LoopsOption {
    /// Extracts the library.
    pub fn with_library(self) -> Result<AdaptiveLoops, PreloadError> {
        Ok(AdaptiveLoops { library: Library::Sched.extract()?, chunk: self.chunk })
    }
}

/// What LLVM's OpenMP does with each schedule, and what is left as it is.
const OF_LIBOMP: &str = "uses LLVM's OpenMP: its loops with schedule(dynamic) begin with static shares and steal without \
    --loops, those with schedule(runtime) do so by OMP_SCHEDULE=static_steal, and those with schedule(guided) stay as they are";

impl CommandRequest<'_> {
    /// Preloads the library of loops, if the program, or the programs that it starts, can load it. Returns what stays as it is.
    pub(crate) fn loops(&self, environment: &mut Environment) -> Option<String> {
        let loops = self.options.loops.as_ref()?;
        let name = self.program.name().display();
        if let Some(sanitizer) = self.program.sanitizer {
            let sanitizer = sanitizer.name();
            return Some(format!(
                "{name} has the {sanitizer}, which knows libgomp's loops only: --loops is left out"
            ));
        }
        if let Some(obstacle) = self.program.obstacle.as_ref().filter(|obstacle| !obstacle.allows_allocator())
        {
            return Some(format!("{name} {obstacle}: its loops stay as they are"));
        }
        environment.preload_loops(&loops.library);
        if let Some(chunk) = loops.chunk {
            environment.set("NUMASCHED_CHUNK", chunk.to_string());
        }
        if self.program.libomp {
            environment.set_default("OMP_SCHEDULE", "static_steal");
            return Some(format!("{name} {OF_LIBOMP}"));
        }
        if let Some(Obstacle::Static) = &self.program.obstacle {
            return Some(format!(
                "{name} is statically linked: only loops of programs that it starts are adaptive"
            ));
        }
        let schedule = environment.get("OMP_SCHEDULE")?.to_string_lossy().to_ascii_lowercase();
        (LoopSchedule::parse(&schedule) == Some(LoopSchedule::Fixed)).then(|| {
            format!("OMP_SCHEDULE is '{schedule}', so loops with schedule(runtime) stay as they are; unset it, or set it to dynamic")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_option() {
        assert_eq!(loops("adaptive"), Ok(LoopsOption { chunk: None }));
        assert_eq!(loops("adaptive,64"), Ok(LoopsOption { chunk: Some(64) }));
        for wrong in
            ["", "static", "adaptive,", "adaptive,0", "adaptive,-1", "adaptive,x", "adaptive,1,2", "Adaptive"]
        {
            let error = loops(wrong).unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{wrong}' is not adaptive or adaptive,CHUNK")), "{error}");
        }
    }
}
