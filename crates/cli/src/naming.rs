//! `--host` and `--label`: the name and labels of the host in a run. `--name` and `@NAME`: runs in
//! a folder of that name, to compare with.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};

use super::output::misuse;
use super::results;
use machine::Machine;
use model::run_file;

/// The help heading of output options.
pub const OUTPUT: &str = "Output";

#[derive(clap::Args, Default)]
#[command(next_help_heading = OUTPUT)]
pub struct Naming {
    /// Name of this host [default: $ASSAY_HOST, else the hostname]
    #[arg(long, value_name = "NAME", value_parser = name)]
    host: Option<String>,
    /// Label for results, such as rack=r7 [default: $ASSAY_LABELS]
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Name to keep this run by, for `assay compare @NAME`
    #[arg(long, value_name = "NAME", value_parser = baseline)]
    name: Option<String>,
}

/// Where runs are kept unless `--out` names a folder.
pub const OUT: &str = "assay-out";

/// Variables for the host's name and labels, if no option is given.
const HOST: &str = "ASSAY_HOST";
const LABELS: &str = "ASSAY_LABELS";

/// Longest name or label, characters.
const MAX_CHARS: usize = 100;
/// Most labels of a run: every summary contains them.
const MAX_LABELS: usize = 32;

/// Name and labels of the host in a run's header.
#[derive(Debug, PartialEq)]
pub struct Named {
    pub host: String,
    pub labels: BTreeMap<String, String>,
}

impl Naming {
    /// The folder of the runs of this name.
    pub fn folder(&self, out: &Path) -> PathBuf {
        self.name.as_ref().map_or(out.to_path_buf(), |name| out.join(name))
    }

    /// The host's name and labels: by options, by the environment, by the machine.
    pub fn settle(&self, machine: &Machine) -> anyhow::Result<Named> {
        let given = |variable: &str| std::env::var(variable).ok().filter(|text| !text.is_empty());
        self.named(machine.host.as_deref(), given(HOST), given(LABELS))
    }

    fn named(
        &self,
        own: Option<&str>,
        host: Option<String>,
        labels: Option<String>,
    ) -> anyhow::Result<Named> {
        let refused = |why: String, variable: &'static str| misuse(why).context(variable);
        let host = match (&self.host, host) {
            (Some(host), _) => host.clone(),
            (None, Some(text)) => name(&text).map_err(|why| refused(why, HOST))?,
            (None, None) => own.unwrap_or("unknown-host").to_string(),
        };
        let mut all = BTreeMap::new();
        for text in labels.iter().flat_map(|all| all.split(',')).map(str::trim).filter(|one| !one.is_empty())
        {
            all.extend([label(text).map_err(|why| refused(why, LABELS))?]);
        }
        // An option overrides the environment.
        all.extend(self.labels.iter().cloned());
        let many = || misuse(format!("{} labels; a run has at most {MAX_LABELS}", all.len()));
        anyhow::ensure!(all.len() <= MAX_LABELS, many());
        Ok(Named { host, labels: all })
    }
}

fn name(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > MAX_CHARS || text.chars().any(char::is_control) {
        Err(format!("a host's name has 1 to {MAX_CHARS} characters"))
    } else {
        Ok(text.to_string())
    }
}

/// A name that is a plain name of a folder, too.
fn baseline(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let is_file = text.trim_end_matches(".gz").ends_with(run_file::EXTENSION);
    let is_plain = !text.is_empty()
        && text.len() <= MAX_CHARS
        && text.chars().all(plain)
        && !text.starts_with(['.', '-']);
    match is_plain {
        true if is_file => {
            Err(format!("{} is the ending of run files, but this name is for a folder", run_file::EXTENSION))
        }
        true => Ok(text.to_string()),
        false => Err(format!(
            "a name has 1 to {MAX_CHARS} letters, digits, -, _ and ., and does not begin with - or ."
        )),
    }
}

/// Reads arguments that name results; `@NAME` is the folder of the runs of that name.
pub fn results() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|text| Ok::<_, String>(kept(&text)?.unwrap_or(PathBuf::from(text))))
}

