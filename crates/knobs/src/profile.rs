//! Profiles: many kernel settings in a file, as tuned has them, or as `sysctl -a` and sysctl.conf
//! list them. They are read and compared here; nothing is changed. Scripts and functions of a
//! profile become remarks.

mod ini;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use ini::{Expanded, Ini, Variables};

pub use names::{knob_name, why_no_knob};

/// One setting of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// As written: `kernel.sched_min_granularity_ns`, `governor`, `/sys/kernel/mm/ksm/run`.
    pub name: String,
    /// With the profile's variables put in. tuned sets `>N` where the value is lower, `<N` where it
    /// is higher.
    pub value: String,
    /// The section's own name; `sysctl` in lists.
    pub section: String,
    /// The plugin of tuned that the section is for, mostly of the same name.
    pub plugin: String,
    /// `file:line`.
    pub origin: String,
}

/// What a profile sets, later settings over earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The name of the profile's folder, or of the list's file.
    pub name: String,
    pub settings: Vec<Setting>,
    /// What was met and is no setting, or was not understood, as sentences.
    pub remarks: Vec<String>,
}

/// A setting that two profiles do not share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The knob's name where it has one, else as written.
    pub name: String,
    /// The knob that turns it, where there is one.
    pub knob: Option<String>,
    /// `None`: the profile does not say.
    pub before: Option<String>,
    pub after: Option<String>,
    pub section: String,
}

/// Folders of tuned's profiles, in its order of search.
const FOLDERS: [&str; 4] = ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];
const PROFILE: &str = "tuned.conf";
/// Larger files are no profiles.
const LARGEST: u64 = 1 << 20;
const MOST_FILES: usize = 100;
const MOST_SETTINGS: usize = 20_000;
/// Settings of tuned's hold variables, which make long values of short ones.
const MOST_TUNED: usize = 2_000;
const MOST_REMARKS: usize = 100;

/// Reads a profile: a folder of tuned's or the `tuned.conf` in it, with what it includes, or a list
/// of `name = value`.
pub fn read(path: &Path) -> anyhow::Result<Profile> {
    read_with(path, &FOLDERS.map(PathBuf::from))
}

fn read_with(path: &Path, folders: &[PathBuf]) -> anyhow::Result<Profile> {
    let file = if path.is_dir() { path.join(PROFILE) } else { path.to_path_buf() };
    let text = content(&file)?;
    let heading = |line: &str| line.trim_start().starts_with('[');
    let first =
        text.lines().find(|line| !line.trim().is_empty() && !line.trim_start().starts_with(['#', ';']));
    let is_tuned = file.file_name().is_some_and(|name| name == PROFILE) || first.is_some_and(heading);
    let mut profile = if is_tuned {
        let mut tuned = Tuned { folders, ..Tuned::default() };
        let name = folder_name(&file);
        tuned.read(&name, &file, &text)?;
        tuned.finish(name)
    } else {
        list(&file, &text)?
    };
    if profile.remarks.len() > MOST_REMARKS {
        profile.remarks.truncate(MOST_REMARKS);
        profile.remarks.push("more of it was not parsed".to_string());
    }
    Ok(profile)
}

/// Adds a remark, up to a number that can be read.
fn say(remarks: &mut Vec<String>, remark: String) {
    if remarks.len() <= MOST_REMARKS {
        remarks.push(remark);
    }
}

