//! The raw file of SPEC's tools (`.rsf`), from which they write all others: a field a line,
//! `spec.cpu2017.results.505_mcf_r.base.000.ratio: 12.380557`. Long texts have a number behind
//! their name for each of their lines, or are packed.

use std::collections::BTreeMap;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::suites::{self, Year};
use super::{Cell, MAX_BANNER, MAX_ROWS, Row, Sheet, Tune, is_component, number};

/// A packed note is no longer than this, unpacked.
const MAX_NOTE: u64 = 1 << 20;

/// Fields of one iteration, or of the whole result, that are read.
const MAX_FIELDS: usize = 200_000;

/// How its fields begin.
const PREFIXES: [(&str, Year); 2] = [("spec.cpu2006.", Year::Cpu2006), ("spec.cpu2017.", Year::Cpu2017)];

/// A field's generation, name and value.
fn field(line: &str) -> Option<(Year, &str, &str)> {
    let line = line.trim_start();
    let (prefix, year) = PREFIXES.iter().find(|(prefix, _)| line.starts_with(prefix))?;
    let (name, value) = line[prefix.len()..].split_once(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    name.chars().all(is_name).then(|| (*year, name, value.trim()))
}

/// The name of a field of the whole result, with its generation's prefix.
pub(super) fn field_name(line: &str) -> Option<&str> {
    let (_, name, _) = field(line)?;
    (!name.starts_with("results.")).then(|| line.split(':').next().unwrap_or_default())
}

pub(super) fn is_one(text: &str) -> bool {
    let known = |line: &str| field(line).is_some_and(|(_, name, _)| name.starts_with("results."));
    text.contains("spec.cpu20") && text.lines().any(known)
}

/// The whole result's fields: lines of one text are one after the other.
#[derive(Default)]
struct Fields<'t>(BTreeMap<&'t str, Vec<&'t str>>);

impl<'t> Fields<'t> {
    /// Without the number of its line: `hw_memory000`, `notes_plat_sysinfo_015`.
    fn add(&mut self, name: &'t str, value: &'t str) {
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let plain = if digits >= 3 { &name[..name.len() - 3] } else { name };
        self.0.entry(plain.trim_end_matches('_')).or_default().push(value);
    }

    fn first(&self, name: &str) -> &'t str {
        self.0.get(name).and_then(|lines| lines.first()).copied().unwrap_or_default()
    }

    fn lines(&self, name: &str) -> Vec<String> {
        self.0.get(name).into_iter().flatten().map(ToString::to_string).collect()
    }
}

/// Which iteration it is: its component, its tuning and its number.
type Which<'t> = (&'t str, Tune, &'t str);

/// Iterations of components, in the file's order.
#[derive(Default)]
struct Iterations<'t> {
    all: Vec<(Which<'t>, BTreeMap<&'t str, &'t str>)>,
    places: BTreeMap<Which<'t>, usize>,
    left_out: usize,
}

impl<'t> Iterations<'t> {
    /// `505_mcf_r.base.000.ratio`.
    fn add(&mut self, name: &'t str, value: &'t str) {
        let parts: Vec<&str> = name.splitn(4, '.').collect();
        let [component, tune, number, field] = parts[..] else { return };
        let Some(tune) = Tune::BOTH.into_iter().find(|known| known.word() == tune) else { return };
        let key = (component, tune, number);
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None if self.all.len() >= MAX_ROWS => {
                self.left_out += 1;
                return;
            }
            None => {
                self.places.insert(key, self.all.len());
                self.all.push((key, BTreeMap::new()));
                self.all.len() - 1
            }
        };
        self.all[place].1.entry(field).or_insert(value);
    }
}

/// An error says what keeps it from being a result.
pub(super) fn read(text: &str) -> anyhow::Result<Sheet> {
    let mut sheet = Sheet::default();
    let (mut fields, mut iterations) = (Fields::default(), Iterations::default());
    for (year, name, value) in text.lines().filter_map(field).take(MAX_FIELDS) {
        sheet.year = year;
        match name.strip_prefix("results.") {
            Some(rest) => iterations.add(rest, value),
            None => fields.add(name, value),
        }
    }
    suite(&mut sheet, &fields)?;
    sheet.left_out = iterations.left_out;
    let mut selected: BTreeMap<String, [Cell; 2]> = BTreeMap::new();
    let mut names: Vec<String> = Vec::new();
    for ((component, tune, _), own) in &iterations.all {
        let name = own.get("benchmark").map_or_else(|| component.replacen('_', ".", 1), ToString::to_string);
        if !is_component(&name) {
            continue;
        }
        let cell = cell(own, &sheet);
        if !selected.contains_key(&name) {
            names.push(name.clone());
        }
        let chosen = selected.entry(name.clone()).or_default();
        if cell.selected {
            chosen[*tune as usize] = cell.clone();
        }
        let mut cells = [Cell::default(), Cell::default()];
        cells[*tune as usize] = cell;
        sheet.rows.push(Row { name, selected_table: false, cells });
    }
    // As the other forms have it: what has no selected iteration was not run, for SPEC.
    let none = || Cell { status: "NR".to_string(), ..Cell::default() };
    for name in names {
        let cells = selected.remove(&name).unwrap_or_default();
        let cells = cells.map(|cell| if cell.selected { cell } else { none() });
        sheet.rows.push(Row { name, selected_table: true, cells });
    }
    for (tune, field) in [(Tune::Base, "basemean"), (Tune::Peak, "peakmean")] {
        let title = sheet.headline(tune);
        let said = fields.0.contains_key(field).then(|| suites::printed(&title, fields.first(field)));
        sheet.printed.extend(said.flatten().map(|(_, printed)| printed));
    }
    sheet.valid = match fields.first("invalid") {
        "0" => Some(true),
        "1" => Some(false),
        _ => None,
    };
    // Where SPEC took it back, this says why.
    fields.lines("nc").iter().for_each(|line| sheet.judged(line));
    sheet.documented = sheet.year == Year::Cpu2006;
    sheet.banner.extend(fields.lines("errors").into_iter().take(MAX_BANNER));
    machine(&mut sheet, &fields);
    Ok(sheet)
}

