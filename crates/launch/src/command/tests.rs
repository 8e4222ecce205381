use super::*;
use crate::collectives::{Collectives, CollectivesOption};
use crate::loops::AdaptiveLoops;
use crate::options::Allocator;
use numakit_model::Fix;
use numakit_model::plan::Step;
use numakit_model::topology::{Core, Node};
use numakit_sys::permissions::{Refusal, Refuser, Runtime, Surroundings};
use std::ffi::OsStr;

/// CPUs with their nodes, in order.
fn plan(cpus: &[(u32, u32)], memory: Memory) -> Plan {
    let steps = cpus.iter().zip(0..).map(|(&(cpu, node), thread)| Step {
        process: 0,
        thread,
        cpu,
        node,
        memory: memory.clone(),
        because: String::new(),
    });
    Plan { steps: steps.collect(), ..Plan::default() }
}

fn topology() -> Topology {
    let node = |os_index, cpus: &str| Node { os_index, cpus: cpus.parse().unwrap(), ..Node::default() };
    let core = |cpus: &str| Core { cpus: cpus.parse().unwrap(), ..Core::default() };
    Topology {
        nodes: vec![node(0, "0-3"), node(2, "4-7")],
        cores: ["0,4", "1,5", "2,6", "3,7"].map(core).to_vec(),
        ..Topology::default()
    }
}

fn program(obstacle: Option<Obstacle>) -> Program {
    Program {
        file: "/x/solver".into(),
        code: "/x/solver".into(),
        obstacle,
        sanitizer: None,
        libomp: false,
        build_id: None,
    }
}

fn launch(program: &Program, plan: &Plan, options: &RunOptions, before: &[(&str, &str)]) -> ExplainedCommand {
    launch_on(false, program, plan, options, before)
}

/// The same, on cores that other programs use too, or do not.
fn launch_on(
    is_crowded: bool,
    program: &Program,
    plan: &Plan,
    options: &RunOptions,
    before: &[(&str, &str)],
) -> ExplainedCommand {
    let request = CommandRequest {
        words: &["solver".into()],
        program,
        plan,
        is_crowded,
        topology: &topology(),
        options,
        setting: Some(Setting::Advised),
        permissions: &Permissions::default(),
        library: Path::new("/c/libnumaplace.so"),
        lock_descriptor: (!options.shared).then_some(100),
        order: None,
    };
    let before = before.iter().map(|(name, value)| (name.into(), value.into()));
    ExplainedCommand::new(&request, Environment::of(before)).unwrap()
}

fn value<'a>(launch: &'a ExplainedCommand, name: &str) -> Option<&'a str> {
    let found = launch.prepared.environment.iter().find(|(n, _)| n == OsStr::new(name));
    found.map(|(_, value)| value.to_str().unwrap())
}

#[test]
fn a_program_gets_its_order_its_mask_and_its_nodes() {
    let plan = plan(&[(5, 2), (4, 2), (0, 0), (1, 0)], Memory::default());
    let launch = launch(&program(None), &plan, &RunOptions::default(), &[("GOMP_CPU_AFFINITY", "0")]);
    for (name, expected) in [
        ("OMP_PLACES", Some("{5},{4},{0},{1}")),
        ("OMP_PROC_BIND", Some("close")),
        ("OMP_WAIT_POLICY", Some("ACTIVE")),
        ("OMP_NUM_THREADS", None),
        ("GOMP_CPU_AFFINITY", None),
        ("NUMA_PLACE", Some("5,4,0-1")),
        ("NUMA_MASK", Some("0-1,4-5")),
        ("NUMA_NODES", Some("0:0-1;2:4-5")),
        ("NUMA_MEMORY", Some("default")),
        ("NUMA_HOLD", Some("100")),
        ("NUMA_VERBOSE", None),
        ("NUMA_INHERIT", None),
        ("NUMA_RANKS", Some("1")),
        ("I_MPI_PIN", Some("0")),
        ("LD_PRELOAD", Some("/c/libnumaplace.so")),
    ] {
        assert_eq!(value(&launch, name), expected, "{name}");
    }
    assert_eq!(launch.prepared.cpus.as_ref().unwrap().to_string(), "0-1,4-5");
    assert_eq!((launch.notes, launch.prepared.descriptor), (Vec::new(), Some(100)));
    assert!(
        launch.messages[0].starts_with("4 threads of 1 process on CPUs 5,4,0-1"),
        "{}",
        launch.messages[0]
    );
}

