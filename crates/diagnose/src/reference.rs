//! Reference values: what is typical of a host's class, and how good a figure is against that.
//!
//! From a row to a reading: the class of the host with its parents (`class.rs`), the rows of the
//! nearest class that has any, joined from the lowest low to the highest high, the tolerance of the
//! worst of them (`table.rs`), and a word (`reading.rs`). Nothing is read where no row fits, where
//! half the interval is wider than 30 %, or beyond an end that the rows leave open.
//!
//! What differs from the first design, and why. A vendor, a set of instructions or "any SSD" is a
//! parent only where the table has a row of that very class: else Graviton3 would be read by the
//! memory of Graviton2, Golden Cove's L1 (5 cycles) by Skylake's (4), and NVMe by SATA. What
//! another model is promised to reach "up to" makes nothing slow: a smaller one need not reach it.
//! Operations of a deep queue are compared at depth 256: 32 of them, at 92 to 150 µs each, cannot
//! reach what the maker promises. Sources of which little is known (`low`) and that are of a wider
//! class make nothing bad: page faults of a healthy guest take 2.7 times those of one client core
//! on bare metal, as its addresses are translated twice. A row of system calls without page-table
//! isolation never stands alone: its host is not named.

mod class;
mod own;
mod reading;
mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use machine::Machine;
use model::Better;
use model::pattern::KeyParts;

pub use class::{HostClass, words};
pub use own::rows_of_run;
pub use reading::{Band, Quality, Reading, Source, Word};
pub use table::{Kind, Place, Row, Sure, published, read, write};

use class::is_within;
use reading::{Ends, ends_of};

/// What `assay explain references` says.
pub const EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "Assay compares a figure with what is typical of its class, and reads it as fast, normal, slow or bad. The class of \
         a processor is its generation, that of a disk its bus. ~ marks a band of a wider class, ? an interval that reaches \
         into a worse reading. Without a reference there is no reading: unknown is neither good nor bad.",
    ),
    (
        "What to do",
        "Compare with a run of your own: assay run --reference OTHER-RUN (a run, a folder of runs, or a table). Keep a run \
         for hosts of its class: assay reference add RUN --as NAME. See every band with source and date: assay reference \
         show dram-latency.",
    ),
    (
        "How it is computed",
        "The band of a class is all its rows, from the lowest low to the highest high. It is widened by 10 % (sure: high, \
         or promised by the maker), 15 % (medium) or 25 % (low), a run of yours by 2 %, the limits of assay peers by \
         nothing. Inside is normal, better is fast, worse is slow up to 1.5 times the band's end and bad beyond (a ~ band of low certainty says slow at most). A figure \
         with half an interval above 30 % has no reading. Makers promise that disks reach \"up to\" a value: 60 % of a \
         bandwidth and 40 % of operations are normal. No real value lies beyond a limit: one that does by more than its \
         interval is too good to be true. Rows of providers' volumes and networks (aws, azure, google) are for you to read \
         with assay reference show: a guest cannot see which kind of volume or placement it has.",
    ),
    (
        "Columns of a table",
        "metric (a key without placement and pages where any will do, as memory.data-source?source=dram/within=#latency), name, subject (intel/xeon-6-p-core, intel, x86, arm, any, disk/nvme; several with |), where (bare-metal, guest or empty), detail, unit, better (lower, higher), low, high, kind (measured, specified, limit), source, source_date, sure (high, medium, low), note.",
    ),
];

/// The name of the table that is part of the program.
pub const PUBLISHED: &str = "published";

/// Reference tables in the order in which they are asked.
#[derive(Clone, Debug)]
pub struct References {
    tables: Vec<Table>,
}

/// One table with the name that users know it by.
#[derive(Clone, Debug)]
struct Table {
    name: String,
    rows: Cow<'static, [Row]>,
}

impl References {
    /// The published table alone.
    pub fn published() -> References {
        let rows = Cow::Borrowed(published());
        References { tables: vec![Table { name: PUBLISHED.to_string(), rows }] }
    }

    /// The same with a table that is asked before all others.
    pub fn with_table(mut self, name: &str, rows: Vec<Row>) -> References {
        self.tables.insert(0, Table { name: name.to_string(), rows: Cow::Owned(rows) });
        self
    }

    pub fn class_of(&self, machine: &Machine) -> HostClass {
        HostClass::of(machine)
    }

    /// What "typical" is of a host: the first table that has its class.
    pub fn words(&self, host: &HostClass) -> String {
        let has = |table: &&Table| table.rows.iter().any(|row| is_named(row) || host.is_of(row));
        match self.tables.iter().find(has) {
            Some(table) if table.name != PUBLISHED => table.name.clone(),
            _ => format!("{PUBLISHED}, {}", host.words()),
        }
    }

