//! Finds the cards: in physical memory, as PCI functions of a simulated machine, or in files.

use super::card::Card;
use super::registers::{FIRST, IDENTITY, LAST, LENGTH, NEXT, Registers};
use crate::events::Identity;
use numakit_model::{Fix, Unavailable};
use numakit_sys::SysRoot;
use numakit_sys::window::{self, Window, WindowError};

const MISSING: &str = "counters of NumaConnect2 cards";
/// The card of the board of this CPU.
pub(crate) const LOCAL: u64 = 0xf000_0000;
/// In a folder or an archive: `ADDRESS.bin` for each window, the address as in `0xf0000000`.
pub(crate) const FOLDER: &str = "/dev/mem";
/// The table by which the kernel recognises such a machine.
const MADT: &str = "/sys/firmware/acpi/tables/APIC";
const FUNCTIONS: &str = "/sys/bus/pci/devices";
/// Memory shared with a simulator (ivshmem).
const VENDOR_DEVICE: (&str, &str) = ("0x1af4", "0x1110");
/// The resource of such a function that holds the window, and how large it is there.
const RESOURCE: u8 = 2;
const RESOURCE_LENGTH: u64 = 1 << 20;

/// Every card of a machine, or why there is none.
pub fn cards(root: &SysRoot) -> Result<Vec<Card>, Unavailable> {
    if !root.is_host() {
        return in_files(root);
    }
    let simulated = simulated(root)?;
    if !simulated.is_empty() {
        return Ok(simulated);
    }
    // Physical memory of other machines is not read: the address may belong to a device.
    match madt(root) {
        Madt::NumaConnect2 => {
            let open = |address| Window::physical(root, address, LENGTH).map_err(|e| unreadable(&e));
            Ok(numbered(chain(&mut |address| Ok(Box::new(open(address)?)))?))
        }
        Madt::Other => Err(no_cards(format!("{MADT} does not name one (NUMASC NCONECT2)"))),
        Madt::Unreadable if is_opteron(root) => {
            let seen = format!("{MADT}: permission denied");
            Err(Unavailable::new(MISSING, seen, Fix::Root { or: None }))
        }
        Madt::Unreadable => Err(no_cards("the CPUs are not Opterons".to_owned())),
    }
}

fn no_cards(seen: String) -> Unavailable {
    Unavailable::new(MISSING, seen, Fix::OtherMachine("a machine with such cards".to_owned()))
}

fn numbered(found: Vec<Box<dyn Registers>>) -> Vec<Card> {
    (0..).zip(found).map(|(number, registers)| Card::new(number, registers, false)).collect()
}

fn in_files(root: &SysRoot) -> Result<Vec<Card>, Unavailable> {
    let path = |address: u64| format!("{FOLDER}/{address:#x}.bin");
    if !root.exists(&path(LOCAL)) {
        let seen = format!("{} has no {}", root.name(), path(LOCAL));
        return Err(no_cards(seen));
    }
    let fix = |error: WindowError| {
        let fix = format!("put the {LENGTH:#x} bytes of each card's registers into a file there");
        Unavailable::new(MISSING, error.to_string(), Fix::Step(fix))
    };
    let found = chain(&mut |address| {
        let window = Window::file(root, &path(address), LENGTH).map_err(fix)?;
        Ok(Box::new(window) as Box<dyn Registers>)
    });
    Ok(numbered(found?))
}

/// Opens the window at a physical address.
type Open<'a> = &'a mut dyn FnMut(u64) -> Result<Box<dyn Registers>, Unavailable>;

/// Follows the cards from the first to the last: each names the next.
pub(super) fn chain(open: Open<'_>) -> Result<Vec<Box<dyn Registers>>, Unavailable> {
    let local = identified(LOCAL, open)?;
    let word = |registers: &dyn Registers, offset| registers.read32(offset).unwrap_or(u32::MAX);
    let mut position = word(local.as_ref(), FIRST) >> 4 & LAST;
    let link = word(local.as_ref(), NEXT) >> 12 & 7;
    drop(local);
    let mut found = Vec::new();
    let mut seen = Vec::new();
    while position != LAST {
        if seen.contains(&position) {
            let words = format!("the card at position {position:#x} follows itself");
            return Err(Unavailable::new(MISSING, words, Fix::Step("start the machine again".to_owned())));
        }
        seen.push(position);
        let card = identified(address(position, link), open)?;
        position = word(card.as_ref(), NEXT) & LAST;
        found.push(card);
    }
    match found.is_empty() {
        true => Err(no_cards(format!("the card at {LOCAL:#x} names no first card"))),
        false => Ok(found),
    }
}

/// The address of a card's window, from its position in the fabric and its HyperTransport link.
pub(crate) fn address(position: u32, link: u32) -> u64 {
    0x3f00_0000_0000 | u64::from(position) << 28 | (23 + u64::from(link)) << 15
}

