//! Why a program is not started.

use numakit_model::Fix;
use numakit_sys::huge_pages::HugePages;
use numakit_sys::permissions::{Refuser, Runtime};
use std::io;
use thiserror::Error;

/// Why a program is not started, with the way out.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// A stack above the limit of this process.
    #[error("a stack of {} is above the limit of {}; raise it with 'ulimit -Hs' as root, or ask for less", kib(*.asked), kib(*.most))]
    Stack {
        /// Bytes.
        asked: u64,
        /// Bytes.
        most: u64,
    },
    /// The kernel does not know how to give huge pages so.
    #[error("{}", huge_pages_text(*.huge_pages, .error))]
    HugePages {
        /// What was asked for.
        huge_pages: HugePages,
        /// What the kernel said.
        error: io::Error,
    },
    /// The kernel refuses the memory policy.
    #[error("memory policy '{policy}' is refused by the kernel ({error}); {fix}")]
    Memory {
        /// The policy.
        policy: String,
        /// What the kernel said.
        error: io::Error,
        /// What to do.
        fix: &'static str,
    },
    /// This process may not set memory policies.
    #[error(
        "memory policy '{policy}' cannot be set: {refuser} ({runtime}); {fix}, or add --memory-try to run without it"
    )]
    PoliciesRefused {
        /// The policy.
        policy: String,
        /// What refuses it.
        refuser: Refuser,
        /// Where this process runs.
        runtime: Runtime,
        /// What permits it.
        fix: Fix,
    },
}

fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes >> 10)
}

fn huge_pages_text(asked: HugePages, error: &io::Error) -> String {
    match asked {
        HugePages::Advised => format!(
            "only memory that asks cannot be given huge pages to by this kernel ({error}); \
             Linux 6.18 can, earlier ones know 'on' and 'off'"
        ),
        _ => format!("this kernel does not let huge pages be switched for one program ({error})"),
    }
}