fn content(file: &Path) -> anyhow::Result<String> {
    let cannot = || format!("cannot open {}", file.display());
    // Opening a named pipe would wait for its writer.
    let is_file = std::fs::metadata(file).with_context(cannot)?.is_file();
    ensure!(is_file, "{} is not a regular file: name the profile file", file.display());
    let opened = File::open(file).with_context(cannot)?;
    let mut bytes = Vec::new();
    let taken = opened.take(LARGEST + 1).read_to_end(&mut bytes);
    taken.with_context(|| format!("cannot read {}", file.display()))?;
    if bytes.len() as u64 > LARGEST {
        bail!("{} has more than {} MB: it is not a profile", file.display(), LARGEST >> 20);
    }
    if bytes.contains(&0) {
        bail!("{} is not text, so not a profile", file.display());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a profile is called: by its folder, a list by its file.
fn folder_name(file: &Path) -> String {
    let whole = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let named = if whole.file_name().is_some_and(|name| name == PROFILE) {
        whole.parent().and_then(Path::file_name)
    } else {
        whole.file_name()
    };
    named.map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// A list as `sysctl -a` prints it and as sysctl.conf has it; the last of a name counts.
fn list(file: &Path, text: &str) -> anyhow::Result<Profile> {
    let mut profile = Profile { name: folder_name(file), ..Profile::default() };
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut odd = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        // A dash before a name says that it may fail.
        let parts =
            line.split_once('=').map(|(name, value)| (name.trim().trim_start_matches('-'), value.trim()));
        let named = |(name, _): &(&str, &str)| !name.is_empty() && !name.contains(char::is_whitespace);
        let Some((name, value)) = parts.filter(named) else {
            odd.push(at + 1);
            continue;
        };
        if profile.settings.len() >= MOST_SETTINGS {
            bail!("{} has more than {MOST_SETTINGS} settings", file.display());
        }
        let setting = Setting {
            name: name.to_string(),
            value: value.to_string(),
            section: "sysctl".to_string(),
            plugin: "sysctl".to_string(),
            origin: format!("{}:{}", file.display(), at + 1),
        };
        match places.get(name).and_then(|place| profile.settings.get_mut(*place)) {
            Some(known) => *known = setting,
            None => {
                places.insert(name.to_string(), profile.settings.len());
                profile.settings.push(setting);
            }
        }
    }
    if profile.settings.is_empty() {
        bail!("{} has no setting: give a profile of tuned or lines NAME=VALUE", file.display());
    }
    profile.remarks.extend(odd_lines(file, &odd));
    Ok(profile)
}

fn odd_lines(file: &Path, odd: &[usize]) -> Option<String> {
    let first = odd.first()?;
    let more = if odd.len() > 1 { format!(" and {} more", odd.len() - 1) } else { String::new() };
    Some(format!("{}: line {first}{more} is not NAME=VALUE and was ignored", file.display()))
}

/// A section, merged from all profiles that have it.
#[derive(Clone, Debug, Default)]
struct Unit {
    name: String,
    plugin: String,
    disabled: bool,
    devices: Option<String>,
    /// On which hosts alone it holds.
    only: Option<String>,
    options: Vec<Given>,
}

#[derive(Clone, Debug)]
struct Given {
    name: String,
    value: String,
    origin: String,
}

/// A profile of tuned with what it includes, while it is read.
#[derive(Default)]
struct Tuned<'a> {
    folders: &'a [PathBuf],
    /// The profiles that include each other down to this one.
    chain: Vec<(String, PathBuf)>,
    done: Vec<PathBuf>,
    units: Vec<Unit>,
    remarks: Vec<String>,
}

impl Tuned<'_> {
    /// Reads what a profile includes, then its own sections over that.
    fn read(&mut self, name: &str, file: &Path, text: &str) -> anyhow::Result<()> {
        let whole = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
        self.chain.push((name.to_string(), whole.clone()));
        self.done.push(whole.clone());
        if self.done.len() > MOST_FILES {
            bail!("{name} and what it includes are more than {MOST_FILES} profiles");
        }
        let folder = whole.parent().unwrap_or(Path::new("")).display().to_string();
        let ini = ini::parse(&text.replace("${i:PROFILE_DIR}", &folder), "");
        self.remarks.extend(odd_lines(file, &ini.odd));
        let include = |entry: &&ini::Entry| entry.section == "main" && entry.name == "include";
        let included = ini.entries.iter().rfind(include).map_or("", |entry| entry.value.as_str());
        if included.contains("${") {
            say(
                &mut self.remarks,
                format!("{name} includes a profile by a function or variable ({included}): it was not read"),
            );
        } else {
            let others = included.split([',', ';']).map(str::trim).filter(|other| !other.is_empty());
            others.into_iter().try_for_each(|other| self.include(name, other, &whole))?;
        }
        self.merge(&ini, file);
        self.chain.pop();
        Ok(())
    }

    fn include(&mut self, by: &str, name: &str, file: &Path) -> anyhow::Result<()> {
        // Where it may be missing, a dash stands before it.
        let (name, optional) = name.strip_prefix('-').map_or((name, false), |name| (name, true));
        let base = Path::new(name)
            .file_name()
            .with_context(|| format!("{by} includes {name:?}, which is not a name"))?;
        let beside = file.parent().and_then(Path::parent).map(Path::to_path_buf);
        let folders: Vec<PathBuf> = beside.into_iter().chain(self.folders.iter().cloned()).collect();
        let mut cycle = false;
        for folder in &folders {
            let Ok(found) = std::fs::canonicalize(folder.join(base).join(PROFILE)) else { continue };
            // A profile may stand over one of its own name in another folder.
            if self.chain.iter().any(|(_, file)| *file == found) {
                cycle = true;
                continue;
            }
            if self.done.contains(&found) {
                return Ok(());
            }
            let text = content(&found).with_context(|| format!("{by} includes {name}"))?;
            return self.read(name, &found, &text);
        }
        if cycle {
            let chain: Vec<&str> = self.chain.iter().map(|(name, _)| name.as_str()).collect();
            bail!("the profiles include each other in a circle: {} -> {name}", chain.join(" -> "));
        }
        if !optional {
            let looked: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
            bail!("{by} includes {name}, but there is no {PROFILE} in {}", looked.join(", "));
        }
        Ok(())
    }

    /// Puts a profile's sections over those that are known.
    fn merge(&mut self, ini: &Ini, file: &Path) {
        for section in ini.sections.iter().filter(|section| *section != "main") {
            let own: Vec<&ini::Entry> =
                ini.entries.iter().filter(|entry| entry.section == *section).collect();
            let last =
                |name: &str| own.iter().rfind(|entry| entry.name == name).map(|entry| entry.value.clone());
            let is = |value: Option<String>| {
                value.is_some_and(|value| ["1", "true", "True"].contains(&value.as_str()))
            };
            let at = self.units.iter().position(|unit| unit.name == *section).unwrap_or_else(|| {
                self.units.push(Unit { name: section.clone(), ..Unit::default() });
                self.units.len() - 1
            });
            let Some(unit) = self.units.get_mut(at) else { continue };
            if is(last("replace")) {
                *unit = Unit { name: section.clone(), ..Unit::default() };
            }
            // tuned takes these from the newer profile, even where that does not set them.
            unit.plugin = last("type").unwrap_or_else(|| section.clone());
            unit.disabled = last("enabled").is_some_and(|value| !is(Some(value)));
            unit.devices = last("devices").filter(|devices| devices != "*");
            let only = last("uname_regex")
                .into_iter()
                .chain(last("cpuinfo_regex"))
                .collect::<Vec<_>>()
                .join(" and ");
            unit.only = if only.is_empty() { unit.only.take() } else { Some(only) };
            let dropped = last("drop").unwrap_or_default();
            let dropped: Vec<&str> = dropped.split([',', ';']).map(str::trim).collect();
            unit.options.retain(|option| !dropped.contains(&option.name.as_str()));
            for entry in own.iter().filter(|entry| !ABOUT_UNITS.contains(&entry.name.as_str())) {
                let origin = format!("{}:{}", file.display(), entry.line);
                let given = Given { name: entry.name.clone(), value: entry.value.clone(), origin };
                // All scripts run, those of included profiles first.
                let known = unit
                    .options
                    .iter()
                    .position(|option| option.name == entry.name && option.name != "script");
                match known {
                    Some(known) => unit.options[known] = given,
                    None if unit.options.len() < MOST_TUNED => unit.options.push(given),
                    None => say(
                        &mut self.remarks,
                        format!("{}: too many options, {} was left out", given.origin, given.name),
                    ),
                }
            }
            for script in ["script_pre", "script_post"].iter().filter_map(|name| last(name)) {
                say(
                    &mut self.remarks,
                    format!("[{section}] runs the script {script}, whose effect is unknown"),
                );
            }
        }
    }

    fn finish(self, name: String) -> Profile {
        let Tuned { mut units, mut remarks, .. } = self;
        let at = units.iter().position(|unit| unit.name == "variables");
        let variables = at.map(|at| variables(&units.remove(at), &mut remarks)).unwrap_or_default();
        let mut settings: Vec<Setting> = Vec::new();
        for Unit { name: section, plugin, disabled, devices, only, options } in units {
            if disabled {
                say(&mut remarks, format!("[{section}] is switched off and sets nothing"));
                continue;
            }
            if let Some(only) = only {
                let only = variables.expand(&only).value;
                say(
                    &mut remarks,
                    format!("[{section}] applies only to hosts that match {only}, and was left out"),
                );
                continue;
            }
            if let Some(devices) = devices {
                say(&mut remarks, format!("[{section}] applies only to the devices {devices}"));
            }
            for Given { name, value, origin } in options {
                let Expanded { value, unknown, function } = variables.expand(&value);
                if name == "script" {
                    say(
                        &mut remarks,
                        format!("[{section}] runs the script {value}, whose effect is unknown"),
                    );
                    continue;
                }
                if function {
                    say(
                        &mut remarks,
                        format!(
                            "{name} of [{section}] calls a function, which Assay does not evaluate: {value}"
                        ),
                    );
                }
                for variable in unknown {
                    say(
                        &mut remarks,
                        format!("{name} of [{section}] needs the variable {variable}, which is not defined"),
                    );
                }
                if settings.len() >= MOST_TUNED {
                    say(
                        &mut remarks,
                        format!(
                            "{origin}: the profile has more than {MOST_TUNED} settings, and {name} was left out"
                        ),
                    );
                    continue;
                }
                let (section, plugin) = (section.clone(), plugin.clone());
                settings.push(Setting { name, value, section, plugin, origin });
            }
        }
        remarks.extend(contradictions(&settings));
        Profile { name, settings, remarks }
    }
}

