//! Changes in the source, in the terms of the language and runtime.

use super::ObjectCase;
use numakit_explain::contended::Sharing;
use numakit_explain::object_use::NodeShare;
use numakit_explain::objects::ObjectKind;
use numakit_explain::runtime::{MallocLibrary, ProgramRuntime};
use numakit_sys::huge_pages::Setting;
use numakit_sys::user;

/// Nodes with less are not named.
const SMALL: f64 = 0.02;
/// Maximum number of nodes that are named one by one.
const MAX_NODES: usize = 4;
/// Fields that are named.
const MAX_FIELDS: usize = 3;

/// Variables of the environment that are switches of a runtime or allocator, with their values.
pub(crate) type Switches = &'static [(&'static str, &'static str)];

/// Java's heap is on the nodes of the threads that create objects.
pub(crate) const JAVA_NUMA: Switches = &[("JDK_JAVA_OPTIONS", "-XX:+UseNUMA")];
/// Java's heap has huge pages.
pub(crate) const JAVA_HUGE: Switches = &[("JDK_JAVA_OPTIONS", "-XX:+UseTransparentHugePages")];
/// What allocators get from the system has huge pages.
pub(crate) const JEMALLOC_HUGE: Switches = &[("MALLOC_CONF", "thp:always")];
pub(crate) const MIMALLOC_HUGE: Switches =
    &[("MIMALLOC_ALLOW_LARGE_OS_PAGES", "1"), ("MIMALLOC_LARGE_OS_PAGES", "1")];
pub(crate) const GLIBC_HUGE: Switches = &[("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")];

