//! What runs are checked against: one spec, or of a folder of specs the one of a host's class; each
//! with the runs that its `within` counts from.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};

use super::super::{naming, results};
use super::company::Company;
use crate::output::eprint_line;
use ::check::{
    Catalogue, KnownBenchmark, OF_CLASS, Outcome, Ratio, ReferenceRatios, Spec, Subject, of_class,
};
use compare::{ComparisonSide, compare};
use model::{Summary, run_file};

/// No spec is larger.
const LARGEST: u64 = 1 << 20;

/// A run as it is judged.
pub struct Measured {
    pub subject: Subject,
    /// The run as an arm, if a spec needs a comparison.
    pub arm: Option<ComparisonSide>,
}

/// A spec with its reference.
#[derive(Clone)]
pub struct LoadedSpec {
    pub spec: Spec,
    reference: Option<ComparisonSide>,
    /// Where the runs are that its `[peers]` names.
    beside: Option<PathBuf>,
    /// Set for the runs that are checked.
    company: Option<Arc<Company>>,
}

impl LoadedSpec {
    /// Reads a spec file; errors name it.
    pub fn read(file: &Path) -> anyhow::Result<LoadedSpec> {
        let cannot = || format!("cannot use the spec {}", file.display());
        let mut text = String::new();
        let source = run_file::open(file)?;
        source.take(LARGEST + 1).read_to_string(&mut text).with_context(cannot)?;
        ensure!(text.len() as u64 <= LARGEST, "{}: it has more than 1 MiB", cannot());
        let (spec, warnings) = Spec::read_by(&text, &catalogue()).with_context(cannot)?;
        warnings.iter().for_each(|text| eprint_line(&format!("assay: {}: warning: {text}", file.display())));
        let reference = match spec.reference_name() {
            "" => None,
            name => {
                let read = reference(name, file);
                Some(read.with_context(|| format!("{}: its reference {name}", cannot()))?)
            }
        };
        let beside = match spec.peers.as_ref().and_then(|peers| peers.runs.as_deref()) {
            None => None,
            Some(name) => {
                let runs = named(name, file)?;
                let found = results::files(std::slice::from_ref(&runs)).unwrap_or_default();
                ensure!(
                    !found.is_empty() && found.iter().all(|file| file.exists()),
                    "{}: its [peers] name {}, which has no run",
                    cannot(),
                    runs.display()
                );
                Some(runs)
            }
        };
        Ok(LoadedSpec { spec, reference, beside, company: None })
    }

    /// Compares all checked runs with each other and with those that the spec names, if it asks for
    /// that. `read` caches the runs of earlier specs by name.
    pub fn together(&mut self, runs: &[PathBuf], read: &mut HashMap<Option<PathBuf>, Arc<Company>>) {
        if self.spec.peers.is_some() {
            let of_all = || {
                let all: Vec<PathBuf> = runs.iter().chain(&self.beside).cloned().collect();
                Arc::new(Company::of_files(&all))
            };
            self.company = Some(read.entry(self.beside.clone()).or_insert_with(of_all).clone());
        }
    }

    /// Holds a run that was just measured against the runs that the spec names.
    pub fn beside(&self, summary: Summary, file: &str) -> LoadedSpec {
        let company = self.beside.as_ref().map(|runs| Arc::new(Company::of_run(summary, file, runs)));
        LoadedSpec { company, ..self.clone() }
    }

    pub fn compares(&self) -> bool {
        self.reference.is_some()
    }

    /// Why it can judge no run of a profile, whatever is measured.
    pub fn refuses(&self, profile: &str) -> Option<String> {
        let profiles = &self.spec.run.profile;
        let refused = !profiles.is_empty() && !profiles.iter().any(|own| own == profile);
        refused.then(|| {
            format!(
                "--accept: the spec asks for profile {}, not {profile}: nothing was measured",
                profiles.join(" or ")
            )
        })
    }

    /// A run by it, `now_s` seconds after 1970.
    pub fn judge(&self, measured: &Measured, now_s: f64) -> anyhow::Result<Outcome> {
        let against = self.reference.as_ref().zip(measured.arm.as_ref()).map(|(a, b)| against(a, b));
        let among = self.company.as_ref().map(|company| company.among(&measured.subject));
        let subject = Subject { against, among, ..measured.subject.clone() };
        ::check::check(&self.spec, &subject, now_s).context("cannot use the spec")
    }
}

