use super::*;
use std::os::unix::fs::PermissionsExt;

/// A folder that is removed after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("numakit-preload-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    fn cache(&self, folders: &[&str]) -> CacheDirectories {
        let user = fs::metadata(&self.0).unwrap().uid();
        CacheDirectories { user, folders: folders.iter().map(|name| self.0.join(name)).collect() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn library() -> &'static Embedded {
    Library::Place.embedded()
}

/// The files that loaders find at such a path.
fn files(path: &Path) -> Vec<PathBuf> {
    let text = path.to_str().unwrap();
    assert!(text.contains("/$LIB/"), "{text}");
    FOLDERS.map(|folder| PathBuf::from(text.replace(LIB, folder))).to_vec()
}

fn is_complete(path: &Path) -> bool {
    files(path).iter().all(|file| fs::read(file).unwrap() == library().content)
}

#[test]
fn the_library_is_extracted_once_and_completely() {
    let top = Folder::new("once");
    let path = top.cache(&["cache"]).extract(Library::Place).unwrap();
    let folder = top.0.join("cache").join(library().hash);
    assert_eq!(path, folder.join(LIB).join(library().name));
    assert!(is_complete(&path) && !path.exists());
    assert_eq!(&library().content[..4], b"\x7fELF");
    let numbers = || files(&path).iter().map(|file| fs::metadata(file).unwrap().ino()).collect::<Vec<_>>();
    let before = numbers();
    assert_eq!(top.cache(&["cache"]).extract(Library::Place).unwrap(), path);
    assert_eq!(numbers(), before);
    assert!(before.iter().all(|number| *number == fs::metadata(folder.join(library().name)).unwrap().ino()));
}

#[test]
fn the_loader_here_replaces_its_part_of_the_path() {
    let top = Folder::new("loader");
    let path = top.cache(&["cache"]).extract(Library::Place).unwrap();
    let own = own_lib_folder();
    let mut program = std::process::Command::new("cat");
    program.arg("/proc/self/maps").env("LD_PRELOAD", &path);
    let output = program.output().unwrap();
    if own.is_none() {
        numakit_skips::MACHINE.skip("this test is not linked with a glibc in one of its usual folders");
        return;
    }
    let maps = String::from_utf8_lossy(&output.stdout);
    assert!(
        maps.lines().any(|line| line.ends_with(library().name)),
        "{maps}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_damaged_library_is_replaced() {
    let top = Folder::new("damaged");
    let path = top.cache(&["cache"]).extract(Library::Place).unwrap();
    let content = library().content;
    let mut flipped = content.to_vec();
    *flipped.last_mut().unwrap() ^= 1;
    let (zeros, longer) = (vec![0; content.len()], [content, b"\0"].concat());
    for damaged in [&content[..100], &zeros[..], &flipped[..], &longer[..], b""] {
        fs::write(&files(&path)[0], damaged).unwrap();
        top.cache(&["cache"]).extract(Library::Place).unwrap();
        assert!(is_complete(&path));
    }
}

#[test]
fn threads_may_extract_it_at_the_same_time() {
    let top = Folder::new("threads");
    let place = top.cache(&["cache"]);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| place.extract(Library::Place).unwrap())).collect();
        for one in all {
            assert!(is_complete(&one.join().unwrap()));
        }
    });
}

#[test]
fn folders_that_others_may_write_to_are_not_used() {
    let top = Folder::new("open");
    let open = top.0.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(top.0.join("file"), "").unwrap();
    std::os::unix::fs::symlink(&open, top.0.join("link")).unwrap();
    let path = top.cache(&["open", "file", "link", "with blank", "good"]).extract(Library::Place).unwrap();
    assert!(path.starts_with(top.0.join("good")), "{}", path.display());
    let message = top.cache(&["open", "with blank"]).extract(Library::Place).unwrap_err().to_string();
    assert!(message.contains("with mode 777; only this user may be able to write to it"), "{message}");
    assert!(message.contains("its path has a colon or a blank"), "{message}");
}

#[test]
fn a_named_library_must_exist() {
    let top = Folder::new("named");
    let missing = Library::Place.named(top.0.join("none.so")).unwrap_err().to_string();
    assert!(missing.contains("where there is no file; unset NUMAKIT_PRELOAD"), "{missing}");
    let (divided, good) = (top.0.join("a:b.so"), top.0.join("good.so"));
    fs::write(&divided, "").unwrap();
    fs::write(&good, "").unwrap();
    assert!(matches!(Library::Place.named(divided), Err(PreloadError::Separator(..))));
    assert_eq!(Library::Place.named(good.clone()).unwrap(), good.canonicalize().unwrap());
}

#[test]
fn each_library_has_a_folder_and_a_variable_of_its_own() {
    let top = Folder::new("each");
    let place = top.cache(&["cache"]);
    let paths = Library::ALL.map(|library| place.extract(library).unwrap());
    assert_ne!(paths[0].parent(), paths[1].parent());
    assert!(paths[1].ends_with("$LIB/libnumaexplain.so"));
    assert_ne!(Library::Place.variable(), Library::Explain.variable());
}
