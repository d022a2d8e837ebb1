//! Formats that are tables alone: their lines, what of these makes up keys, and which of their
//! numbers are figures. The rest is one function, which looks for contradictions between the lines.

use regex::Regex;

use super::{Log, Number, Pattern, Results, Role, Run, Table, log, said_again};
use crate::builder::{Builder, Meaning};
use crate::faults::{Faults, short};
use crate::percentiles::{percentile_name, too_few_beyond};
use crate::{Format, Imported, Keyed, keyed};
use model::{Better, Value, units};

/// The name of lines in whose field `value` a program says why it gives up.
const DIED: &str = "died";

/// A format of a text.
pub struct Form {
    pub format: Format,
    /// The program by which a command line runs it.
    pub program: &'static str,
    /// The first remark of each result: what the tool never reports.
    pub remark: &'static str,
    /// A text without any of these has no line by which it is known, and is not searched for one.
    pub signs: &'static [&'static str],
    /// Known from documentation alone: no real output was available.
    pub documented: bool,
    /// The lines by which a text is known.
    pub marks: &'static [&'static str],
    pub lines: &'static [Pattern],
    /// Facts of the host or the program, label and place; a label that begins with `?` is shown
    /// only where it distinguishes results.
    pub facts: &'static [(&'static str, &'static str)],
    /// Options of the command whose value the text prints, too.
    pub printed: &'static [&'static str],
    /// Options without a value that change nothing of what is measured.
    pub flags: &'static [&'static str],
    /// What stands in the keys of all figures.
    pub settings: &'static [Setting],
    pub figures: &'static [Row],
    /// Metrics that say most.
    pub headlines: &'static [&'static str],
    pub check: fn(&Run, &mut Notes),
}

/// A part of a key: the parameter's name, and the place of its value. A missing value is no part.
/// Points whose line has the letter of a unit in `<field>_unit` are in steps of 1024.
#[derive(Clone, Copy)]
pub struct Setting {
    pub name: &'static str,
    pub place: &'static str,
    /// A size or a count along which a figure is a curve.
    pub is_point: bool,
}

pub const fn param(name: &'static str, place: &'static str) -> Setting {
    Setting { name, place, is_point: false }
}

pub const fn point(name: &'static str, place: &'static str) -> Setting {
    Setting { name, place, is_point: true }
}

/// What one printed unit is in the figure's own.
#[derive(Clone, Copy)]
pub enum Scale {
    By(f64),
    /// The line has the letter of its unit in `<field>_unit`, in steps of the first number.
    Letter(f64, f64),
    /// The line has the unit of time in `<field>_unit`, and the figure is in µs.
    Time,
}

/// A figure: the field of a line, and what it means. In `bench`, `metric` and `wording` a name in
/// braces stands for what is at this place.
pub struct Row {
    /// The place, `line.field`.
    pub place: &'static str,
    pub bench: &'static str,
    /// `latency_p{percent}`: of percentiles.
    pub metric: &'static str,
    pub wording: &'static str,
    pub unit: &'static str,
    pub scale: Scale,
    pub better: Better,
    pub settings: &'static [Setting],
    /// The place of the number of observations that a percentile is of.
    pub observations: &'static str,
    /// Only lines behind one of this name.
    pub behind: &'static str,
    /// Behind a line of this name the same lines mean something else.
    pub until: &'static str,
    /// The field has several numbers, each of that which stands above it at the first place, and
    /// which settings have by the second name.
    pub across: (&'static str, &'static str),
}

impl Row {
    /// A rate, better high.
    pub const fn rate(place: &'static str, bench: &'static str, metric: &'static str) -> Row {
        Row {
            place,
            bench,
            metric,
            wording: "",
            unit: "1/s",
            scale: Scale::By(1.0),
            better: Better::Higher,
            settings: &[],
            observations: "",
            behind: "",
            until: "",
            across: ("", ""),
        }
    }

    /// A time in µs, better low.
    pub const fn time(place: &'static str, bench: &'static str, metric: &'static str) -> Row {
        Row { unit: "us", scale: Scale::Time, better: Better::Lower, ..Row::rate(place, bench, metric) }
    }
}

/// Contradictions of a run, and remarks on its figures.
pub struct Notes<'b> {
    builder: &'b mut Builder,
    pub faults: &'b mut Faults,
}

impl Notes<'_> {
    /// A remark on the result, once.
    pub fn remark(&mut self, text: &str) {
        if !self.builder.remarks.iter().any(|known| known == text) && self.builder.remarks.len() < 20 {
            self.builder.remarks.push(text.to_string());
        }
    }

    /// Figures that contradict each other.
    pub fn disagree(&mut self, what: &str, text: &str) {
        self.faults.disagree(what, text.to_string(), "the file");
    }

    /// A rate that is not its amount over its time; all three as printed, in units that fit.
    pub fn rate(&mut self, what: &str, rate: Option<Number>, amount: Option<Number>, time: Option<Number>) {
        self.faults.rate(what, [rate, amount, time], |rate, amount, time| {
            format!("it says {rate}; {amount} in {time} s is another rate")
        });
    }
}

