//! Reads the file of a cure. Any user can write one, so nothing in it is believed before it is checked.

use crate::{
    Cure, CuredIdentity, CuredObject, FRACTIONS, ObjectPart, ObjectPolicy, ProgramFile, ReturnAddress,
    SetVariable, SharingThreads,
};
use numakit_sys::file::named_text;
use serde::de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Larger files are refused. Results of `numa explain --json`, which have a cure too, have a few MB.
pub const MAX_BYTES: u64 = 64 << 20;
/// More objects are refused: observations name at most some hundred.
pub const MAX_OBJECTS: usize = 4096;
/// More pairs of threads that share data are refused.
pub const MAX_PAIRS: usize = 4096;
/// The longest build ID, in hexadecimal digits.
const MAX_BUILD_ID: usize = 80;
/// The variables that a cure may set, and the beginnings of others. Those of the loader would run any code.
const VARIABLES: [&str; 9] = [
    "GLIBC_TUNABLES",
    "GODEBUG",
    "JDK_JAVA_OPTIONS",
    "MALLOC_CONF",
    "MALLOC_MMAP_MAX_",
    "MALLOC_TRIM_THRESHOLD_",
    "MIMALLOC_ALLOW_LARGE_OS_PAGES",
    "MIMALLOC_LARGE_OS_PAGES",
    "PYTHONMALLOC",
];
const BEGINNINGS: [&str; 2] = ["OMP_", "KMP_"];

/// What is wrong with the content of a cure.
#[derive(Debug, Error)]
pub enum CureFlaw {
    /// It has another form.
    #[error("{0}")]
    Form(#[from] serde_json::Error),
    /// It has no version that there is.
    #[error("its version is {0}")]
    Version(u64),
    /// Its threads have no order.
    #[error("the numbers in 'threads.working' are not in ascending order")]
    Threads,
    /// It has too many pairs of threads.
    #[error("'sharing' has {0} pairs of threads, more than the {MAX_PAIRS} that a cure can have")]
    Pairs(usize),
    /// A pair of threads that share data is none.
    #[error(
        "'sharing' has the threads {} and {} with a share of {}: it needs two of 'threads.working', the lower one first, and a \
         share from 0 to 1",
        .0.threads[0], .0.threads[1], .0.share
    )]
    Sharing(SharingThreads),
    /// It sets a variable that is no switch of a runtime.
    #[error("it sets the variable '{0}', which is no switch of a runtime that numa knows; leave it out")]
    Variable(String),
    /// It sets a variable to what no variable can be.
    #[error("the variable '{0}' cannot be set to '{1}'")]
    Value(String, String),
    /// What should be a build ID is none.
    #[error("'{id}' is no build ID of {file}: it has at most {MAX_BUILD_ID} hexadecimal digits", id = .0.build_id, file = .0.file)]
    BuildId(ProgramFile),
    /// An object of it cannot be used.
    #[error("object '{name}': {flaw}")]
    Object {
        /// Its name.
        name: String,
        /// What is wrong with it.
        flaw: ObjectFlaw,
    },
}

/// What is wrong with an object of a cure.
#[derive(Debug, Error)]
pub enum ObjectFlaw {
    /// Another build of its file would not be noticed.
    #[error("{0} has no build ID, so another build of it would not be noticed")]
    NoBuildId(String),
    /// What should be a build ID is none.
    #[error("'{id}' is no build ID of {file}", id = .0.build_id, file = .0.file)]
    BuildId(ProgramFile),
    /// The addresses of a variable are none.
    #[error("{bytes} bytes from {address:#x} are no variable")]
    Addresses {
        /// The first one.
        address: u64,
        /// Their number.
        bytes: u64,
    },
    /// It has too many return addresses, or none.
    #[error("its chain has {0} addresses; 1 to {most} are possible", most = CuredIdentity::MAX_CHAIN)]
    Chain(usize),
    /// No blocks are like that.
    #[error("{count} blocks of {smallest} to {largest} bytes are no blocks")]
    Blocks {
        /// Their number.
        count: u64,
        /// The smallest size.
        smallest: u64,
        /// The largest one.
        largest: u64,
    },
    /// It is divided into nothing.
    #[error("it has no parts")]
    NoParts,
    /// A part of it overlaps another one, or ends behind it.
    #[error("its part from {from} to {to} overlaps another one or is not within 0 to {FRACTIONS}")]
    Part {
        /// Where it begins.
        from: u32,
        /// Where it ends.
        to: u32,
    },
    /// A share is none.
    #[error("its part from {from} to {to} is {sure} sure, which is not between 0 and 1")]
    Sure {
        /// Where the part begins.
        from: u32,
        /// Where it ends.
        to: u32,
        /// The share.
        sure: f64,
    },
}