/// What this version can measure.
fn catalogue() -> Catalogue<'static> {
    let known = |bench: &'static bench::Benchmark| KnownBenchmark {
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

/// The runs that a spec names; relative paths begin at the spec's folder.
fn reference(name: &str, spec: &Path) -> anyhow::Result<ComparisonSide> {
    results::load(&named(name, spec)?)
}

fn named(name: &str, spec: &Path) -> anyhow::Result<PathBuf> {
    let kept = naming::kept(OsStr::new(name)).map_err(anyhow::Error::msg)?;
    Ok(kept.unwrap_or_else(|| spec.parent().unwrap_or(Path::new("")).join(name)))
}

fn against(reference: &ComparisonSide, own: &ComparisonSide) -> ReferenceRatios {
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
    ReferenceRatios {
        ratios: found.metrics.iter().map(ratio).collect(),
        refused: found.refused.iter().map(|one| (one.key_b.clone(), one.reason.clone())).collect(),
        same_run: reference.shared_runs(own) > 0,
    }
}

/// One spec for all runs, or one a class.
pub enum Specs {
    One(Box<LoadedSpec>),
    /// With the names of their files.
    OfClasses(Vec<(String, LoadedSpec)>),
}

impl Specs {
    /// Every spec of a folder; each must name the hosts that it is for.
    pub fn folder(folder: &Path) -> anyhow::Result<Specs> {
        let files = of_folder(folder)?;
        ensure!(!files.is_empty(), "the folder {} has no spec (*.toml)", folder.display());
        let mut all = Vec::new();
        for file in files {
            let loaded = LoadedSpec::read(&file)?;
            if !loaded.spec.names_a_class() {
                bail!(
                    "the spec {} does not name its hosts: in a folder of specs each needs one of {} under \
                      [machine]",
                    file.display(),
                    OF_CLASS.join(", ")
                );
            }
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            all.push((name, loaded));
        }
        Ok(Specs::OfClasses(all))
    }

    /// See [`LoadedSpec::together`].
    pub fn together(&mut self, runs: &[PathBuf]) {
        let mut read = HashMap::new();
        match self {
            Specs::One(loaded) => loaded.together(runs, &mut read),
            Specs::OfClasses(all) => all.iter_mut().for_each(|(_, loaded)| loaded.together(runs, &mut read)),
        }
    }

    pub fn compares(&self) -> bool {
        match self {
            Specs::One(loaded) => loaded.compares(),
            Specs::OfClasses(all) => all.iter().any(|(_, loaded)| loaded.compares()),
        }
    }

    pub fn judge(&self, measured: &Measured, now_s: f64) -> anyhow::Result<Outcome> {
        match self {
            Specs::One(loaded) => loaded.judge(measured, now_s),
            Specs::OfClasses(all) => {
                let named: Vec<(&str, &Spec)> =
                    all.iter().map(|(file, loaded)| (file.as_str(), &loaded.spec)).collect();
                match of_class(&named, &measured.subject) {
                    Ok(at) => all[at].1.judge(measured, now_s),
                    Err(why) => Ok(Outcome::without_spec(&measured.subject, &why)),
                }
            }
        }
    }

    /// The name of the spec, if there is one for all runs.
    pub fn name(&self) -> &str {
        match self {
            Specs::One(loaded) => &loaded.spec.name,
            Specs::OfClasses(_) => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_that_name_the_same_runs_read_them_once() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("good")).expect("a folder");
        std::fs::write(folder.path().join("good/empty.assay.jsonl"), "").expect("a file");
        let class = "[machine]\ncpu_model = \"A\"\n[peers]\nnot_slower = true\n";
        for (name, more) in [("a", ""), ("b", ""), ("c", "runs = \"good\"\n"), ("d", "runs = \"good\"\n")] {
            let file = folder.path().join(name).with_extension("toml");
            std::fs::write(file, format!("{class}{more}")).expect("a file");
        }
        let mut specs = Specs::folder(folder.path()).expect("specs");
        specs.together(&[folder.path().join("good")]);
        let Specs::OfClasses(all) = specs else { panic!("a folder") };
        let same = |a: usize, b: usize| match (&all[a].1.company, &all[b].1.company) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => panic!("each has peers"),
        };
        assert_eq!([same(0, 1), same(2, 3), same(0, 2)], [true, true, false]);
    }
}