/// Options that say something of their section, and of how it is worked on.
const ABOUT_UNITS: [&str; 11] = [
    "type",
    "enabled",
    "replace",
    "drop",
    "devices",
    "devices_udev_regex",
    "cpuinfo_regex",
    "uname_regex",
    "script_pre",
    "script_post",
    "priority",
];

/// What the section of variables defines, in its order; one of them may be a file with more.
fn variables(unit: &Unit, remarks: &mut Vec<String>) -> Variables {
    let mut variables = Variables::default();
    for Given { name, value, .. } in &unit.options {
        if name != "include" {
            variables.define(name, value);
            continue;
        }
        match content(Path::new(value)) {
            Ok(text) => {
                let more = ini::parse(&text, "variables").entries;
                more.iter().for_each(|entry| variables.define(&entry.name, &entry.value));
            }
            Err(error) => say(remarks, format!("the file of variables {value} was not read: {error}")),
        }
    }
    variables
}

/// Knobs that one profile sets to two values, by two names.
fn contradictions(settings: &[Setting]) -> Vec<String> {
    let mut known: BTreeMap<String, &Setting> = BTreeMap::new();
    let mut said = Vec::new();
    for setting in settings {
        let Some(knob) = knob_name(setting) else { continue };
        let other = known.insert(knob.clone(), setting).filter(|other| !same(&other.value, &setting.value));
        said.extend(other.map(|other| {
            let (one, two) = (&other.origin, &setting.origin);
            format!("{knob} is set twice: to {} ({one}) and to {} ({two})", other.value, setting.value)
        }));
    }
    said
}

