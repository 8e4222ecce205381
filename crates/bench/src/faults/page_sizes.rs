//! The sizes of pages that the kernel may give: what is asked for, and whether it comes.

use crate::ground::Ground;
use numakit_sys::fault_cost::own_faults;
use numakit_sys::loops::{Advice, HUGE_PAGE, MEDIUM_PAGE, Region};
use numakit_sys::sched;

/// Small ones first.
pub(crate) const KINDS: [Advice; 3] = [Advice::Small, Advice::Medium, Advice::Huge];

/// Pages that are touched between two readings of the clock.
const SMALL_PAGES: usize = 2048;
const MEDIUM_PAGES: usize = 128;
const HUGE_PAGES: usize = 16;
/// Maximum bytes of medium pages: each of these pages is a mapping of its own, and a process may have 65,530 mappings.
const MOST_MEDIUM: usize = 1 << 30;
const MEDIUM_SETTING: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";

/// A size of pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub name: &'static str,
    pub advice: Advice,
    /// Bytes of a page.
    pub page: usize,
    /// Bytes that a thread touches.
    pub bytes: usize,
    /// Maximum bytes that it may touch.
    pub most: usize,
}

impl Kind {
    /// The pages that come by this advice.
    pub fn of(advice: Advice) -> Self {
        let (name, page, pages, most) = match advice {
            Advice::Huge => ("huge page", HUGE_PAGE, HUGE_PAGES, usize::MAX),
            Advice::Medium => ("medium page", MEDIUM_PAGE, MEDIUM_PAGES, MOST_MEDIUM),
            _ => ("small page", sched::page_size() as usize, SMALL_PAGES, usize::MAX),
        };
        Self { name, advice, page, bytes: page * pages, most }
    }
}

/// Memory whose pages are to be of a kind. It has no pages yet.
pub(crate) fn fresh(kind: Kind) -> std::io::Result<Region> {
    let mut memory = Region::map(kind.bytes)?;
    // Kernels without huge pages refuse the advice, and have small pages only.
    let _ = memory.advise(kind.advice);
    Ok(memory)
}

/// Why pages of this kind cannot be measured.
pub(crate) fn lacks(ground: &Ground<'_>, kind: Kind) -> Option<String> {
    match kind.advice {
        Advice::Huge => lacks_huge(kind),
        Advice::Medium => lacks_medium(ground, kind),
        _ => None,
    }
}

fn lacks_huge(kind: Kind) -> Option<String> {
    let mut memory = fresh(kind).ok()?;
    memory.touch(kind.page);
    let got = memory.huge_bytes()?;
    (got < kind.bytes as u64).then(|| {
        format!(
            "the kernel gave {} of {} huge pages; enable them in /sys/kernel/mm/transparent_hugepage/enabled, or free memory",
            got as usize / HUGE_PAGE,
            kind.bytes / HUGE_PAGE
        )
    })
}

/// Why the kernel gives no medium pages; `None` if it does. The kernel's list of pages does not show them, but each of them
/// is one page fault.
fn lacks_medium(ground: &Ground<'_>, kind: Kind) -> Option<String> {
    let small = sched::page_size() as usize;
    if small >= MEDIUM_PAGE {
        return Some(format!("small pages have {} KiB here", small >> 10));
    }
    let mut memory = fresh(kind).ok()?;
    let before = own_faults();
    memory.touch(small);
    let (faults, pages) = (own_faults() - before, (kind.bytes / kind.page) as u64);
    (faults > pages).then(|| without_medium(&ground.root.text(MEDIUM_SETTING).ok(), faults, pages))
}

fn without_medium(setting: &Option<String>, faults: u64, pages: u64) -> String {
    let word = setting.as_deref().and_then(|text| text.split('[').nth(1)?.split(']').next());
    match word {
        None => "this kernel has no pages of 64 KiB (Linux 6.8 has on most processors)".to_owned(),
        Some("never") => format!("the kernel's setting is never; as root: echo madvise > {MEDIUM_SETTING}"),
        Some(word) => format!(
            "there were {faults} page faults for {pages} pages of 64 KiB, with the setting {word} in {MEDIUM_SETTING}; \
             free memory, or as root: echo madvise > {MEDIUM_SETTING}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;

    #[test]
    fn the_reason_names_the_setting_and_the_command() {
        let of = |text: Option<&str>| without_medium(&text.map(str::to_owned), 2048, 128);
        assert!(of(None).contains("Linux 6.8"));
        let never = of(Some("always inherit madvise [never]\n"));
        assert!(never.contains("is never; as root: echo madvise > /sys/kernel/mm/"), "{never}");
        assert!(of(Some("always [inherit] madvise never")).contains("2048 page faults for 128 pages"));
    }

    /// The pages that memory of this kind has. The kernel may have run out of huge ones since it was asked for them.
    fn pages(memory: &Region, kind: Kind) -> usize {
        match kind.advice {
            Advice::Huge => {
                let huge = memory.huge_bytes().unwrap() as usize;
                assert!(huge > 0);
                huge / kind.page + (kind.bytes - huge) / sched::page_size() as usize
            }
            _ => kind.bytes / kind.page,
        }
    }

    #[test]
    fn a_kind_that_is_there_has_one_fault_for_each_page() {
        on_this_machine(|ground| {
            for kind in KINDS.map(Kind::of) {
                match lacks(ground, kind) {
                    Some(why) => numakit_skips::MACHINE.skip_part(format!("no {}s: {why}", kind.name)),
                    None => {
                        let (mut memory, before) = (fresh(kind).unwrap(), own_faults());
                        memory.touch(sched::page_size() as usize);
                        let (faults, pages) = (own_faults() - before, pages(&memory, kind) as u64);
                        // A page of code that is used for the first time is another fault.
                        assert!((pages..pages + 32).contains(&faults), "{}: {faults} of {pages}", kind.name);
                    }
                }
            }
        });
    }
}