#[test]
fn threads_that_wait_sleep_where_others_need_the_cpus() {
    let plan = plan(&[(0, 0), (1, 0)], Memory::default());
    let policy = |is_crowded, before: &[(&str, &str)]| {
        let launch = launch_on(is_crowded, &program(None), &plan, &RunOptions::default(), before);
        let why =
            launch.messages.iter().find_map(|line| line.strip_prefix("threads of OpenMP that wait sleep: "));
        (value(&launch, "OMP_WAIT_POLICY").map(str::to_owned), why.map(str::to_owned))
    };
    let set = |value: &str| (Some(value.to_owned()), None);
    let asleep = |why: &str| (Some("PASSIVE".to_owned()), Some(why.to_owned()));
    assert_eq!(policy(false, &[]), set("ACTIVE"));
    assert_eq!(policy(true, &[]), asleep("other programs use the CPUs"));
    // What the user has set stays.
    assert_eq!(policy(true, &[("OMP_WAIT_POLICY", "ACTIVE")]), set("ACTIVE"));
    assert_eq!(policy(false, &[("OMP_WAIT_POLICY", "PASSIVE")]), set("PASSIVE"));
    assert_eq!(policy(false, &[("OMP_WAIT_POLICY", "ACTIVE"), ("OMP_NUM_THREADS", "9")]), set("ACTIVE"));
    for (threads, expected) in [
        ("2", set("ACTIVE")),
        ("2,8", set("ACTIVE")),
        ("many", set("ACTIVE")),
        ("3", asleep("3 threads share 2 CPUs")),
        (" 4,1", asleep("4 threads share 2 CPUs")),
    ] {
        assert_eq!(policy(false, &[("OMP_NUM_THREADS", threads)]), expected, "{threads}");
    }
}

#[test]
fn options_reach_the_library_and_the_runtime() {
    let bind = Memory { mode: Mode::Bind, nodes: "0".parse().unwrap() };
    let options = RunOptions {
        shared: true,
        no_inherit: true,
        verbose: true,
        stack: Some(64 << 20),
        huge_pages: Some(HugePages::On),
        ..RunOptions::default()
    };
    let tunables = [("GLIBC_TUNABLES", "glibc.malloc.arena_max=1")];
    let launch = launch(&program(None), &plan(&[(0, 0), (1, 0)], bind), &options, &tunables);
    for (name, expected) in [
        ("OMP_WAIT_POLICY", None),
        ("OMP_STACKSIZE", Some("65536K")),
        ("NUMA_MEMORY", Some("bind:0")),
        ("NUMA_HOLD", None),
        ("NUMA_VERBOSE", Some("1")),
        ("NUMA_INHERIT", Some("0")),
        ("NUMA_RANKS", None),
        ("GLIBC_TUNABLES", Some("glibc.malloc.arena_max=1:glibc.malloc.hugetlb=1")),
    ] {
        assert_eq!(value(&launch, name), expected, "{name}");
    }
}