/// What two profiles do not set alike, in the order of the second, then what only the first sets.
/// Where both name a knob in different ways, it is the same; of a knob that one profile sets twice,
/// the last counts.
pub fn differences(before: &Profile, after: &Profile) -> Vec<Difference> {
    let key = |setting: &Setting| match knob_name(setting) {
        Some(knob) => (String::new(), knob),
        None => (setting.section.clone(), setting.name.clone()),
    };
    let last = |profile: &Profile| -> BTreeMap<(String, String), String> {
        profile.settings.iter().map(|setting| (key(setting), setting.value.clone())).collect()
    };
    let (old, new) = (last(before), last(after));
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    let mut found = Vec::new();
    for setting in after.settings.iter().chain(&before.settings) {
        let own = key(setting);
        let (before, after) = (old.get(&own).cloned(), new.get(&own).cloned());
        let alike = before.as_ref().zip(after.as_ref()).is_some_and(|(before, after)| same(before, after));
        if alike || seen.contains(&own) {
            continue;
        }
        let knob = knob_name(setting);
        found.push(Difference { name: own.1.clone(), knob, before, after, section: setting.section.clone() });
        seen.insert(own);
    }
    found
}

/// Whether the second value leaves the first as it is: the same words, or a bound that it keeps.
fn same(before: &str, after: &str) -> bool {
    let number = |text: &str| text.trim().parse::<i128>().ok();
    let bound = |sign: char| number(before).zip(after.strip_prefix(sign).and_then(number));
    before.split_whitespace().eq(after.split_whitespace())
        || bound('>').is_some_and(|(value, least)| value >= least)
        || bound('<').is_some_and(|(value, most)| value <= most)
}

#[cfg(test)]
mod tests;