/// Why a file is no cure that can be used.
#[derive(Debug, Error)]
pub enum CureError {
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It is no cure.
    #[error("{path} is not a cure of 'numa explain --cure', or it is damaged: {flaw}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        flaw: Box<CureFlaw>,
    },
    /// A newer version of numa wrote it.
    #[error("{path} has version {found} of the form; this numa reads {known}: use the numa that wrote it, or a newer one",
        known = Cure::VERSION)]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// A result of `numa explain --json` without a cure.
    #[error(
        "{0} has no cure: numa explain had not ended, or an older numa wrote it; observe the program again"
    )]
    Without(PathBuf),
}

/// Reads the cure in a file of `numa explain --cure` or `--json`. Never waits: what is no regular file is refused.
pub fn read(path: &Path) -> Result<Cure, CureError> {
    let text =
        named_text(path, MAX_BYTES).map_err(|error| CureError::Read { path: path.to_owned(), error })?;
    parse(path, &text)
}

/// The cure in this text of a file.
pub fn parse(path: &Path, text: &str) -> Result<Cure, CureError> {
    let damaged = |flaw: CureFlaw| CureError::Damaged { path: path.to_owned(), flaw: Box::new(flaw) };
    let form: Form = serde_json::from_str(text).map_err(|error| damaged(error.into()))?;
    let (version, is_inside) = match form.cure {
        None => return Err(CureError::Without(path.to_owned())),
        Some(Found::Version(version)) => (version, false),
        Some(Found::Cure(version)) => (version, true),
    };
    if version > u64::from(Cure::VERSION) {
        return Err(CureError::Newer { path: path.to_owned(), found: version });
    }
    if version != u64::from(Cure::VERSION) {
        return Err(damaged(CureFlaw::Version(version)));
    }
    let cure: Result<Cure, serde_json::Error> = match is_inside {
        true => serde_json::from_str(text).map(|Whole { cure }| cure),
        false => serde_json::from_str(text),
    };
    let cure = cure.map_err(|error| damaged(error.into()))?;
    check(&cure).map_err(damaged)?;
    Ok(cure)
}

/// A cure has its version here, and a result its cure.
#[derive(Deserialize)]
struct Form {
    cure: Option<Found>,
}

/// A result with its cure.
#[derive(Deserialize)]
struct Whole {
    cure: Cure,
}

/// The version of a cure, which may be inside of a result. Nothing else is kept of what is read.
enum Found {
    Version(u64),
    Cure(u64),
}

impl<'de> Deserialize<'de> for Found {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Found;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a cure or the number of its version")
            }

            fn visit_u64<E>(self, version: u64) -> Result<Found, E> {
                Ok(Found::Version(version))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
                let mut version = 0;
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "cure" => version = map.next_value()?,
                        _ => _ = map.next_value::<IgnoredAny>()?,
                    }
                }
                Ok(Found::Cure(version))
            }
        }
        from.deserialize_any(Either)
    }
}