#[test]
fn a_program_that_takes_no_library_gets_its_policy_at_once() {
    let interleave = Memory { mode: Mode::Interleave, nodes: "0".parse().unwrap() };
    let plan = plan(&[(0, 0), (1, 0)], interleave.clone());
    let old = [("LD_PRELOAD", "/old/libnumaplace.so"), ("OMP_NUM_THREADS", "1")];
    let go = launch(&program(Some(Obstacle::Go)), &plan, &RunOptions::default(), &old);
    assert_eq!(go.prepared.memory, Some(MemoryPolicy::of(&interleave)));
    assert_eq!((value(&go, "GOMAXPROCS"), value(&go, "LD_PRELOAD")), (Some("2"), None));
    assert_eq!((value(&go, "NUMA_PLACE"), value(&go, "OMP_NUM_THREADS")), (None, Some("1")));
    assert_eq!(
        go.notes[0],
        "solver is a Go program: its threads are not bound one by one and their stacks are not placed; it runs \
         on CPUs 0-1, with GOMAXPROCS for as many threads, memory interleave:0"
    );
    // What a static program starts may well take the library.
    let fixed = launch(&program(Some(Obstacle::Static)), &plan, &RunOptions::default(), &old);
    assert_eq!(fixed.prepared.memory, Some(MemoryPolicy::of(&interleave)));
    assert_eq!(value(&fixed, "LD_PRELOAD"), Some("/c/libnumaplace.so"));
    assert_eq!(value(&fixed, "GOMAXPROCS"), None);
}

#[test]
fn several_processes_get_their_threads_from_who_starts_them() {
    let mut plan = plan(&[(0, 0), (1, 0), (2, 0), (3, 0)], Memory::default());
    plan.steps[2].process = 1;
    plan.steps[3].process = 1;
    let run = |plan: &Plan| launch(&program(None), plan, &RunOptions::default(), &[]);
    let launch = run(&plan);
    assert_eq!((value(&launch, "OMP_NUM_THREADS"), value(&launch, "OMP_PLACES")), (Some("2"), Some("cores")));
    plan.steps[1].cpu = 4;
    assert_eq!(value(&run(&plan), "OMP_PLACES"), Some("threads"));
}

/// A container that refuses memory policies.
fn contained() -> Permissions {
    let fix = Fix::Step("docker run --cap-add SYS_NICE ...".to_owned());
    Permissions {
        surroundings: Surroundings { runtime: Runtime::Docker, ..Surroundings::default() },
        refusals: vec![Refusal { permission: Permission::Policies, refuser: Refuser::Filter, fix }],
    }
}

#[test]
fn where_policies_are_refused_local_memory_needs_none_and_others_say_what_permits_them() {
    let permissions = contained();
    let with = |memory: Memory, options: &RunOptions| {
        let job = CommandRequest {
            words: &["solver".into()],
            program: &program(None),
            plan: &plan(&[(0, 0)], memory),
            is_crowded: false,
            topology: &topology(),
            options,
            setting: None,
            permissions: &permissions,
            library: Path::new("/c/libnumaplace.so"),
            lock_descriptor: None,
            order: None,
        };
        ExplainedCommand::new(&job, Environment::default())
    };
    let local = with(Memory::default(), &RunOptions::default()).unwrap();
    assert_eq!((&local.prepared.memory, value(&local, "NUMA_MEMORY")), (&None, Some("default")));
    assert!(
        local
            .messages
            .iter()
            .any(|line| line.contains("local to each thread, by first touch on the thread's CPU"))
    );
    let bound = || Memory { mode: Mode::Bind, nodes: "0".parse().unwrap() };
    assert_eq!(
        with(bound(), &RunOptions::default()).unwrap_err().to_string(),
        "memory policy 'bind:0' cannot be set: a seccomp filter refuses it (Docker container); docker run \
         --cap-add SYS_NICE ..., or add --memory-try to run without it"
    );
    let tried = with(bound(), &RunOptions { memory_try: true, ..RunOptions::default() }).unwrap();
    assert_eq!((&tried.prepared.memory, value(&tried, "NUMA_MEMORY")), (&None, Some("default")));
}

