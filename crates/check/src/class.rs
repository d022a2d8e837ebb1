//! Which spec of several is that of a host: the one whose class it is, by what its `[machine]` says
//! of the hardware.

use super::spec::Spec;
use super::subject::Subject;

/// Facts by which classes of hosts differ. A setting, a kernel or a module in the wrong slot makes
/// no other class: those are demands.
pub const OF_CLASS: [&str; 8] =
    ["cpu_model", "packages", "cores", "cpus", "numa_nodes", "memory_gib", "product", "hypervisor"];

impl Spec {
    /// Whether it says of which hosts it is.
    pub fn names_a_class(&self) -> bool {
        self.facts.iter().any(|(name, _)| OF_CLASS.contains(&name.as_str()))
    }

    /// The first fact by which a host is not of its class, in words.
    fn misfit(&self, subject: &Subject) -> Option<String> {
        let of_class = self.facts.iter().filter(|(name, _)| OF_CLASS.contains(&name.as_str()));
        of_class
            .filter_map(|(name, asked)| match subject.fact(name) {
                Some(value) if asked.holds(value) == Some(true) => None,
                Some(value) => Some(format!("{name} is {value}, the spec asks for {}", asked.words())),
                None => Some(format!("the run does not report its {name}")),
            })
            .next()
    }
}

/// The place of the one spec whose class a host is, of specs with the names of their files; else
/// why there is none.
pub fn of_class(specs: &[(&str, &Spec)], subject: &Subject) -> Result<usize, String> {
    let misfits: Vec<Option<String>> = specs.iter().map(|(_, spec)| spec.misfit(subject)).collect();
    let fitting: Vec<usize> = (0..specs.len()).filter(|at| misfits[*at].is_none()).collect();
    match fitting.as_slice() {
        [at] => Ok(*at),
        [] => {
            let why = specs.iter().zip(misfits.iter().flatten()).take(SHOWN);
            let why: Vec<String> = why.map(|((file, _), why)| format!("{file} ({why})")).collect();
            let more = specs.len() - why.len();
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            Err(format!("no spec fits this host: {}{more}", why.join(", ")))
        }
        several => {
            let files: Vec<&str> = several.iter().map(|at| specs[*at].0).collect();
            let what = "make their [machine] tables differ, or name one with --spec";
            Err(format!("{} specs fit this host, {}: {what}", files.len(), files.join(" and ")))
        }
    }
}

/// Specs that are named where none fits.
const SHOWN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &[(&str, &str)], subject: &Subject) -> Result<usize, String> {
        let specs: Vec<Spec> = all.iter().map(|(_, text)| Spec::read(text).expect("a spec")).collect();
        let named: Vec<(&str, &Spec)> = all.iter().map(|(name, _)| *name).zip(&specs).collect();
        of_class(&named, subject)
    }

    #[test]
    fn the_spec_of_a_hosts_class_is_taken_and_one_only() {
        let facts = [("cpu_model", "EPYC 7543"), ("cpus", "64"), ("dimm_verdict", "uneven")];
        let facts = facts.map(|(name, value)| (name.to_string(), value.to_string()));
        let subject = Subject { facts: facts.to_vec(), ..Subject::default() };
        let amd =
            ("amd.toml", "name = \"amd\"\n[machine]\ncpu_model = \"EPYC*\"\ndimm_verdict = \"balanced\"");
        let intel = ("intel.toml", "name = \"intel\"\n[machine]\ncpu_model = \"Xeon*\"");
        let large = ("large.toml", "name = \"large\"\n[machine]\ncpus = { min = 32 }");
        // A module in the wrong slot is a demand that is missed, and no other class.
        assert_eq!(of(&[intel, amd], &subject), Ok(1));
        let none = of(&[intel], &subject).err().unwrap_or_default();
        assert!(none.contains("intel.toml (cpu_model is EPYC 7543, the spec asks for Xeon*)"), "{none}");
        let two = of(&[amd, intel, large], &subject).err().unwrap_or_default();
        assert!(two.contains("2 specs fit this host, amd.toml and large.toml"), "{two}");
        let unknown = of(&[amd], &Subject::default()).err().unwrap_or_default();
        assert!(unknown.contains("does not report its cpu_model"), "{unknown}");
        let any = Spec::read("[findings]\nfail_at = \"problem\"").expect("a spec");
        assert!(!any.names_a_class());
    }
}
