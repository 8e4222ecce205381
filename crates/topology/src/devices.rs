//! PCI devices whose node is known and matters to programs.

use crate::reader::Reader;
use numakit_model::topology::Device;

const PCI: &str = "/sys/bus/pci/devices";

pub(crate) fn read(reader: &mut Reader<'_>) -> Vec<Device> {
    let names = reader.root.list(PCI).unwrap_or_default();
    let mut devices = Vec::new();
    for name in names {
        let class = reader.value(format_args!("{PCI}/{name}/class"), |b| Ok::<_, String>(class_of(b)));
        let Some(class) = class.flatten() else { continue };
        let node = reader.number(format_args!("{PCI}/{name}/numa_node"));
        // -1 means no node.
        if let Some(node) = node.and_then(|n| u32::try_from(n).ok()) {
            devices.push(Device { name: format!("pci {name}"), class: class.to_owned(), node: Some(node) });
        }
    }
    devices
}

/// The PCI base classes that are shown, by number. The last is for devices that fit none.
const CLASSES: [(&str, &str); 6] = [
    ("01", "storage"),
    ("02", "network"),
    ("03", "display"),
    ("0b", "accelerator"),
    ("12", "accelerator"),
    ("ff", ""),
];

fn class_of(content: &[u8]) -> Option<&'static str> {
    let text = std::str::from_utf8(content).ok()?;
    let digits = text.strip_prefix("0x")?;
    // Display controllers without an output (3D controllers): GPUs that only compute.
    if digits.starts_with("0302") || digits.starts_with("0380") {
        return Some("accelerator");
    }
    let code = digits.get(..2)?;
    CLASSES.into_iter().find(|(base, _)| *base == code).map(|(_, class)| class)
}
