//! What runs are held against: one spec, or of a folder of specs the one of a host's class; each
//! with the runs that its `within` counts from.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use super::super::{naming, output, results};
use ::check::{Against, Catalogue, Known, OF_CLASS, Outcome, Ratio, Spec, Subject, of_class};
use compare::{Arm, compare};
use model::run_file;

/// No spec is larger.
const LARGEST: u64 = 1 << 20;

/// A run as it is judged.
pub struct Measured {
    pub subject: Subject,
    /// The same for a comparison, where a spec asks for one.
    pub arm: Option<Arm>,
}

/// A spec with its reference.
#[derive(Clone)]
pub struct Asked {
    pub spec: Spec,
    reference: Option<Arm>,
}

impl Asked {
    /// Reads a spec file; errors name it.
    pub fn read(file: &Path) -> anyhow::Result<Asked> {
        let cannot = || format!("the spec {} cannot be used", file.display());
        let mut text = String::new();
        let source = run_file::open(file).with_context(cannot)?;
        source.take(LARGEST + 1).read_to_string(&mut text).with_context(cannot)?;
        ensure!(text.len() as u64 <= LARGEST, "{}: it has more than 1 MiB", cannot());
        let (spec, warnings) = Spec::read_by(&text, &catalogue()).with_context(cannot)?;
        warnings.iter().for_each(|text| output::tell(&format!("assay: {}: warning: {text}", file.display())));
        let reference = match spec.reference_name() {
            "" => None,
            name => {
                let read = reference(name, file);
                Some(read.with_context(|| format!("{}: its reference {name}", cannot()))?)
            }
        };
        Ok(Asked { spec, reference })
    }

    pub fn compares(&self) -> bool {
        self.reference.is_some()
    }

    /// Why it can judge no run of a profile, whatever is measured.
    pub fn refuses(&self, profile: &str) -> Option<String> {
        let asked = &self.spec.run.profile;
        let refused = !asked.is_empty() && !asked.iter().any(|own| own == profile);
        refused.then(|| {
            format!(
                "--accept: the spec asks for a run of the profile {}, and this one would be {profile}: nothing was measured",
                asked.join(" or ")
            )
        })
    }

    /// A run by it, `now_s` seconds after 1970.
    pub fn judge(&self, measured: &Measured, now_s: f64) -> anyhow::Result<Outcome> {
        let against = self.reference.as_ref().zip(measured.arm.as_ref()).map(|(a, b)| against(a, b));
        let subject = Subject { against, ..measured.subject.clone() };
        ::check::check(&self.spec, &subject, now_s).context("the spec cannot be used")
    }
}

/// What this version can measure.
fn catalogue() -> Catalogue<'static> {
    let known = |bench: &'static bench::Benchmark| Known {
        id: bench.id.as_str(),
        metrics: bench.metrics.iter().map(|own| (own.name.as_ref(), own.unit.as_ref())).collect(),
        params: bench.params.iter().map(|param| param.name.as_str()).collect(),
    };
    let profiles = session::plan::PROFILES.map(|profile| profile.name).to_vec();
    Catalogue { benches: bench::all().map(known).collect(), profiles }
}

/// The spec files of a folder, by name.
pub fn of_folder(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read the folder of specs {}", folder.display());
    let entries = std::fs::read_dir(folder).with_context(cannot)?.flatten().map(|entry| entry.path());
    let is_spec = |path: &PathBuf| path.extension() == Some(OsStr::new("toml")) && path.is_file();
    let mut files: Vec<PathBuf> = entries.filter(is_spec).collect();
    files.sort();
    Ok(files)
}

/// The runs that a spec names. A path that does not begin at the root begins at the spec's folder.
fn reference(name: &str, spec: &Path) -> anyhow::Result<Arm> {
    let kept = naming::kept(OsStr::new(name)).map_err(anyhow::Error::msg)?;
    let beside = || spec.parent().unwrap_or(Path::new("")).join(name);
    results::load(&kept.unwrap_or_else(beside))
}

fn against(reference: &Arm, own: &Arm) -> Against {
    let found = compare(reference, own, &compare::Options::default());
    let ratio = |one: &compare::Compared| {
        let [theirs, here] = one.figures();
        Ratio {
            key: one.key.clone(),
            figures: format!("{here}; the reference has {theirs}"),
            value: one.ratio,
            low_high: one.ci95,
            better: one.better,
        }
    };
    Against {
        ratios: found.metrics.iter().map(ratio).collect(),
        refused: found.refused.iter().map(|one| (one.key_b.clone(), one.reason.clone())).collect(),
        same_run: reference.shared_runs(own) > 0,
    }
}

/// One spec for all runs, or one a class.
pub enum Specs {
    One(Box<Asked>),
    /// With the names of their files.
    OfClasses(Vec<(String, Asked)>),
}

impl Specs {
    /// Every spec of a folder; each must say of which hosts it is.
    pub fn folder(folder: &Path) -> anyhow::Result<Specs> {
        let files = of_folder(folder)?;
        ensure!(
            !files.is_empty(),
            "the folder {} holds no spec (a name that ends in .toml)",
            folder.display()
        );
        let mut all = Vec::new();
        for file in files {
            let asked = Asked::read(&file)?;
            if !asked.spec.names_a_class() {
                bail!(
                    "the spec {} does not say of which hosts it is: in a folder of specs each has one of {} under [machine]",
                    file.display(),
                    OF_CLASS.join(", ")
                );
            }
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            all.push((name, asked));
        }
        Ok(Specs::OfClasses(all))
    }

    pub fn compares(&self) -> bool {
        match self {
            Specs::One(asked) => asked.compares(),
            Specs::OfClasses(all) => all.iter().any(|(_, asked)| asked.compares()),
        }
    }

    pub fn judge(&self, measured: &Measured, now_s: f64) -> anyhow::Result<Outcome> {
        match self {
            Specs::One(asked) => asked.judge(measured, now_s),
            Specs::OfClasses(all) => {
                let named: Vec<(&str, &Spec)> =
                    all.iter().map(|(file, asked)| (file.as_str(), &asked.spec)).collect();
                match of_class(&named, &measured.subject) {
                    Ok(at) => all[at].1.judge(measured, now_s),
                    Err(why) => Ok(Outcome::without_spec(&measured.subject, &why)),
                }
            }
        }
    }

    /// What is asked of every run, where that is one thing.
    pub fn name(&self) -> &str {
        match self {
            Specs::One(asked) => &asked.spec.name,
            Specs::OfClasses(_) => "",
        }
    }
}
