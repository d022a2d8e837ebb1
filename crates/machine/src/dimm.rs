//! Memory modules: slots, processors and arrays as SMBIOS or a printout of dmidecode reports them,
//! where each slot sits (`place`, by the rules of `platforms`), and whether that population is
//! balanced (`judge`, `moves`).

mod arrays;
mod balance;
mod boards;
pub(crate) mod cpus;
mod devices;
mod judge;
pub(crate) mod models;
mod moves;
mod names;
mod place;
mod platforms;
mod population;
mod printout;
mod smbios;
mod speed;
mod spoken;
mod systems;
mod whole;

use schemars::JsonSchema;
use serde::Serialize;

use super::Hypervisor;
use super::dmi::Dmi;
use model::{Entry, PRINTOUT, Snapshot, TABLES};

pub use population::{Balance, Confidence, DimmFinding, Population, SocketMemory};
pub use speed::DimmSpeed;

/// One memory slot as SMBIOS reports it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Dimm {
    /// The slot's name on the board.
    pub locator: String,
    pub bank: String,
    /// 0: an empty slot. `None`: the module's size is unknown.
    pub size_bytes: Option<u64>,
    /// What the module can do, in millions of transfers per second.
    pub speed_mts: Option<u32>,
    /// What it runs at.
    pub configured_mts: Option<u32>,
    pub data_width_bits: Option<u16>,
    /// With the bits of error correction.
    pub total_width_bits: Option<u16>,
    /// `DDR4`, `DDR5`, ...
    pub kind: Option<String>,
    /// Ranks of the module.
    pub ranks: Option<u32>,
    pub part: Option<String>,
    /// As the firmware has it: a name, or JEDEC's code followed by codes of factory and date.
    pub manufacturer: Option<String>,
    /// Load-reduced (LRDIMM); `None` where the tables do not say what kind of buffer it has.
    pub load_reduced: Option<bool>,
    /// Keeps its content without power (Optane, NVDIMM): no part of the population that is judged.
    pub persistent: bool,
    /// The speed from which its bandwidth is reckoned: at most the processor drives.
    #[serde(skip)]
    pub most_mts: Option<u32>,
    /// What its array holds.
    #[serde(skip)]
    pub(crate) holds: DeviceUse,
    /// Nothing says whether there is a module in it: the size has no line.
    #[serde(skip)]
    pub is_untold: bool,
    /// The processor's number from 0; with the next three null where no rule for this platform's
    /// names is known.
    pub socket: Option<u32>,
    /// The memory controller in the socket, from 0; null also where the processor's family has one
    /// or hides them.
    pub controller: Option<u32>,
    /// The channel in the socket, from 0 over all controllers.
    pub channel: Option<u32>,
    /// 0 is the slot that is filled first.
    pub slot_in_channel: Option<u32>,
}

impl Dimm {
    /// Whether a module of ordinary memory is in the slot.
    pub fn is_memory(&self) -> bool {
        self.is_filled() && !self.persistent
    }

    /// Whether a module is in the slot, if known.
    pub fn is_filled(&self) -> bool {
        self.size_bytes != Some(0) && !self.is_untold
    }

    /// The name on the board; the bank's name where the board's is missing.
    pub fn name(&self) -> &str {
        if self.locator.is_empty() { &self.bank } else { &self.locator }
    }
}

/// What an array's devices are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum DeviceUse {
    #[default]
    Modules,
    /// Memory on cards behind CXL.
    Cxl,
    /// Memory of the form "die": no module in a slot.
    Dies,
    /// Video memory, flash, caches: no memory of the system.
    Others,
}

/// A processor socket (SMBIOS type 4).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Processor {
    pub designation: String,
    /// The processor's name.
    pub version: Option<String>,
    /// Whether a processor sits in it; `None` where that is unknown.
    pub populated: Option<bool>,
    /// Switched off, by the user or by the firmware.
    pub is_disabled: bool,
}

/// A memory array (SMBIOS type 16): the box's, a processor's or a controller's, as the firmware
/// likes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct MemoryArray {
    pub slots: Option<u32>,
    /// The most that it takes.
    pub max_bytes: Option<u64>,
}

/// Addresses that an array (type 19) or a module (type 20) answers to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct MappedRange {
    /// The slot; null: the whole array.
    pub locator: Option<String>,
    /// The first byte's address.
    pub start: u64,
    /// The last byte's address.
    pub end: u64,
    /// Place in the interleave set, from 1; null where the firmware does not report it, 0 where it
    /// is not interleaved.
    pub interleave_position: Option<u32>,
}

/// All that the tables report about memory, in any form of printout or dump.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tables {
    pub dmi: Dmi,
    pub processors: Vec<Processor>,
    pub arrays: Vec<MemoryArray>,
    pub ranges: Vec<MappedRange>,
    pub dimms: Vec<Dimm>,
    /// Slots that arrays announce and the list does not have.
    pub missing: arrays::Missing,
    /// Whether the list goes to the structure that ends a table.
    pub is_ended: bool,
    /// Unplaced the list is not whole.
    pub cut: Option<String>,
    /// What of the lists is no module, or cannot be, as sentences.
    pub remarks: Vec<String>,
}

