//! Compilers of the machine.

use std::path::Path;
use std::process::Command;

/// Compiles a source; false if that cannot be done here: there is no such compiler, or with these options it cannot build an
/// empty program either, as a library of theirs is missing. Any other failure is the source's, and the test's.
pub fn builds(compiler: &str, options: &[&str], source: &Path, program: &Path) -> bool {
    let run = |source: &Path| {
        let mut command = Command::new(compiler);
        command.arg("-o").arg(program).arg(source).args(options).output()
    };
    let Ok(output) = run(source) else { return false };
    if output.status.success() {
        return true;
    }
    let empty = program.with_extension("empty.c");
    std::fs::write(&empty, "int main(void) { return 0; }\n").unwrap();
    let has_all = run(&empty).is_ok_and(|output| output.status.success());
    assert!(!has_all, "{}", String::from_utf8_lossy(&output.stderr));
    false
}