/// Which suite it is of, and whether it is for speed or for throughput.
fn suite(sheet: &mut Sheet, fields: &Fields) -> anyhow::Result<()> {
    if let Some(suite) = suites::suite_2017(fields.first("name")).filter(|_| sheet.year == Year::Cpu2017) {
        sheet.titled((Year::Cpu2017, suite));
        return Ok(());
    }
    let is_floating = match fields.first("metric") {
        metric if metric.starts_with("CINT") => Some(false),
        metric if metric.starts_with("CFP") => Some(true),
        _ => None,
    };
    let speed = match (fields.first("runmode"), fields.first("rate")) {
        ("speed", _) | ("", "0") => Some(true),
        ("rate", _) | ("", "1") => Some(false),
        _ => None,
    };
    let (Some(is_floating), Some(speed)) = (is_floating, speed) else {
        anyhow::bail!(
            "it is a raw file of {} without the name of its suite: its beginning was cut off",
            sheet.year.word()
        );
    };
    let kind = if is_floating { "Floating Point" } else { "Integer" };
    let suite = match sheet.year {
        Year::Cpu2017 => format!("{kind} {}", if speed { "Speed" } else { "Rate" }),
        Year::Cpu2006 => kind.to_string(),
    };
    (sheet.suite, sheet.speed) = (suite, speed);
    Ok(())
}

fn cell(own: &BTreeMap<&str, &str>, sheet: &Sheet) -> Cell {
    let text = |name: &str| own.get(name).copied().unwrap_or_default();
    let mut unread = None;
    let mut value = |name: &str| {
        number(text(name)).unwrap_or_else(|text| {
            unread = Some(text);
            None
        })
    };
    let (time, rate) = (value("reported_time"), value("ratio"));
    let copies = match (sheet.speed, sheet.year) {
        (true, Year::Cpu2006) => None,
        (true, Year::Cpu2017) => text("threads").parse().ok(),
        (false, _) => text("copies").parse().ok(),
    };
    Cell {
        copies,
        time,
        rate,
        // Six decimals.
        rounding: rate.filter(|rate| *rate > 0.0).map_or(0.0, |rate| 0.5e-6 / rate),
        selected: text("selected") == "1",
        status: text("valid").chars().take(10).collect(),
        unread,
    }
}

/// Facts of the host, by the labels of the other forms.
fn machine(sheet: &mut Sheet, fields: &Fields) {
    for (name, label) in [
        ("hw_vendor", "Hardware Vendor"),
        ("hw_model", "Hardware Model"),
        ("test_date", "Date tested"),
        ("hw_cpu_name", "CPU Name"),
        ("hw_cpu", "CPU Name"),
        ("hw_cpu_max_mhz", "Max MHz"),
        ("hw_cpu_nominal_mhz", "Nominal"),
        ("hw_cpu_mhz", "CPU MHz"),
    ] {
        sheet.field(label, &fields.lines(name));
    }
    let counts = [("hw_ncores", "cores"), ("hw_nchips", "chips"), ("hw_nthreadspercore", "threads/core")];
    let enabled = counts.map(|(name, word)| format!("{} {word}", fields.first(name)));
    sheet.field("Enabled", &[enabled.join(", ")]);
    for (name, label) in [
        ("hw_memory", "Memory"),
        ("hw_disk", "Storage"),
        ("sw_os", "OS"),
        ("sw_compiler", "Compiler"),
        ("fw_bios", "Firmware"),
        ("sw_file", "File System"),
    ] {
        sheet.field(label, &fields.lines(name));
    }
    let packed = ["notes_plat_sysinfo", "compnotes_sysinfo"].map(|name| fields.lines(name));
    for text in packed.iter().filter_map(|lines| note(lines)) {
        text.lines().for_each(|line| sheet.ran_on(line));
    }
}

/// A note as it is, or what is packed in it: behind an `@` zlib's, in base64.
fn note(lines: &[String]) -> Option<String> {
    let Some(packed) = lines.first()?.strip_prefix('@') else { return Some(lines.join("\n")) };
    let whole = [packed].into_iter().chain(lines.iter().skip(1).map(String::as_str)).collect::<String>();
    let bytes = STANDARD.decode(whole).ok()?;
    let mut text = Vec::new();
    flate2::read::ZlibDecoder::new(bytes.as_slice()).take(MAX_NOTE).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}