impl Run<'_> {
    /// What stands at a place: `line.field`, of the last line of this name, or an option of the
    /// command, `-t`, `--threads`.
    pub fn at(&self, place: &str) -> Option<&str> {
        if place.is_empty() {
            return None;
        }
        match place.split_once('.') {
            _ if place.starts_with('-') => self.command.as_ref()?.value(&[place]),
            Some((line, field)) => self.all(line).last()?.text(field),
            None => self.all(place).last()?.text("value"),
        }
    }

    /// What stands at a place for the line with this number: in the line itself, else in the last
    /// line of the name before it, else in the last one.
    fn near(&self, place: usize, name: &str) -> Option<&str> {
        let hit = &self.hits[place];
        if let Some(text) = hit.text(name) {
            return Some(text);
        }
        let (line, field) = name.split_once('.').unwrap_or((name, "value"));
        let before = self.hits[..=place].iter().rev().find(|hit| hit.name == line);
        before.and_then(|hit| hit.text(field)).or_else(|| self.at(name))
    }

    /// The number at a place.
    pub fn number(&self, place: &str) -> Option<Number> {
        Number::read(self.at(place)?)
    }
}

/// Reads texts of a form.
pub struct Reader {
    form: &'static Form,
    table: Table,
    mark: Regex,
}

impl Reader {
    pub fn new(form: &'static Form) -> Reader {
        let marks = form.lines.iter().filter(|line| form.marks.contains(&line.name));
        let marks: Vec<&str> = marks.map(|line| line.regex).collect();
        let mark = format!(r"(?m)^[ \t]*(?:{})[ \t\r]*$", marks.join("|"));
        // Names of fields may stand in a pattern once.
        let mark = Regex::new(r"\?<\w+>").expect("a pattern").replace_all(&mark, "?:").into_owned();
        Reader {
            form,
            table: Table::new(form.lines),
            mark: Regex::new(&mark).expect("a pattern that a test tries"),
        }
    }

    pub fn is_one(&self, text: &str) -> bool {
        self.mark.is_match(text)
    }

    pub fn read(&self, text: &str) -> Vec<Imported> {
        let form = self.form;
        let log: Log = log(text, form.program, &self.table, said_again);
        let mut results = Results::new(form.format, form.remark);
        for run in &log.runs {
            let facts = form.facts.iter();
            let mut facts: Vec<(&'static str, String)> =
                facts.filter_map(|(label, place)| Some((*label, run.at(place)?.to_string()))).collect();
            // Whatever else the command asks for may make another result.
            // What the text prints as well counts once; what was cut counts by the command alone.
            let mut settings = form.settings.iter().filter(|setting| !setting.place.starts_with('-'));
            let printed =
                if settings.all(|setting| run.at(setting.place).is_some()) { form.printed } else { &[] };
            facts.push((
                "?options",
                run.command.as_ref().map_or(String::new(), |command| command.without(printed, form.flags)),
            ));
            let has_figure = form.figures.iter().any(|row| run.at(row.place).is_some());
            if let Some((builder, faults)) = results.of(run, facts, has_figure) {
                figures(form, run, builder, faults);
            }
        }
        results.finish_with(&log, form.headlines)
    }
}

fn figures(form: &Form, run: &Run, builder: &mut Builder, faults: &mut Faults) {
    let mut found = false;
    for row in form.figures {
        let (line, field) = row.place.split_once('.').unwrap_or((row.place, "value"));
        let find = |name: &str, from: usize| (from..run.hits.len()).find(|at| run.hits[*at].name == name);
        let from = if row.behind.is_empty() { Some(0) } else { find(row.behind, 0) };
        let Some(from) = from else { continue };
        let until = find(row.until, from).unwrap_or(run.hits.len());
        let places = (from..until).filter(|place| run.hits[*place].name == line);
        for place in places {
            let hit = &run.hits[place];
            let Some(text) = hit.text(field) else { continue };
            let own = |name: &str| run.near(place, name);
            if row.across.0.is_empty() {
                hit.number(field);
                found |= figure(form, row, text, &own, builder);
                continue;
            }
            // Columns, each of the number that stands above it.
            let heads: Vec<&str> = numbers(own(row.across.0).unwrap_or_default());
            let columns = numbers(text);
            if heads.len() != columns.len() {
                hit.refuse();
                continue;
            }
            for (head, text) in heads.iter().zip(&columns) {
                let own = |name: &str| if name == row.across.1 { Some(*head) } else { own(name) };
                found |= figure(form, row, text, &own, builder);
            }
        }
    }
    // Lines of an unknown test belong to no run.
    let is_begun = run.hits.iter().any(|hit| hit.role == Role::Begins || hit.name == DIED);
    if !found
        && is_begun
        && let Some(row) = form.figures.first()
    {
        let own = |name: &str| run.at(name).or(Some(""));
        let why = run.at(DIED).unwrap_or("the run, or the text, ended before a result");
        if let Some(meaning) = meaning(form, row, &own) {
            builder.missing(meaning, format!("started, no test finished: {}", short(why)));
        }
    }
    (form.check)(run, &mut Notes { builder, faults });
}

/// The numbers of a line of columns, without their units.
fn numbers(line: &str) -> Vec<&str> {
    let is_part = |one: char| one.is_ascii_digit() || one == '.';
    line.split(|one| !is_part(one)).filter(|part| part.contains(|one: char| one.is_ascii_digit())).collect()
}

/// Adds a figure; whether it is one.
fn figure<'t>(
    form: &Form,
    row: &Row,
    text: &str,
    own: &dyn Fn(&str) -> Option<&'t str>,
    builder: &mut Builder,
) -> bool {
    let field = row.place.split_once('.').map_or("value", |(_, field)| field);
    let letter = own(&format!("{field}_unit")).unwrap_or_default();
    let factor = match row.scale {
        Scale::By(factor) => Some(factor),
        Scale::Letter(step, factor) => Some(super::scale(letter, step) * factor),
        Scale::Time => units::nanoseconds(letter).map(|ns| ns / 1e3),
    };
    let value = Number::read(text).zip(factor).map(|(number, factor)| number.value * factor);
    let (Some(meaning), Some(value)) = (meaning(form, row, own), value) else { return false };
    let percent = own("percent").and_then(|percent| percent.parse().ok());
    let observations = own(row.observations).and_then(Number::read).map(|number| number.value);
    let few = percent
        .filter(|_| row.metric.contains("{percent}"))
        .and_then(|percent| too_few_beyond(percent, observations, &format!("{text} {letter}")));
    match few {
        Some(why) => builder.missing(meaning, why),
        None => builder.value(meaning, value),
    }
    true
}

