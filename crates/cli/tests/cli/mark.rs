use crate::runner::Folder;
use std::path::Path;
use std::process::Command;

#[test]
fn a_mark_prints_nothing() {
    if !cfg!(target_arch = "x86_64") {
        numakit_skips::MACHINE.skip("marks are instructions of x86-64");
        return;
    }
    let folder = Folder::new("mark");
    for what in ["begin", "end"] {
        let done = folder.run(&format!("mark {what}"));
        assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "", ""));
    }
    folder.run("mark middle").says(2, "[possible values: begin, end]");
    folder.run("mark").says(2, "<WHAT>");
}

const BEGIN: [u8; 7] = [0x0f, 0x1f, 0x80, 0x01, 0x4d, 0x4e, 0x53];
const END: [u8; 7] = [0x0f, 0x1f, 0x80, 0x02, 0x4d, 0x4e, 0x53];

fn times(bytes: &[u8], instruction: [u8; 7]) -> usize {
    bytes.windows(7).filter(|window| *window == instruction).count()
}

#[test]
fn the_header_is_that_instruction_in_c_and_in_cxx() {
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../native/include");
    let folder = Folder::new("markheader");
    let source = "#include \"numakit-mark.h\"\nint f(int x)\n{\n    NUMAKIT_MARK_BEGIN();\n    x++;\n    \
                  if (x)\n        NUMAKIT_MARK_END();\n    else\n        NUMAKIT_MARK_END();\n    return x;\n}\n";
    for (compiler, file, standard) in [("cc", "mark.c", "-std=c11"), ("c++", "mark.cc", "-std=c++11")] {
        std::fs::write(folder.path(file), source).unwrap();
        let object = folder.path(&format!("{file}.o"));
        let mut command = Command::new(compiler);
        command.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-c", "-I", header]);
        let Ok(output) = command.arg(folder.path(file)).arg("-o").arg(&object).output() else {
            numakit_skips::COMPILERS.skip_part(format_args!("no {compiler} here"));
            continue;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let bytes = std::fs::read(Path::new(&object)).unwrap();
        if cfg!(target_arch = "x86_64") {
            assert_eq!(times(&bytes, BEGIN), 1, "{compiler}");
            assert!((1..=2).contains(&times(&bytes, END)), "{compiler}");
        }
    }
}

/// The verb executes the same instructions: the program contains both.
#[test]
fn the_program_has_the_same_instructions() {
    if cfg!(target_arch = "x86_64") {
        let program = std::fs::read(env!("CARGO_BIN_EXE_numa")).unwrap();
        assert!(times(&program, BEGIN) >= 1 && times(&program, END) >= 1);
    }
}