/// The folder of the runs that `@NAME` names; `None` of anything else.
pub fn kept(text: &OsStr) -> Result<Option<PathBuf>, String> {
    named_runs(text, Path::new(OUT))
}

/// The place that one such argument names.
pub fn place(text: &str) -> Result<PathBuf, String> {
    Ok(named_runs(OsStr::new(text), Path::new(OUT))?.unwrap_or_else(|| PathBuf::from(text)))
}

/// Reads an argument that names one run; `@NAME` is the newest of that name.
pub fn run() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|text: OsString| match kept(&text)? {
        None => Ok(PathBuf::from(text)),
        Some(folder) => results::newest(&folder).map_err(|error| format!("{error:#}")),
    })
}

/// The folder of `@NAME`; `None` for anything else or an existing file. Unknown names are errors
/// that list the known ones.
fn named_runs(text: &OsStr, out: &Path) -> Result<Option<PathBuf>, String> {
    let Some(name) = text.to_str().and_then(|text| text.strip_prefix('@')) else { return Ok(None) };
    if Path::new(text).exists() {
        return Ok(None);
    }
    let entries = std::fs::read_dir(out).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| results::newest(&entry.path()).is_ok());
    let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| baseline(name).is_ok()).collect();
    names.sort();
    if names.iter().any(|own| own == name) {
        return Ok(Some(out.join(name)));
    }
    let near = model::did_you_mean(name, names.iter().map(String::as_str));
    let known = match names.len() {
        0 => "Name one by `assay run --name NAME`".to_string(),
        _ => format!("There are @{}", names.join(", @")),
    };
    Err(format!("no run in {} is named {name}{near}. {known}; of other folders use DIR/NAME", out.display()))
}

/// `rack=r7`: the key may have the characters of a variable, `-`, `.` and `/`.
fn label(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("{text:?} is not a label: write KEY=VALUE, such as rack=r7");
    let (key, value) = text.split_once('=').ok_or_else(wrong)?;
    let (key, value) = (key.trim(), value.trim());
    let is_key = key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let fits = |part: &str| !part.is_empty() && part.chars().count() <= MAX_CHARS;
    if is_key && fits(key) && fits(value) && !value.chars().any(|c| c.is_control() || c == ',') {
        Ok((key.to_string(), value.to_string()))
    } else {
        Err(wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_before_the_environment() {
        let given = Naming {
            host: Some("db1".into()),
            labels: vec![("rack".into(), "r7".into()), ("tier".into(), "gold".into())],
            name: None,
        };
        let environment = (Some("pod".to_string()), Some("rack=r1, zone=a".to_string()));
        let named = given.named(Some("vm"), environment.0.clone(), environment.1.clone()).expect("fine");
        assert_eq!(named.host, "db1");
        let labels: Vec<String> = named.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(labels, ["rack=r7", "tier=gold", "zone=a"]);
        let named = Naming::default().named(Some("vm"), environment.0, environment.1).expect("fine");
        assert_eq!((named.host.as_str(), named.labels.len()), ("pod", 2));
        assert_eq!(Naming::default().named(Some("vm"), None, None).expect("fine").host, "vm");
        let wrong = Naming::default().named(None, None, Some("rack".into())).expect_err("no label");
        assert!(format!("{wrong:#}").starts_with("ASSAY_LABELS: "), "{wrong:#}");
    }

    #[test]
    fn a_name_is_one_folder() {
        for name in ["before", "kernel-6.12", "a_b"] {
            assert_eq!(baseline(name).as_deref(), Ok(name));
        }
        for wrong in ["", ".", "..", "../x", "a/b", "-x", "a b", "@a", "x.assay.jsonl", "x.assay.jsonl.gz"] {
            assert!(baseline(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn labels_have_a_key_and_a_value() {
        assert_eq!(label("rack=r7=x"), Ok(("rack".into(), "r7=x".into())));
        for wrong in ["", "rack", "=x", "rack=", "a b=c", "a=b,c", "a=b\u{1b}"] {
            assert!(label(wrong).is_err(), "{wrong:?}");
        }
        assert!(name(" ").is_err() && name(&"x".repeat(101)).is_err() && name("db 1").is_ok());
    }
}
