//! What a Java virtual machine says about itself in memory that other programs may read (`jstat` does): the file
//! `/tmp/hsperfdata_USER/PID`, which it has mapped.

use crate::proc::maps::MapsEntry;
use crate::remote;
use std::io;

/// The folder has this in its name.
const FOLDER: &str = "/hsperfdata_";
const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
/// The machine has 32 KiB; an option makes it larger.
const MAX_BYTES: u64 = 1 << 20;
/// Where the header has the place of the first entry and the number of entries.
const FIRST: usize = 24;
const COUNT: usize = 28;
const MAX_ENTRIES: usize = 10_000;
/// Of what the machine can do, one digit each. The first one says whether it answers.
const CAPABILITIES: &str = "sun.rt.jvmCapabilities";
const OPTIONS: &str = "java.rt.vmArgs";
const VERSION: &str = "java.property.java.vm.specification.version";

/// The data, copied.
#[derive(Debug)]
pub struct PerfData(Vec<u8>);

impl PerfData {
    /// Those of a process with these mappings; `None` if it has none.
    pub fn of(process: u32, maps: &str) -> io::Result<Option<Self>> {
        let is_data = |entry: &MapsEntry<'_>| entry.name.contains(FOLDER) && entry.readable;
        let Some(MapsEntry { range, .. }) = maps.lines().filter_map(MapsEntry::parse).find(is_data) else {
            return Ok(None);
        };
        let mut bytes = vec![0; (range.end - range.start).min(MAX_BYTES) as usize];
        let length = remote::read(process, range.start, &mut bytes)?;
        bytes.truncate(length);
        Ok(Self::new(bytes))
    }

    fn new(bytes: Vec<u8>) -> Option<Self> {
        bytes.starts_with(&MAGIC).then_some(Self(bytes))
    }

    /// Whether the machine answers those who attach. A machine that does not say so does not.
    pub fn answers(&self) -> bool {
        self.text(CAPABILITIES).is_some_and(|digits| digits.starts_with('1'))
    }

    /// Whether its code keeps frame pointers, by which call chains are followed.
    pub fn keeps_frame_pointers(&self) -> bool {
        self.text(OPTIONS).is_some_and(|options| options.contains("-XX:+PreserveFramePointer"))
    }

    /// The version of the machine: 8, 11, 17.
    pub fn version(&self) -> Option<u32> {
        let text = self.text(VERSION)?;
        text.strip_prefix("1.").unwrap_or(&text).parse().ok()
    }

    fn number(&self, at: usize) -> Option<usize> {
        let bytes = self.0.get(at..at.checked_add(4)?)?.try_into().ok()?;
        usize::try_from(i32::from_ne_bytes(bytes)).ok()
    }

    /// The text of this name.
    fn text(&self, wanted: &str) -> Option<String> {
        let mut entry = self.number(FIRST)?;
        for _ in 0..self.number(COUNT)?.min(MAX_ENTRIES) {
            let length = self.number(entry)?;
            let name = self.0.get(entry..)?.get(self.number(entry.checked_add(4)?)?..)?;
            if name.strip_prefix(wanted.as_bytes()).is_some_and(|rest| rest.first() == Some(&0)) {
                let text = self.0.get(entry..)?.get(self.number(entry.checked_add(16)?)?..)?;
                let text = text.split(|byte| *byte == 0).next()?;
                return Some(String::from_utf8_lossy(text).into_owned());
            }
            entry = entry.checked_add(length.max(1))?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Data with these entries.
    fn data(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.resize(FIRST, 0);
        bytes.extend(32i32.to_ne_bytes());
        bytes.extend((entries.len() as i32).to_ne_bytes());
        for (name, text) in entries {
            let start = 20 + name.len() as i32 + 1;
            let words = [start + text.len() as i32 + 1, 20, 0, 0, start];
            bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
            bytes.extend(name.bytes().chain([0]).chain(text.bytes()).chain([0]));
        }
        bytes
    }

    #[test]
    fn the_machine_says_whether_it_answers_and_its_version() {
        let of = |entries: &[(&str, &str)]| PerfData::new(data(entries)).unwrap();
        let modern = of(&[("sun.rt.x", "0"), (CAPABILITIES, "1100"), (VERSION, "17")]);
        assert!(modern.answers() && modern.version() == Some(17) && !modern.keeps_frame_pointers());
        assert!(of(&[(OPTIONS, "-Xmx1g -XX:+PreserveFramePointer")]).keeps_frame_pointers());
        let old = of(&[(VERSION, "1.8"), (CAPABILITIES, "0100")]);
        assert!(!old.answers() && old.version() == Some(8));
        assert!(!of(&[]).answers());
        assert_eq!(PerfData::new(b"cafe".to_vec()).map(|_| ()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(at in 0usize..200, value: i32, end in 4usize..200) {
            let mut bytes = data(&[("a", "b"), (CAPABILITIES, "1"), (VERSION, "21")]);
            let at = at.min(bytes.len() - 4).max(4);
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
            bytes.truncate(end);
            if let Some(data) = PerfData::new(bytes) {
                data.answers();
                data.version();
            }
        }
    }
}