impl Tables {
    /// Whether all memory is of the kind that is soldered.
    fn is_soldered(&self) -> bool {
        let mut memory = self.dimms.iter().filter(|dimm| dimm.is_memory()).peekable();
        let is_low_power = |dimm: &Dimm| dimm.kind.as_ref().is_some_and(|kind| kind.starts_with("LPDDR"));
        memory.peek().is_some() && memory.all(is_low_power)
    }
}

/// Where a snapshot keeps what a printout says about itself.
pub const PRINTOUT_SIGNS: &str = model::vocabulary::host::probe::DMIDECODE_SIGNS;

/// What the snapshot reports: a printout first, for only who names one on purpose has one.
pub(super) fn tables(snapshot: &Snapshot) -> Tables {
    let mut tables = match (snapshot.lossy(PRINTOUT), snapshot.get(TABLES)) {
        (Some(text), _) => {
            let mut tables = printout::parse(&text);
            let signs = whole::Signs::of(&snapshot.lossy(PRINTOUT_SIGNS).unwrap_or_default());
            (tables.is_ended, tables.cut) = (signs.is_ended, signs.cut);
            tables.remarks.extend(signs.remarks);
            tables
        }
        (None, Some(Entry::Bytes(bytes))) => smbios::parse(bytes),
        (None, Some(Entry::Text(text))) => smbios::parse(text.as_bytes()),
        _ => Tables::default(),
    };
    devices::sort_out(&mut tables);
    // Firmware lists processors in any order; slots name them by number.
    tables.processors.sort_by_key(|processor| number_of(&processor.designation));
    tables
}

/// The number at a name's end (`CPU2`, `Proc 1`, `SOCKET 0`); without one all names are alike, and
/// stay as they were.
fn number_of(designation: &str) -> u32 {
    let digits = designation.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Places every slot and judges. `model`: the processor's name as the kernel reports it, for tables
/// without one.
pub(super) fn judge(
    mut tables: Tables,
    model: Option<&str>,
    hypervisor: &Hypervisor,
) -> (Vec<Dimm>, Population) {
    let told = tables.processors.iter().filter(|one| one.populated != Some(false));
    let told = told.filter_map(|one| one.version.as_deref()).find_map(models::cpu);
    let cpu = told.or_else(|| model.and_then(models::cpu));
    let limit = cpu.and_then(|cpu| cpu.limit_of(&tables.dimms));
    tables.remarks.extend(devices::bound_speeds(&mut tables.dimms, limit));
    // Soldered memory is in no slot.
    let rule = if tables.is_soldered() { None } else { place::place(&mut tables, cpu) };
    let population = judge::judge(&tables, cpu, rule, hypervisor);
    (tables.dimms, population)
}

/// Whether bytes are a table as `dmidecode --dump-bin` or the kernel writes it, and the table's own
/// part of them. A dump begins with the entry point in 32 bytes, `/sys/firmware/dmi/tables/DMI`
/// with a structure's header.
pub fn table_of(bytes: &[u8]) -> Option<&[u8]> {
    let table = if bytes.starts_with(b"_SM") { bytes.get(0x20..)? } else { bytes };
    smbios::is_table(table).then_some(table)
}

/// What a snapshot keeps of a printout as someone passes it on: the text of one system, and what
/// it says about itself in lines that blanking leaves out.
pub fn printout_of(raw: &str) -> [(&'static str, Entry); 2] {
    let (text, signs) = whole::of_printout(raw);
    [(PRINTOUT, Entry::Text(text)), (PRINTOUT_SIGNS, Entry::Text(signs))]
}

/// Whether a text is a printout of dmidecode: what else has its titles and none of what they stand
/// for.
pub fn is_printout(text: &str) -> bool {
    printout::parse(text) != Tables::default()
}

/// Whether a slot's name, or its module's, says that nothing is in it; some firmware writes so
/// where others write a size of nothing.
fn says_empty(text: &str) -> bool {
    const WORDS: [&str; 9] = [
        "no dimm",
        "nodimm",
        "no module",
        "no module installed",
        "not installed",
        "module not installed",
        "not present",
        "empty",
        "[empty]",
    ];
    WORDS.contains(&text.trim().to_lowercase().as_str())
}

/// What firmware writes where it has nothing to say; dmidecode's own words among it.
pub(crate) fn stated(text: &str) -> Option<String> {
    const NOTHING: [&str; 19] = [
        "",
        "not specified",
        "not provided",
        "not available",
        "not present",
        "no module installed",
        "no dimm",
        "nodimm",
        "unknown",
        "undefined",
        "none",
        "n/a",
        "null",
        "<bad index>",
        "<out of spec>",
        "[empty]",
        "empty",
        "to be filled by o.e.m.",
        "default string",
    ];
    let text = text.trim_matches(|c: char| c.is_whitespace() || c.is_control());
    let plain = text.to_lowercase();
    (!NOTHING.contains(&plain.as_str()) && !plain.chars().all(|c| c == '-' || c == '0'))
        .then(|| text.to_string())
}

#[cfg(test)]
mod rules_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod whole_tests;