    /// All rows with the names of their tables, in the order in which they are asked.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &Row)> {
        self.tables.iter().flat_map(|table| table.rows.iter().map(|row| (table.name.as_str(), row)))
    }

    /// What is typical of such a host for the figure with this key, in a unit.
    pub fn band(&self, host: &HostClass, key: &str, unit: &str) -> Option<Band> {
        self.tables.iter().find_map(|table| table.band(host, key, unit))
    }

    /// How good a figure is: `None` where no reference applies or its interval is too wide.
    pub fn reading(
        &self,
        host: &HostClass,
        key: &str,
        value: f64,
        interval: Option<[f64; 2]>,
        unit: &str,
    ) -> Option<Reading> {
        let may_be_cached = key.starts_with("disk.") || key.starts_with("memory.");
        let is_suspicious = may_be_cached && host.is_guest == Some(true);
        reading::read(self.band(host, key, unit)?, value, interval, is_suspicious)
    }
}

/// Why a row of a table does not apply to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusedBecause {
    /// The run has no such figure.
    Figure,
    /// Its unit is none of the figure's.
    Unit,
    /// No class is called so.
    Class,
    /// It is of other hosts.
    Host,
}

impl Row {
    /// Why it does not apply to a host's figures, each a key and a unit; `None` where it does, or
    /// shows a gap.
    pub fn unused_because<'f>(
        &self,
        host: &HostClass,
        figures: impl Iterator<Item = (&'f str, &'f str)>,
    ) -> Option<UnusedBecause> {
        self.kind?;
        let known = |class: &str| class == "any" || class::parent(class).is_some();
        let of_it: Vec<(&str, &str)> = figures.filter(|(key, _)| self.matches(key)).collect();
        let fits = |key: &str| {
            let parts = KeyParts::of(key);
            let (classes, _) = host.classes(parts.bench);
            let is_of = |class: &String| {
                let within = |subject: &str| class != "any" && is_within(subject, class);
                self.subjects().any(|subject| subject == class || within(subject))
            };
            host.fits(self, &parts) && (is_named(self) || classes.iter().any(is_of))
        };
        match () {
            () if !self.subjects().any(known) => Some(UnusedBecause::Class),
            () if of_it.is_empty() => Some(UnusedBecause::Figure),
            () if !of_it.iter().any(|(_, unit)| model::unit_factor(&self.unit, unit).is_some()) => {
                Some(UnusedBecause::Unit)
            }
            () if !of_it.iter().any(|(key, _)| fits(key)) => Some(UnusedBecause::Host),
            () => None,
        }
    }
}

/// Whether the user named the run that it comes from for any host.
fn is_named(row: &Row) -> bool {
    row.is_own() && row.subject == "any"
}

/// A row that fits a figure, with what turns its unit into the one that was asked for.
#[derive(Clone, Copy)]
struct Fitting<'a> {
    row: &'a Row,
    factor: f64,
}

impl Table {
    fn band(&self, host: &HostClass, key: &str, unit: &str) -> Option<Band> {
        let parts = KeyParts::of(key);
        let fitting = |row| {
            let row: &Row = row;
            let sockets = if row.is_of_whole_sockets() { f64::from(host.sockets) } else { 1.0 };
            let factor = model::unit_factor(&row.unit, unit)? * sockets;
            Some(Fitting { row, factor })
        };
        let rows = self.rows.iter().filter(|row| row.matches(key) && host.fits(row, &parts));
        let (limits, rows): (Vec<Fitting>, Vec<Fitting>) =
            rows.filter_map(fitting).partition(|one| one.row.kind == Some(Kind::Limit));
        let (classes, own) = host.classes(parts.bench);
        let is_own = |class: &str| class == "any" || classes.iter().take(own).any(|own| own == class);
        let limits: Vec<Fitting> = limits.into_iter().filter(|one| one.row.subjects().any(is_own)).collect();
        let found = nearest(&rows, host, parts.bench);
        match (found, limits.as_slice()) {
            (None, []) => None,
            (None, [limit, ..]) => self.joined(&[*limit], &limits, host, &Class::own("any"), unit),
            (Some((class, rows)), limits) => {
                let class = Class { wide: class.wide || host.relies_on_reported_cores(&parts), ..class };
                self.joined(&rows, limits, host, &class, unit)
            }
        }
    }