#[test]
fn nodes_that_are_not_there_are_refused_before_anything_starts() {
    let nowhere = Memory { mode: Mode::Bind, nodes: "900".parse().unwrap() };
    let request = CommandRequest {
        words: &["solver".into()],
        program: &program(None),
        plan: &plan(&[(0, 0)], nowhere),
        is_crowded: false,
        topology: &topology(),
        options: &RunOptions::default(),
        setting: None,
        permissions: &Permissions::default(),
        library: Path::new("/c/libnumaplace.so"),
        lock_descriptor: None,
        order: None,
    };
    let error = ExplainedCommand::new(&request, Environment::default()).unwrap_err().to_string();
    assert!(
        error.starts_with("memory policy 'bind:900' is refused") && error.contains("numa topo"),
        "{error}"
    );
}

#[test]
fn a_sanitizer_is_asked_to_let_the_library_be_first() {
    let plan = plan(&[(0, 0), (1, 0)], Memory::default());
    let sanitized = Program { sanitizer: Some(Sanitizer::Lenient), ..program(None) };
    let options = |before: &[(&str, &str)]| {
        let launch = launch(&sanitized, &plan, &RunOptions::default(), before);
        value(&launch, "ASAN_OPTIONS").unwrap().to_owned()
    };
    assert_eq!(options(&[]), "verify_asan_link_order=0");
    assert_eq!(options(&[("ASAN_OPTIONS", "")]), "verify_asan_link_order=0");
    assert_eq!(options(&[("ASAN_OPTIONS", "a=1:b=2")]), "a=1:b=2:verify_asan_link_order=0");
    let chosen = "verify_asan_link_order=1:a=1";
    assert_eq!(options(&[("ASAN_OPTIONS", chosen)]), chosen);
    // Other programs do not get the variable; one with a strict sanitizer gets no library either.
    let plain = launch(&program(None), &plan, &RunOptions::default(), &[]);
    assert_eq!(value(&plain, "ASAN_OPTIONS"), None);
    let old = launch(&program(Some(Obstacle::Sanitizer)), &plan, &RunOptions::default(), &[]);
    assert_eq!((value(&old, "ASAN_OPTIONS"), value(&old, "LD_PRELOAD")), (None, None));
    let note = &old.notes[0];
    assert!(note.starts_with("solver has the AddressSanitizer of GCC 7 or before: its threads"), "{note}");
}

#[test]
fn it_is_said_where_a_policy_comes_before_the_allocator() {
    let of = |mode, profile| {
        let memory = Memory { mode, nodes: "0".parse().unwrap() };
        let library = "/c/libnumalloc.so".into();
        let options = RunOptions { allocator: Some(Allocator { library, profile }), ..RunOptions::default() };
        launch(&program(None), &plan(&[(0, 0)], memory), &options, &[]).notes
    };
    let note = "the memory policy interleave:0 decides where blocks lie, and not --alloc numa";
    assert_eq!(of(Mode::Interleave, "numa"), [note]);
    assert_eq!((of(Mode::Interleave, "uma").len(), of(Mode::Local, "numa").len()), (0, 0));
}

#[test]
fn collectives_are_the_library_s_where_the_program_can_load_it() {
    let with = |which| {
        let (library, table) = ("/c/libnumampi.so".into(), Some("/s/table".into()));
        RunOptions { collectives: Some(Collectives { library, which, table }), ..RunOptions::default() }
    };
    let options = with(CollectivesOption::Auto);
    let plan = plan(&[(0, 0)], Memory::default());
    let plain = launch(&program(None), &plan, &options, &[]);
    assert_eq!(value(&plain, "LD_PRELOAD"), Some("/c/libnumaplace.so:/c/libnumampi.so"));
    assert_eq!((value(&plain, "NUMAMPI_COLLECTIVES"), value(&plain, "NUMA_MPI")), (Some("auto"), None));
    assert_eq!(value(&plain, "NUMAMPI_TABLE"), Some("/s/table"));
    let own = [("NUMAMPI_TABLE", "/own")];
    assert_eq!(value(&launch(&program(None), &plan, &options, &own), "NUMAMPI_TABLE"), Some("/own"));
    let measured = launch(&program(None), &plan, &with(CollectivesOption::Measure), &own);
    assert_eq!(value(&measured, "NUMAMPI_TABLE"), Some("/s/table"));
    let refused = launch(&program(Some(Obstacle::Go)), &plan, &options, &[]);
    assert_eq!(value(&refused, "NUMAMPI_COLLECTIVES"), None);
    assert!(
        refused.notes.iter().any(|note| note.contains("its collectives are those of its MPI")),
        "{:?}",
        refused.notes
    );
    let unasked = launch(&program(None), &plan, &RunOptions::default(), &[]);
    assert_eq!(value(&unasked, "NUMAMPI_COLLECTIVES"), None);
}

