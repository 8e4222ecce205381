//! A language model whose page cache lies on one node, in the simulated machine: lines of far memory before
//! `numa file spread --by-use`, after it, and spread page by page.

use super::results::Results;
use crate::{process, workspace};
use anyhow::{Context, Result};
use numakit_guest::{Boot, Guest, Lines, Shape, Simulation, programs};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The sources of llama.cpp are in this package.
const PACKAGE: &str = "llama_cpp_python-0.3.36";
/// What builds it, and what writes a model.
const TOOLS: [&str; 5] = ["cmake", "ninja", "scikit-build-core", "pathspec", "gguf"];
/// A program for any processor with SSE 4.2, as the simulated machine has, without OpenMP.
const OPTIONS: [&str; 14] = [
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DGGML_NATIVE=OFF",
    "-DGGML_AVX=OFF",
    "-DGGML_AVX2=OFF",
    "-DGGML_FMA=OFF",
    "-DGGML_F16C=OFF",
    "-DGGML_BMI2=OFF",
    "-DGGML_OPENMP=OFF",
    "-DLLAMA_CURL=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_SERVER=OFF",
];
/// Of the lines that were far before, at most this share may be far afterwards.
const LIMIT: f64 = 1.0 / 3.0;

const SCRIPT: &str = r#"
F=/dev/shm/model.gguf
bench() { llama-bench -m $F -t 8 -p 0 -r 1 --numa distribute -lm mmap --no-warmup -o csv -n $1 > /tmp/told 2>&1 || { cat /tmp/told; exit 1; }; }
counted() { numa mark begin; bench 2; numa mark end; }
taskset 1 cp /root/model.gguf $F
counted
numa file spread --by-use $F -- llama-bench -m $F -t 8 -p 0 -r 1 --numa distribute -lm mmap --no-warmup -n 80
counted
numa file spread $F > /dev/null
counted
"#;

pub fn run(results: &mut Results) -> Result<()> {
    let (bench, model) = built()?;
    let boot = boot(&bench, &model)?;
    println!("{}", boot["model"].succeeded());
    let each = &boot.traffic.as_ref().context("nothing was counted")?.each;
    let [before, after, spread] = each.as_slice() else {
        anyhow::bail!("{} regions were counted, 3 were expected", each.len())
    };
    let mut show = |name: &str, lines: &Lines| -> Result<f64> {
        let (near, far) = lines.local_and_remote();
        results.show(&format!("far lines, {name}"), far as f64, "")?;
        results.show(&format!("their share, {name}"), 100.0 * far as f64 / (near + far) as f64, "%")?;
        Ok(far as f64)
    };
    let far_before = show("model on node 0", before)?;
    let far_after = show("by use", after)?;
    show("page by page", spread)?;
    results.at_most("far lines by use, of those before", far_after / far_before, "", LIMIT)
}

fn boot(bench: &Path, model: &Path) -> Result<Boot> {
    let guest = Guest::new(Shape::named("four")?)
        .simulate(Simulation::new())
        .memory_mib(512)
        .program(&programs::numa()?)
        .program(bench)
        .file(model, "/root/model.gguf")
        .timeout(Duration::from_secs(1800))
        .step("small", &["sh", "-c", "echo never > /sys/kernel/mm/transparent_hugepage/enabled"])
        .step("model", &["sh", "-c", SCRIPT]);
    Ok(guest.boot()?)
}

/// llama-bench and a model, in target/peers/models; built on first use, which takes minutes.
fn built() -> Result<(PathBuf, PathBuf)> {
    let folder = workspace::target().join("peers/models");
    let (bench, model) = (folder.join("build/bin/llama-bench"), folder.join("model.gguf"));
    if bench.is_file() && model.is_file() {
        return Ok((bench, model));
    }
    println!("building llama.cpp in {}; this takes minutes", folder.display());
    fs::create_dir_all(&folder)?;
    let tools = folder.join("tools");
    process::run(Command::new("python3").args(["-m", "venv"]).arg(&tools))?;
    let bin = tools.join("bin");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let tool = |name: &str| {
        let mut command = Command::new(bin.join(name));
        command.env("PATH", &path).current_dir(&folder);
        command
    };
    process::run(tool("pip").args(["install", "--quiet"]).args(TOOLS))?;
    let (name, version) = PACKAGE.split_once('-').context("the package has no version")?;
    let mut download = tool("pip");
    download.args(["download", "--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]);
    process::run(download.arg(format!("{}=={version}", name.replace('_', "-"))))?;
    process::run(Command::new("tar").arg("xf").arg(format!("{PACKAGE}.tar.gz")).current_dir(&folder))?;
    let source = format!("{PACKAGE}/vendor/llama.cpp");
    process::run(tool("cmake").args(["-G", "Ninja", "-S", &source, "-B", "build"]).args(OPTIONS))?;
    process::run(tool("ninja").args(["-C", "build", "llama-bench"]))?;
    process::run(tool("python").arg(workspace::root().join("xtask/python/model.py")).arg(&model))?;
    Ok((bench, model))
}
