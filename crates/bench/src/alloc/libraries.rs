//! The allocators of this machine: that of the C library, libnumalloc, and others that are installed.

use crate::results::BenchResult;
use numakit_launch::preload::Library;
use numakit_sys::executable;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// An allocator that can be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allocator {
    pub name: &'static str,
    /// What is preloaded; empty for the allocator of the C library.
    pub preload: OsString,
    /// The file that has its functions.
    pub file: PathBuf,
}

pub(crate) const C_LIBRARY: &str = "C library";
pub(crate) const OURS: &str = "libnumalloc";

/// An allocator that may be installed, and the names of its library, the preferred one first.
struct Known {
    name: &'static str,
    files: &'static [&'static str],
}

const KNOWN: [Known; 8] = [
    Known { name: "jemalloc", files: &["libjemalloc.so.2", "libjemalloc.so"] },
    Known { name: "tcmalloc", files: &["libtcmalloc.so.4", "libtcmalloc.so"] },
    Known { name: "tcmalloc_minimal", files: &["libtcmalloc_minimal.so.4", "libtcmalloc_minimal.so"] },
    Known { name: "mimalloc", files: &["libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so"] },
    Known { name: "snmalloc", files: &["libsnmallocshim.so", "libsnmalloc.so"] },
    Known { name: "hoard", files: &["libhoard.so"] },
    Known { name: "rpmalloc", files: &["librpmallocwrap.so", "librpmalloc.so"] },
    Known {
        name: "scudo",
        files: &[
            "libscudo.so",
            "libclang_rt.scudo_standalone-x86_64.so",
            "libclang_rt.scudo_standalone-aarch64.so",
        ],
    },
];

/// The folders of a distribution, after that of the C library.
const FOLDERS: [&str; 6] = ["/usr/local/lib64", "/usr/local/lib", "/usr/lib64", "/lib64", "/usr/lib", "/lib"];

/// The allocators of this machine. The result says which ones are missing.
pub(crate) fn allocators(result: &mut BenchResult) -> Vec<Allocator> {
    let Some(c_library) = executable::c_library() else {
        result.leave_out(
            "allocators",
            "this numa is statically linked, so that it can preload no library; measure with one that is linked with glibc, as \
             'cargo build --release' makes it",
        );
        return Vec::new();
    };
    let mut found = vec![Allocator { name: C_LIBRARY, preload: OsString::new(), file: c_library.clone() }];
    match Library::Alloc.extract() {
        Ok(path) => found.push(Allocator {
            name: OURS,
            preload: path.clone().into_os_string(),
            file: without_variable(&path),
        }),
        Err(error) => result.leave_out(OURS, error.to_string()),
    }
    installed(&folders(&c_library), &mut found, result);
    found
}

/// The file without the part that the loader replaces.
fn without_variable(path: &Path) -> PathBuf {
    path.components().filter(|part| part.as_os_str() != "$LIB").collect()
}

/// Where libraries are: the folders of LD_LIBRARY_PATH first.
fn folders(c_library: &Path) -> Vec<PathBuf> {
    let variable = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(&variable).filter(|folder| folder.is_absolute()).collect();
    if let Some(own) = c_library.parent() {
        folders.push(own.to_owned());
        folders.extend(own.strip_prefix("/").ok().map(|own| Path::new("/usr").join(own)));
    }
    folders.extend(FOLDERS.map(PathBuf::from));
    folders.extend(clang_folders());
    folders
}

/// The folders of clang's own libraries, in which scudo is: `/usr/lib/llvm-19/lib/clang/19/lib/linux`.
fn clang_folders() -> Vec<PathBuf> {
    let inside = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths.into_iter().rev()
    };
    let is_llvm = |path: &PathBuf| {
        path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with("llvm-"))
    };
    let versions =
        inside(Path::new("/usr/lib")).filter(is_llvm).flat_map(|llvm| inside(&llvm.join("lib/clang")));
    versions.map(|version| version.join("lib/linux")).collect()
}

/// Adds the allocators whose library is in one of the folders. The result says which ones are missing.
fn installed(folders: &[PathBuf], found: &mut Vec<Allocator>, result: &mut BenchResult) {
    let mut missing = Vec::new();
    for known in &KNOWN {
        let files = known.files.iter().flat_map(|file| folders.iter().map(move |folder| folder.join(file)));
        match files.into_iter().find(|path| path.is_file()) {
            Some(file) => {
                found.push(Allocator { name: known.name, preload: file.clone().into_os_string(), file })
            }
            None => missing.push(known.name),
        }
    }
    if !missing.is_empty() {
        let folders = "LD_LIBRARY_PATH or the usual library folders";
        result.leave_out(missing.join(", "), format!("not installed: no library of them in {folders}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installed_allocators_are_found_and_others_named() {
        let folder = std::env::temp_dir().join(format!("numakit-libraries-{}", std::process::id()));
        let (first, second) = (folder.join("a"), folder.join("b"));
        for (folder, name) in
            [(&first, "libmimalloc.so.2"), (&second, "libmimalloc.so.3"), (&second, "libhoard.so")]
        {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(name), "").unwrap();
        }
        fs::create_dir_all(first.join("libjemalloc.so.2")).unwrap();
        let (mut found, mut result) = (Vec::new(), BenchResult::default());
        installed(&[first, second.clone()], &mut found, &mut result);
        fs::remove_dir_all(&folder).unwrap();
        let found: Vec<_> = found.into_iter().map(|allocator| (allocator.name, allocator.file)).collect();
        let at = |name| second.join(name);
        assert_eq!(found, [("mimalloc", at("libmimalloc.so.3")), ("hoard", at("libhoard.so"))]);
        assert_eq!(result.left_out.len(), 1);
        let missing = &result.left_out[0];
        assert_eq!(missing.what, "jemalloc, tcmalloc, tcmalloc_minimal, snmalloc, rpmalloc, scudo");
        assert!(missing.why.contains("LD_LIBRARY_PATH"), "{missing:?}");
    }

    #[test]
    fn the_c_library_and_ours_are_always_there() {
        let mut result = BenchResult::default();
        let found = allocators(&mut result);
        assert_eq!(found.iter().map(|one| one.name).take(2).collect::<Vec<_>>(), [C_LIBRARY, OURS]);
        assert!(found.iter().all(|one| one.file.is_file()), "{found:?}");
    }
}
