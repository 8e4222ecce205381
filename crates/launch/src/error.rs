//! Why a program is not started.

use numakit_sys::huge_pages::HugePages;
use numakit_sys::permissions::{Refusal, Runtime};
use std::io;
use thiserror::Error;

/// Why a program is not started, with the fix.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// A stack above the limit of this process.
    #[error("a stack of {} is above the limit of {}; raise it with 'ulimit -Hs' as root, or give a smaller --stack", kib(*.requested), kib(*.limit))]
    Stack {
        /// Bytes.
        requested: u64,
        /// Bytes.
        limit: u64,
    },
    /// The kernel does not support this mode of huge pages.
    #[error("{}", huge_pages_text(*.huge_pages, .error))]
    HugePages {
        /// The requested mode.
        huge_pages: HugePages,
        /// The kernel's error.
        error: io::Error,
    },
    /// The kernel refuses the memory policy.
    #[error("memory policy '{policy}' is refused by the kernel ({error}); {fix}")]
    Memory {
        /// The policy.
        policy: String,
        /// The kernel's error.
        error: io::Error,
        /// The fix.
        fix: &'static str,
    },
    /// The table of a cure cannot be made.
    #[error("the cure cannot be applied: {0}; run the program without --apply")]
    Cure(io::Error),
    /// This process may not set memory policies.
    #[error(
        "memory policy '{policy}' cannot be set: {} ({runtime}); {}, or add --memory-try to run without it",
        refusal.refuser, refusal.fix
    )]
    PoliciesRefused {
        /// The policy.
        policy: String,
        /// Why, and what permits it.
        refusal: Box<Refusal>,
        /// Where this process runs.
        runtime: Runtime,
    },
}

fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes >> 10)
}

fn huge_pages_text(requested: HugePages, error: &io::Error) -> String {
    match requested {
        HugePages::Advised => format!(
            "this kernel has no 'madvise' mode of huge pages for one program ({error}); \
             use Linux 6.18 or later, or --thp on or off"
        ),
        _ => format!("this kernel cannot turn huge pages on or off for one program ({error}); omit --thp"),
    }
}
