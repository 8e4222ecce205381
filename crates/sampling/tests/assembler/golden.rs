//! The files of instructions, and the assembler that writes their bytes.

use numakit_sampling::operand::AccessKind;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A line of a file.
#[derive(Debug, Clone)]
pub struct Line {
    /// Kind, size and rule, or `none` or `unknown`.
    pub words: Vec<String>,
    pub address: String,
    pub assembly: String,
    pub bytes: Vec<u8>,
}

/// An assembler for a file.
pub struct Assembler {
    pub file: &'static str,
    pub program: &'static str,
    pub copy: &'static str,
    pub head: &'static str,
}

impl Assembler {
    fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/assembler").join(self.file)
    }

    pub fn lines(&self) -> Vec<Line> {
        let text = fs::read_to_string(self.path()).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(parse).collect()
    }

    /// What the assembler makes of each line; `None` if it is not installed.
    fn assemble(&self, lines: &[Line]) -> Option<Vec<Vec<u8>>> {
        Command::new(self.program).arg("--version").output().ok()?;
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let (source, object, binary) = (
            folder.join(self.file),
            folder.join(self.file).with_extension("o"),
            folder.join(self.file).with_extension("bin"),
        );
        let slot = |line: &Line| format!(".balign 32\n.byte 2f-1f, 0, 0, 0\n1: {}\n2:\n", line.assembly);
        let text = format!("{}\n{}", self.head, lines.iter().map(slot).collect::<String>());
        fs::write(&source, text).unwrap();
        let run = |command: &mut Command| {
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        run(Command::new(self.program).arg(&source).arg("-o").arg(&object));
        run(Command::new(self.copy).args(["-O", "binary", "-j", ".text"]).arg(&object).arg(&binary));
        let all = fs::read(&binary).unwrap();
        let slots = (0..lines.len()).map(|at| {
            let slot = &all[32 * at..];
            slot[4..4 + usize::from(slot[0])].to_vec()
        });
        Some(slots.collect())
    }

    /// The bytes in the file are those of the assembler.
    pub fn check(&self) {
        let lines = self.lines();
        let Some(assembled) = self.assemble(&lines) else {
            return numakit_skips::TOOLS.skip(format!("there is no {}", self.program));
        };
        if std::env::var_os("UPDATE").is_some() {
            let head: String = fs::read_to_string(self.path())
                .unwrap()
                .lines()
                .filter(|line| line.starts_with('#'))
                .map(|line| format!("{line}\n"))
                .collect();
            let body = lines.iter().zip(&assembled).map(|(line, bytes)| line.with(bytes));
            fs::write(self.path(), head + &body.collect::<String>()).unwrap();
            return;
        }
        for (line, bytes) in lines.iter().zip(&assembled) {
            assert_eq!(&line.bytes, bytes, "{}", line.assembly);
        }
    }
}

impl Line {
    fn with(&self, bytes: &[u8]) -> String {
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        format!("{} | {} | {} | {hex}\n", self.words.join(" "), self.address, self.assembly)
    }
}

fn parse(line: &str) -> Line {
    let fields: Vec<&str> = line.split('|').map(str::trim).collect();
    let hex = fields[3];
    let bytes = (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap());
    Line {
        words: fields[0].split(' ').map(str::to_owned).collect(),
        address: fields[1].to_owned(),
        assembly: fields[2].to_owned(),
        bytes: bytes.collect(),
    }
}

/// The kind of access that a word means.
pub fn kind(word: &str) -> AccessKind {
    match word {
        "load" => AccessKind::Load,
        "operand" => AccessKind::Operand,
        "store" => AccessKind::Store,
        "update" => AccessKind::Update,
        "atomic" => AccessKind::Atomic,
        "prefetch" => AccessKind::Prefetch,
        other => panic!("{other}"),
    }
}