    fn joined(
        &self,
        rows: &[Fitting],
        limits: &[Fitting],
        host: &HostClass,
        class: &Class,
        unit: &str,
    ) -> Option<Band> {
        let better = rows.first()?.row.better;
        let ends: Vec<(f64, f64, bool)> =
            rows.iter().filter_map(|one| ends_of(one.row, one.factor)).collect();
        let lowest = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::min);
        let highest = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::max);
        let low = lowest(&mut ends.iter().map(|end| end.0))?;
        let high = highest(&mut ends.iter().map(|end| end.1))?;
        let wide = class.wide || rows.iter().any(|one| host.is_of_another_model(one.row));
        let up_to = |one: &Fitting| one.row.kind == Some(Kind::Specified) && one.row.low.is_none();
        let of_limits = limits.iter().filter_map(|one| Some(one.row.high.or(one.row.low)? * one.factor));
        let limit = match better {
            Better::Higher => of_limits.reduce(f64::min),
            _ => of_limits.reduce(f64::max),
        };
        let worst = rows.iter().max_by(|a, b| a.row.tolerance().total_cmp(&b.row.tolerance()))?.row;
        let shown = |value: fn(&Row) -> Option<f64>| {
            rows.iter().filter_map(move |one| Some(value(one.row)? * one.factor))
        };
        let sources = rows.iter().flat_map(|one| sources_of(one.row));
        Some(Band {
            low: lowest(&mut shown(|row| row.low)),
            high: highest(&mut shown(|row| row.high.or(row.low.filter(|_| row.better == Better::Lower)))),
            unit: unit.to_string(),
            class: class.words.clone(),
            wide,
            kind: worst.kind?,
            sure: rows.iter().map(|one| one.row.sure).min()?,
            table: self.name.clone(),
            sources: sources.collect(),
            ends: Ends {
                low,
                high,
                tolerance: worst.tolerance(),
                better,
                is_open: ends.iter().any(|(_, end, open)| *open && *end >= high)
                    || wide && better == Better::Higher && rows.iter().any(up_to),
                is_vague: wide && worst.sure <= Sure::Low,
                limit,
            },
        })
    }
}

fn sources_of(row: &Row) -> impl Iterator<Item = Source> {
    let of = |source: &str| Source {
        source: source.trim().to_string(),
        date: row.source_date.clone(),
        note: row.note.clone(),
    };
    row.source.split("; ").map(of).collect::<Vec<Source>>().into_iter()
}

/// The class that rows were found under.
struct Class {
    words: String,
    wide: bool,
}

impl Class {
    fn own(class: &str) -> Class {
        Class { words: words(class), wide: false }
    }
}

/// The rows of the nearest class that has any.
fn nearest<'a>(rows: &[Fitting<'a>], host: &HostClass, bench: &str) -> Option<(Class, Vec<Fitting<'a>>)> {
    let narrow: Vec<Fitting> = rows.iter().copied().filter(|one| is_of_its_kernel(one.row, host)).collect();
    let named: Vec<Fitting> = narrow.iter().copied().filter(|one| is_named(one.row)).collect();
    if !named.is_empty() {
        return Some((Class::own("any"), named));
    }
    let (classes, own) = host.classes(bench);
    for (at, class) in classes.iter().enumerate() {
        let found = of_class(&narrow, class, at < own);
        if !found.is_empty() {
            let exact = found.iter().all(|one| one.row.subjects().any(|subject| subject == class));
            let wide = at >= own || !exact;
            return Some((Class { words: words(class), wide }, found));
        }
    }
    // Kernels with other mitigations, where the table has no row of this one's.
    let published: Vec<Fitting> = rows.iter().copied().filter(|one| !one.row.is_own()).collect();
    let any_kernel = |class: &String| {
        let found = of_class(&published, class, false);
        let words = format!("{}, any kernel", words(class));
        (!found.is_empty()).then_some((Class { words, wide: true }, found))
    };
    classes.iter().skip(own).find_map(any_kernel)
}

/// Rows of a class. Of one that is not the host's own also those of the classes within, where the
/// class has a row itself; NVMe of all generations is one kind.
fn of_class<'a>(rows: &[Fitting<'a>], class: &str, is_own: bool) -> Vec<Fitting<'a>> {
    let is_exact = |one: &Fitting| one.row.subjects().any(|subject| subject == class);
    let has_own_row = !is_own && class != "any" && rows.iter().any(is_exact);
    let fits = |one: &Fitting| match has_own_row || class == "disk/nvme" {
        true => one.row.subjects().any(|subject| is_within(subject, class)),
        false => is_exact(one),
    };
    rows.iter().copied().filter(fits).collect()
}

/// Whether a row is of a kernel with the host's mitigations, or of any.
fn is_of_its_kernel(row: &Row, host: &HostClass) -> bool {
    match row.isolation() {
        None => true,
        Some(isolation) => host.isolation == Some(isolation) && (isolation || row.is_own()),
    }
}