fn identified(address: u64, open: Open<'_>) -> Result<Box<dyn Registers>, Unavailable> {
    let registers = open(address)?;
    match registers.read32(0) {
        Some(IDENTITY) => Ok(registers),
        Some(other) => Err(no_cards(format!("{address:#x} reads {other:#010x}, not {IDENTITY:#010x}"))),
        None => Err(no_cards(format!("{address:#x} cannot be read"))),
    }
}

/// Why a window cannot be read.
fn unreadable(error: &WindowError) -> Unavailable {
    let fix = match error {
        WindowError::Denied(_) => Fix::Root { or: None },
        WindowError::Locked(_) => {
            Fix::Step("run numa as root with CAP_SYS_RAWIO, on a kernel without lockdown".to_owned())
        }
        WindowError::Refused(_) => {
            Fix::KernelParameter { parameter: "iomem=relaxed".to_owned(), option: None }
        }
        WindowError::Missing(_) => Fix::BuildOption("CONFIG_DEVMEM".to_owned()),
        _ => Fix::Step("see the kernel's messages: dmesg | tail".to_owned()),
    };
    Unavailable::new(MISSING, error.to_string(), fix)
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Madt {
    NumaConnect2,
    Other,
    Unreadable,
}

/// The OEM of the table of interrupt controllers; the kernel checks the same strings.
pub(super) fn madt(root: &SysRoot) -> Madt {
    let mut header = [0; 24];
    match root.front(MADT, &mut header) {
        Ok(24) if header[10..].starts_with(b"NUMASCNCONECT2") => Madt::NumaConnect2,
        Err(error) if error.kind == std::io::ErrorKind::PermissionDenied => Madt::Unreadable,
        _ => Madt::Other,
    }
}

/// The cards only work with Opterons: AMD's families 10h and 15h.
pub(super) fn is_opteron(root: &SysRoot) -> bool {
    let cpu = Identity::read(root).cpu.unwrap_or_default();
    ["AuthenticAMD-16-", "AuthenticAMD-21-"].iter().any(|start| cpu.starts_with(start))
}

/// The cards of a simulated machine: one function per node.
fn simulated(root: &SysRoot) -> Result<Vec<Card>, Unavailable> {
    let mut found: Vec<(u32, Window)> = Vec::new();
    for function in root.list(FUNCTIONS).unwrap_or_default() {
        let folder = format!("{FUNCTIONS}/{function}");
        if let Some(node) = candidate(root, &folder)
            && let Some(window) = of_function(root, &folder)?
        {
            found.push((node, window));
        }
    }
    found.sort_by_key(|(node, _)| *node);
    // The number of a card is that of its node, if each node has one card.
    let distinct = found.windows(2).all(|two| two[0].0 != two[1].0);
    let number = |at: u32, node: u32| if distinct { node } else { at };
    let card = |(at, (node, window))| Card::new(number(at, node), Box::new(window), true);
    Ok((0..).zip(found).map(card).collect())
}

/// The node of a function that may be a card: memory of the right size, shared by a simulator and
/// local to one node. Others are not even enabled.
pub(super) fn candidate(root: &SysRoot, folder: &str) -> Option<u32> {
    let line = |file: &str| root.text(&format!("{folder}/{file}")).map(|t| t.trim().to_owned()).ok();
    if line("vendor")? != VENDOR_DEVICE.0 || line("device")? != VENDOR_DEVICE.1 {
        return None;
    }
    let node = line("numa_node")?.parse().ok()?;
    let ranges = line("resource")?;
    let mut ends = ranges.lines().nth(usize::from(RESOURCE))?.split_whitespace();
    let mut end = || u64::from_str_radix(ends.next()?.strip_prefix("0x")?, 16).ok();
    let (first, last) = (end()?, end()?);
    (last.checked_sub(first)? == RESOURCE_LENGTH - 1).then_some(node)
}

/// The window of a function that is a card; another function is left as it was.
fn of_function(root: &SysRoot, folder: &str) -> Result<Option<Window>, Unavailable> {
    let off = root.text(&format!("{folder}/enable")).is_ok_and(|text| text.trim() == "0");
    if off {
        window::set_enabled(root, folder, true).map_err(|e| unreadable(&e))?;
    }
    let window = match Window::resource(root, folder, RESOURCE, LENGTH) {
        Ok(window) => Ok(Some(window).filter(|w| w.read32(0) == Some(IDENTITY))),
        Err(error) => Err(unreadable(&error)),
    };
    if off && !matches!(window, Ok(Some(_))) {
        // It is somebody else's; that it cannot be switched off again changes no_cards for us.
        let _ = window::set_enabled(root, folder, false);
    }
    window
}