/// Reads no more objects than a cure can have.
pub(crate) fn objects<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<CuredObject>, D::Error> {
    struct Objects;
    impl<'de> Visitor<'de> for Objects {
        type Value = Vec<CuredObject>;

        fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
            to.write_str("objects")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<CuredObject>, A::Error> {
            let mut objects = Vec::new();
            while let Some(object) = sequence.next_element()? {
                if objects.len() == MAX_OBJECTS {
                    return Err(A::Error::custom(format!(
                        "more objects than the {MAX_OBJECTS} that a cure can have"
                    )));
                }
                objects.push(object);
            }
            Ok(objects)
        }
    }
    from.deserialize_seq(Objects)
}

/// Checks what the types do not tell.
fn check(cure: &Cure) -> Result<(), CureFlaw> {
    if !cure.threads.working.is_sorted_by(|one, next| one < next) {
        return Err(CureFlaw::Threads);
    }
    if cure.sharing.len() > MAX_PAIRS {
        return Err(CureFlaw::Pairs(cure.sharing.len()));
    }
    let works = |thread: &u32| cure.threads.working.binary_search(thread).is_ok();
    let is_pair = |SharingThreads { threads, share }: &SharingThreads| {
        threads[0] < threads[1] && threads.iter().all(works) && (0.0..=1.0).contains(share)
    };
    if let Some(flaw) = cure.sharing.iter().find(|pair| !is_pair(pair)) {
        return Err(CureFlaw::Sharing(*flaw));
    }
    if !has_build_id(&cure.program) {
        return Err(CureFlaw::BuildId(cure.program.clone()));
    }
    for SetVariable { name, value, .. } in &cure.environment {
        if !VARIABLES.contains(&name.as_str()) && !BEGINNINGS.iter().any(|begin| name.starts_with(begin)) {
            return Err(CureFlaw::Variable(name.clone()));
        }
        if name.contains(['=', '\0']) || value.contains('\0') {
            return Err(CureFlaw::Value(name.clone(), value.clone()));
        }
    }
    cure.objects.iter().try_for_each(|object| {
        check_object(object).map_err(|flaw| CureFlaw::Object { name: object.name.clone(), flaw })
    })
}

fn check_object(object: &CuredObject) -> Result<(), ObjectFlaw> {
    match &object.identity {
        CuredIdentity::Variable { module, address, bytes } => {
            check_file(module)?;
            if *bytes == 0 || address.checked_add(*bytes).is_none() {
                return Err(ObjectFlaw::Addresses { address: *address, bytes: *bytes });
            }
        }
        CuredIdentity::Blocks { chain, count, smallest, largest, .. } => {
            if chain.is_empty() || chain.len() > CuredIdentity::MAX_CHAIN {
                return Err(ObjectFlaw::Chain(chain.len()));
            }
            chain.iter().try_for_each(|ReturnAddress { module, .. }| check_file(module))?;
            if *count == 0 || *smallest == 0 || smallest > largest {
                let (count, smallest, largest) = (*count, *smallest, *largest);
                return Err(ObjectFlaw::Blocks { count, smallest, largest });
            }
        }
    }
    match &object.policy {
        ObjectPolicy::Parts { parts, .. } => check_parts(parts),
        _ => Ok(()),
    }
}

fn check_parts(parts: &[ObjectPart]) -> Result<(), ObjectFlaw> {
    let mut end = 0;
    for &ObjectPart { from, to, sure, .. } in parts {
        if from < end || from >= to || to > FRACTIONS {
            return Err(ObjectFlaw::Part { from, to });
        }
        if !(0.0..=1.0).contains(&sure) {
            return Err(ObjectFlaw::Sure { from, to, sure });
        }
        end = to;
    }
    match parts.is_empty() {
        true => Err(ObjectFlaw::NoParts),
        false => Ok(()),
    }
}

fn check_file(file: &ProgramFile) -> Result<(), ObjectFlaw> {
    match has_build_id(file) {
        _ if file.build_id.is_empty() => Err(ObjectFlaw::NoBuildId(file.file.clone())),
        true => Ok(()),
        false => Err(ObjectFlaw::BuildId(file.clone())),
    }
}

