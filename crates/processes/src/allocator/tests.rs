use super::*;
use numakit_testing::sysfs::root;

fn refusal(yama: &str, user: u32, own: u32, capabilities: &str) -> String {
    let status = |uid: u32| format!("Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nCapEff:\t{capabilities}\n");
    let (theirs, ours) = (status(user), status(own));
    let files = [("/proc/7/status", theirs.as_str()), ("/proc/self/status", &ours), (YAMA, yama)];
    refused(&root(&files), 7).to_string()
}

#[test]
fn a_refusal_says_what_refuses_and_what_permits_it() {
    const NONE: &str = "0000000000000000";
    let sysctl = "run as root, or as root: sysctl kernel.yama.ptrace_scope=0";
    assert!(refusal("1\n", 1000, 1000, NONE).ends_with(sysctl));
    assert!(refusal("1\n", 1000, 1000, NONE).contains("kernel.yama.ptrace_scope is 1"));
    assert!(refusal("2\n", 1000, 1000, NONE).ends_with(sysctl));
    assert!(refusal("3\n", 0, 0, "000001ffffffffff").contains("ptrace_scope is 3; boot"));
    let other = refusal("1\n", 1001, 1000, NONE);
    assert!(other.contains("it belongs to user 1001; run as root, or as the user"), "{other}");
    assert!(refusal("0\n", 0, 0, "00000000a80425fb").contains("root lacks CAP_SYS_PTRACE"));
}

#[test]
fn this_process_has_another_allocator() {
    let own = std::process::id();
    let error = AllocatorReader::open(own).unwrap_err();
    assert!(matches!(&error, AllocatorError::NotLoaded { pid, .. } if *pid == own), "{error}");
    assert!(error.to_string().contains("'numa run --alloc numa -- CMD'"));
    assert_eq!(AllocatorReader::open(4_194_305).unwrap_err(), AllocatorError::NoProcess(4_194_305));
}