#[test]
fn loops_are_adaptive_where_the_program_can_load_the_library() {
    let loops = Some(AdaptiveLoops { library: "/c/libnumasched.so".into(), chunk: Some(64) });
    let options = RunOptions { loops, ..RunOptions::default() };
    let plan = plan(&[(0, 0)], Memory::default());
    let plain = launch(&program(None), &plan, &options, &[]);
    assert_eq!(value(&plain, "LD_PRELOAD"), Some("/c/libnumaplace.so:/c/libnumasched.so"));
    assert_eq!((value(&plain, "NUMASCHED_CHUNK"), value(&plain, "OMP_SCHEDULE")), (Some("64"), None));
    assert_eq!(plain.notes.len(), 0);
    let fixed = launch(&program(None), &plan, &options, &[("OMP_SCHEDULE", "static,4")]);
    assert!(fixed.notes[0].starts_with("OMP_SCHEDULE is 'static,4', so loops"), "{:?}", fixed.notes);
    let llvm = Program { libomp: true, ..program(None) };
    let llvm = launch(&llvm, &plan, &options, &[]);
    assert_eq!(value(&llvm, "OMP_SCHEDULE"), Some("static_steal"));
    assert!(llvm.notes[0].contains("schedule(guided) stay as they are"), "{:?}", llvm.notes);
    for (obstacle, preloads, note) in [
        (Obstacle::Static, true, "only loops of programs that it starts are adaptive"),
        (Obstacle::Go, false, "is a Go program: its loops stay as they are"),
        (Obstacle::Declined, true, "is started with --no-library: its threads are not bound"),
    ] {
        let launch = launch(&program(Some(obstacle)), &plan, &options, &[]);
        let list = value(&launch, "LD_PRELOAD").unwrap_or_default();
        assert_eq!(list.contains("libnumasched.so"), preloads, "{list}");
        assert!(launch.notes.iter().any(|line| line.contains(note)), "{:?}", launch.notes);
    }
    let checked = Program { sanitizer: Some(Sanitizer::Other("ThreadSanitizer")), ..program(None) };
    let checked = launch(&checked, &plan, &options, &[]);
    assert_eq!(value(&checked, "LD_PRELOAD"), Some("/c/libnumaplace.so"));
    assert!(checked.notes[0].ends_with("--loops is left out"), "{:?}", checked.notes);
}

#[test]
fn a_program_with_a_sanitizer_keeps_its_own_malloc() {
    let allocator = Some(Allocator { library: "/c/libnumalloc.so".into(), profile: "numa" });
    let options = RunOptions { allocator, ..RunOptions::default() };
    let checked = Program { sanitizer: Some(Sanitizer::Other("ThreadSanitizer")), ..program(None) };
    let launch = launch(&checked, &plan(&[(0, 0)], Memory::default()), &options, &[]);
    assert_eq!(
        launch.notes,
        ["solver has the ThreadSanitizer, which needs its own malloc: --alloc numa is left out"]
    );
    assert_eq!(value(&launch, "LD_PRELOAD"), Some("/c/libnumaplace.so"));
}