/// Whether it has a build ID, or none, but nothing else in its place.
fn has_build_id(file: &ProgramFile) -> bool {
    let id = &file.build_id;
    id.len().is_multiple_of(2)
        && id.len() <= MAX_BUILD_ID
        && id.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cure, parts};
    use proptest::prelude::*;

    fn parsed(text: &str) -> Result<Cure, String> {
        parse(Path::new("c"), text).map_err(|error| error.to_string())
    }

    fn sharing(threads: [u32; 2], share: f64) -> Vec<SharingThreads> {
        vec![SharingThreads { threads, share }]
    }

    #[test]
    fn what_is_written_is_read_alone_and_inside_of_a_result() {
        let cure = Cure { sharing: sharing([0, 1], 0.25), ..cure(&[(0, 32, 0), (32, 64, 1)]) };
        let text = serde_json::to_string_pretty(&cure).unwrap();
        assert!(text.contains("\"address\": \"0x4040\"") && text.contains("\"cure\": 1"), "{text}");
        assert_eq!(parsed(&text), Ok(cure.clone()));
        assert_eq!(parsed(&format!("{{\"version\": 1, \"cure\": {text}}}")), Ok(cure));
        assert!(parsed("{\"version\": 1}").unwrap_err().contains("c has no cure"));
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_its_place() {
        let refused = |change: &dyn Fn(&mut Cure)| {
            let mut cure = cure(&[(0, 32, 0), (32, 64, 1)]);
            change(&mut cure);
            parsed(&serde_json::to_string(&cure).unwrap()).unwrap_err()
        };
        for (change, word) in [
            (&(|cure: &mut Cure| cure.version = 7) as &dyn Fn(&mut Cure), "has version 7"),
            (&|cure| cure.version = 0, "its version is 0"),
            (&|cure| cure.objects[0].policy = parts(&[(0, 40, 0), (32, 64, 1)]), "from 32 to 64 overlaps"),
            (&|cure| cure.objects[0].policy = parts(&[(0, 65, 0)]), "from 0 to 65 overlaps"),
            (&|cure| cure.objects[0].policy = parts(&[]), "object 'p': it has no parts"),
            (&|cure| cure.threads.working = vec![1, 1], "ascending"),
            (
                &|cure| cure.objects = vec![cure.objects[0].clone(); MAX_OBJECTS + 1],
                "more objects than the 4096",
            ),
            (&|cure| cure.sharing = sharing([0, 1], f64::INFINITY), "null"),
            (&|cure| cure.sharing = sharing([0, 1], 1.5), "a share of 1.5: it needs"),
            (&|cure| cure.sharing = sharing([1, 1], 0.5), "the threads 1 and 1 with"),
            (&|cure| cure.sharing = sharing([0, 2], 0.5), "the threads 0 and 2 with"),
            (&|cure| cure.sharing = vec![sharing([0, 1], 0.5)[0]; MAX_PAIRS + 1], "4097 pairs"),
            (
                &|cure| {
                    cure.objects[0].identity =
                        CuredIdentity::Variable { module: cure.program.clone(), address: u64::MAX, bytes: 2 };
                },
                "are no variable",
            ),
            (&|cure| cure.program.build_id = "xyz".to_owned(), "'xyz' is no build ID"),
            (&|cure| cure.environment[0].name = "LD_PRELOAD".to_owned(), "it sets the variable 'LD_PRELOAD'"),
        ] {
            let why = refused(change);
            assert!(why.contains(word), "{why}");
        }
        assert!(parsed("{").unwrap_err().contains("or it is damaged: EOF"));
        assert!(
            parsed(r#"{"cure": "1"}"#).unwrap_err().contains("expected a cure or the number of its version")
        );
        assert!(parsed(r#"{"cure": {"objects": []}}"#).unwrap_err().contains("its version is 0"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            let _ = parsed(&text);
        }
    }
}
