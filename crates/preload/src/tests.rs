use super::*;
use std::os::unix::fs::PermissionsExt;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("numakit-preload-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    fn place(&self, folders: &[&str]) -> Place {
        let user = fs::metadata(&self.0).unwrap().uid();
        Place { user, folders: folders.iter().map(|name| self.0.join(name)).collect() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_library_is_laid_down_once_and_whole() {
    let top = Folder::new("once");
    let path = top.place(&["cache"]).lay_down().unwrap();
    assert_eq!(path, top.0.join("cache").join(HASH).join(NAME));
    assert_eq!(fs::read(&path).unwrap(), LIBRARY);
    assert_eq!(&LIBRARY[..4], b"\x7fELF");
    let number = fs::metadata(&path).unwrap().ino();
    assert_eq!(top.place(&["cache"]).lay_down().unwrap(), path);
    assert_eq!(fs::metadata(&path).unwrap().ino(), number);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn what_is_not_the_library_is_replaced() {
    let top = Folder::new("damaged");
    let path = top.place(&["cache"]).lay_down().unwrap();
    fs::write(&path, &LIBRARY[..100]).unwrap();
    top.place(&["cache"]).lay_down().unwrap();
    assert_eq!(fs::read(&path).unwrap(), LIBRARY);
}

#[test]
fn threads_may_lay_it_down_at_once() {
    let top = Folder::new("threads");
    let place = top.place(&["cache"]);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| place.lay_down().unwrap())).collect();
        for one in all {
            assert_eq!(fs::read(one.join().unwrap()).unwrap(), LIBRARY);
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
    let path = top.place(&["open", "file", "link", "with blank", "good"]).lay_down().unwrap();
    assert!(path.starts_with(top.0.join("good")), "{}", path.display());
    let message = top.place(&["open", "with blank"]).lay_down().unwrap_err().to_string();
    assert!(message.contains("with mode 777, not a folder that only this user writes to"), "{message}");
    assert!(message.contains("its path has a colon or a blank"), "{message}");
}

#[test]
fn a_library_that_is_named_must_be_there() {
    let top = Folder::new("named");
    let missing = named(top.0.join("none.so")).unwrap_err().to_string();
    assert!(missing.contains("where there is no file; unset NUMAKIT_PRELOAD"), "{missing}");
    let (divided, good) = (top.0.join("a:b.so"), top.0.join("good.so"));
    fs::write(&divided, "").unwrap();
    fs::write(&good, "").unwrap();
    assert!(matches!(named(divided), Err(PreloadError::Divided(_))));
    assert_eq!(named(good.clone()).unwrap(), good.canonicalize().unwrap());
}