/// What a figure means; `None` where a part of its name is missing.
fn meaning<'t>(form: &Form, row: &Row, own: &dyn Fn(&str) -> Option<&'t str>) -> Option<Meaning> {
    let metric = match row.metric.split_once("_p{percent}") {
        Some((stem, _)) => percentile_name(stem, own("percent")?)?,
        None => filled(row.metric, own)?,
    };
    let bench = filled(row.bench, own)?
        .to_lowercase()
        .replace(|one: char| !one.is_ascii_alphanumeric() && !".-_".contains(one), "-");
    let mut keyed: Keyed = keyed(&format!("{bench}@free#{metric}"))?;
    for setting in form.settings.iter().chain(row.settings) {
        let Some(text) = own(setting.place).filter(|text| !text.is_empty()) else {
            continue;
        };
        let text = short(&text.to_lowercase());
        let scaled = own(&format!("{}_unit", field_of(setting.place))).zip(Number::read(&text));
        let value = match scaled.filter(|_| setting.is_point) {
            Some((unit, number)) => Value::Int((number.value * super::scale(unit, 1024.0)) as i64),
            None => text.parse().map_or_else(|_| Value::Text(text), Value::Int),
        };
        let params = if setting.is_point { &mut keyed.point } else { &mut keyed.case.params };
        params.set(setting.name, value);
    }
    let words = metric.replace('_', " ");
    let wording = match row.wording {
        "" => format!("{} {words}", form.program),
        wording => filled(wording, own)?.trim().to_string(),
    };
    Some(Meaning { keyed, wording, unit: row.unit.into(), better: row.better, note: String::new() })
}

/// A place with its field.
fn field_of(place: &str) -> String {
    if place.contains('.') { place.to_string() } else { format!("{place}.value") }
}

/// A text with what is at the places in its braces.
fn filled<'t>(template: &str, own: &dyn Fn(&str) -> Option<&'t str>) -> Option<String> {
    let mut parts = template.split('{');
    let mut text = parts.next()?.to_string();
    for part in parts {
        let (place, rest) = part.split_once('}')?;
        text.push_str(&short(own(place)?));
        text.push_str(rest);
    }
    Some(text)
}

/// Declares the tool of a form.
macro_rules! tool {
    ($form:ident, $files:literal) => {
        pub(crate) const TOOL: crate::Tool = {
            static READER: std::sync::LazyLock<crate::kit::form::Reader> =
                std::sync::LazyLock::new(|| crate::kit::form::Reader::new(&$form));
            crate::Tool {
                files: $files,
                json: &[],
                documented: $form.documented,
                // Patterns take long to be made: only for a text that may be one.
                is_one: |text| $form.signs.iter().any(|sign| text.contains(sign)) && READER.is_one(text),
                read: |text| Ok(READER.read(text)),
            }
        };
    };
}
pub(crate) use tool;