/// Switches as they are typed before a command.
fn typed(switches: Switches) -> String {
    switches.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// The remedy "let the threads that use it initialise it", in the words of the program's runtime.
pub(super) fn parallel_first_touch(e: &ObjectCase<'_>) -> String {
    match e.facts.runtime {
        ProgramRuntime::OpenMp => {
            "Initialise it in a parallel loop with the schedule of the loops that use it \
             (#pragma omp parallel for schedule(static), and OMP_PROC_BIND=true)"
        }
        ProgramRuntime::Mpi => "Let each process allocate and initialise its own part, after it is bound to its node",
        ProgramRuntime::Java => {
            "Run the virtual machine with -XX:+UseNUMA (and -XX:+UseParallelGC or G1), and let the threads that use objects \
             create them"
        }
        ProgramRuntime::Python => {
            "Create the array with numpy.empty and let each worker fill the part that it works on, instead of numpy.zeros or \
             random values from one thread"
        }
        ProgramRuntime::Threads | ProgramRuntime::Node | ProgramRuntime::Go => {
            "Initialise each part in the thread that uses it, after the thread is bound, instead of all parts before threads start"
        }
    }
    .to_owned()
}

/// The remedy against memory that an allocator passes on from threads of another node.
pub(super) fn own_memory(e: &ObjectCase<'_>) -> String {
    let keep = match e.facts.runtime {
        ProgramRuntime::OpenMp => {
            "Allocate it once in each thread of the parallel region (#pragma omp parallel, private pointers) and keep it"
        }
        ProgramRuntime::Mpi => "Allocate it once in each process, after it is bound to its node, and keep it",
        _ => {
            "Allocate it once in the thread that uses it, after the thread is bound, and keep it instead of freeing it"
        }
    };
    format!(
        "{keep}; or use an allocator that keeps the memory of each thread or CPU apart (LD_PRELOAD of jemalloc, tcmalloc or \
         mimalloc), or give freed memory back (MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ below its size, which costs \
         page faults). With glibc, an arena that an ended thread leaves goes to the next new one, on whatever node: start \
         threads once, and set MALLOC_ARENA_MAX no lower than their number"
    )
}

/// The remedy against accesses without order.
pub(super) fn order(e: &ObjectCase<'_>) -> &'static str {
    match e.facts.runtime {
        ProgramRuntime::Python => {
            "Read it in its order: sort the indices (numpy.sort) or take them in parts that lie near each other, or make its elements \
             smaller (float32, int32), so that more of them fit the cache"
        }
        _ => {
            "Read it in its order: sort or group the indices by what they point to, in parts that fit the cache; make its elements \
             smaller, so that more of them fit; or ask for elements some iterations ahead (__builtin_prefetch)"
        }
    }
}

/// How an object gets huge pages.
pub(super) struct HugePagesRemedy {
    /// What to change.
    pub(super) change: String,
    /// What can be tried now, and what that does.
    pub(super) command: Option<String>,
    pub(super) expect: Option<&'static str>,
}

/// Gives huge pages to what such a file of the kernel is about, before a command of this user.
pub(super) fn always(file: &str) -> String {
    match user::id() {
        0 => format!("echo always >{file} &&"),
        _ => format!("echo always | sudo tee {file} &&"),
    }
}

/// Huge pages for an object. What `numa run --thp on` does reaches the C library's `malloc` alone; all other memory has a
/// switch of its own.
pub(super) fn huge_pages(e: &ObjectCase<'_>) -> HugePagesRemedy {
    let remedy = |change: &str, before: &str, expect: &'static str| HugePagesRemedy {
        change: change.to_owned(),
        command: Some(format!("{before} {}", e.program.command)),
        expect: Some(expect),
    };
    let by_program =
        "Align it to 2 MiB and ask for huge pages for it (madvise with MADV_HUGEPAGE before it is touched)";
    let by_malloc = "Ask for huge pages for it (madvise with MADV_HUGEPAGE before it is touched)";
    match (e.object.kind, e.facts.runtime, e.facts.malloc) {
        (ObjectKind::SharedMemory, ..) => remedy(
            "Ask for huge pages for the shared memory (madvise with MADV_HUGEPAGE before it is touched), and allow them in \
             /sys/kernel/mm/transparent_hugepage/shmem_enabled; a mount at /dev/shm needs the option huge=advise; or create it \
             with memfd_create and MFD_HUGETLB",
            &always("/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
            "gives huge pages to all new shared memory without a file, as root, until the file says 'never' again",
        ),
        (ObjectKind::Mapping | ObjectKind::Mapped, ProgramRuntime::Java, None) => remedy(
            "Run the virtual machine with -XX:+UseTransparentHugePages",
            &typed(JAVA_HUGE),
            "gives huge pages to the virtual machine's heap",
        ),
        (.., Some(MallocLibrary::C | MallocLibrary::Numalloc)) => {
            remedy(by_malloc, "numa run --thp on", "gives huge pages to what malloc allocates")
        }
        (.., Some(MallocLibrary::Jemalloc)) => {
            remedy(by_malloc, &typed(JEMALLOC_HUGE), "gives huge pages to what jemalloc allocates")
        }
        (.., Some(MallocLibrary::Mimalloc)) => remedy(
            by_malloc,
            &typed(MIMALLOC_HUGE),
            "lets mimalloc use huge pages, if the system has some (vm.nr_hugepages) or makes them",
        ),
        // No switch of the program reaches its own mappings; that of the machine does.
        (ObjectKind::Mapped | ObjectKind::Mapping, _, None)
            if matches!(e.facts.huge_page_setting, Some(Setting::Advised | Setting::Never)) =>
        {
            remedy(
                by_program,
                &always("/sys/kernel/mm/transparent_hugepage/enabled"),
                "gives huge pages to the new memory of all programs, as root, until the file says what it said before",
            )
        }
        _ => HugePagesRemedy { change: by_program.to_owned(), command: None, expect: None },
    }
}

/// The processes that contend for a line of it, if these are several.
pub(super) fn processes_of_line(e: &ObjectCase<'_>) -> Option<String> {
    let numbers: Vec<String> = e.facts.line_processes.iter().map(u32::to_string).collect();
    (numbers.len() > 1).then(|| some(&numbers))
}

/// Against contended lines.
pub(super) fn contention(e: &ObjectCase<'_>) -> String {
    let fields = some(&e.facts.fields);
    let advice = match e.facts.sharing {
        Some(Sharing::False) if !fields.is_empty() => {
            return format!(
                "Pad or align {fields} so that what each thread changes has a line of its own: alignas(64), padding, or an \
                 array per thread"
            );
        }
        Some(Sharing::Lock) => {
            "Take the lock less often, or use one for each part of the data; count per thread or per node and add up at the end"
        }
        Some(Sharing::False) if e.facts.runtime == ProgramRuntime::Java => {
            "Give what each thread changes a line of its own: @Contended (with -XX:-RestrictContended), or elements that are 128 \
             bytes apart"
        }
        Some(Sharing::False) => {
            "Give what each thread changes a line of its own: alignas(64), padding, or an array per thread"
        }
        Some(Sharing::True) | None => {
            "Let each thread or node change a copy of its own, and combine them at the end"
        }
    };
    if fields.is_empty() { advice.to_owned() } else { format!("{advice}; the threads share {fields}") }
}

/// The first of these names in words, and how many more there are.
fn some(names: &[String]) -> String {
    match names {
        [shown @ .., _, _] if names.len() > MAX_FIELDS => {
            let shown = &shown[..shown.len().min(MAX_FIELDS)];
            format!("{} and {} more", shown.join(", "), names.len() - shown.len())
        }
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        names => names.concat(),
    }
}

/// Nodes in words.
pub(super) fn nodes(parts: &[NodeShare]) -> String {
    let named: Vec<String> =
        parts.iter().filter(|part| part.share >= SMALL).map(|part| part.node.to_string()).collect();
    match named.split_last() {
        None => "no known node".to_owned(),
        Some((only, [])) => format!("node {only}"),
        Some((last, others)) if named.len() <= MAX_NODES => format!("nodes {} and {last}", others.join(", ")),
        Some(_) => format!("{} nodes", named.len()),
    }
}
