//! The plan of a guarded command: the same program under each requested placement.

use std::time::Duration;

use super::{Candidate, Scope};
use bench::{FLOOR, NAMES, RIVAL, TIMEOUT, WANTED, WORDS, Wanted};
use model::vocabulary::guard as ids;
use model::{Placement, fingerprint};

/// A command as the user gave it.
pub struct Guarded {
    pub words: Vec<String>,
    pub wanted: Option<Wanted>,
    pub timeout: Duration,
}

/// Placements of a guarded command.
pub const PLACEMENTS: [&str; 3] = ["free", "same-cpu", "spread"];

const DUET: &str = "duet";

/// Estimated seconds of a run: unknown before the first, and the clock ends the run.
const UNKNOWN_S: f64 = 0.01;

impl Guarded {
    /// Program and fingerprint: equal for equal words and an equal metric.
    fn name(&self) -> serde_json::Result<String> {
        let program = self.words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
        let harmless =
            |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
        let program: String = program.chars().take(24).map(harmless).collect();
        let identity = serde_json::to_string(&(&self.words, &self.wanted))?;
        Ok(format!("{program}-{:08x}", fingerprint(&identity) >> 32))
    }
}

/// A case for each command and placement, those of a placement together.
pub fn cases(scope: &Scope, commands: &[Guarded], placements: &[String]) -> Vec<Candidate> {
    let of = |placement: &String| {
        let name = PLACEMENTS.into_iter().find(|known| known == placement).unwrap_or(PLACEMENTS[0]);
        let all = commands.iter().map(move |command| case(scope, command, name));
        all.map(|candidate| {
            candidate.unwrap_or_else(|why| Candidate::unmet(ids::COMMAND, name, why.to_string()))
        })
    };
    placements.iter().flat_map(of).collect()
}

/// One case of two commands at once on two like CPUs: a visit runs both.
pub fn duet(scope: &Scope, a: &Guarded, b: &Guarded) -> Candidate {
    both(scope, a, b).unwrap_or_else(|why| Candidate::unmet(ids::COMMAND, DUET, why.to_string()))
}

fn both(scope: &Scope, a: &Guarded, b: &Guarded) -> serde_json::Result<Candidate> {
    let mut candidate = candidate_of(scope, a, scope.placements.like_pair("command", scope.machine), DUET)?;
    let inputs =
        [(RIVAL, serde_json::to_string(&b.words)?), (NAMES, format!("A-{},B-{}", a.name()?, b.name()?))];
    candidate.case.inputs.extend(inputs.map(|(name, value)| (name.to_string(), value)));
    Ok(candidate)
}

fn case(scope: &Scope, command: &Guarded, name: &'static str) -> serde_json::Result<Candidate> {
    let found = match name {
        "same-cpu" => scope.placements.one_cpu("command"),
        "spread" if scope.placements.cpus().len() < 2 => {
            Err("only one CPU is allowed: nothing to spread over".into())
        }
        "spread" => Ok(scope.placements.all("command")),
        _ => scope.placements.free(&["command"]),
    };
    Ok(candidate_of(scope, command, found, name)?.param(ids::param::COMMAND, command.name()?.as_str()))
}

/// The candidate of a command, with the inputs of its visits.
fn candidate_of(
    scope: &Scope,
    command: &Guarded,
    found: Result<Placement, String>,
    name: &'static str,
) -> serde_json::Result<Candidate> {
    let mut candidate = match found {
        Ok(placement) => {
            let placement = Placement { name: name.into(), ..placement };
            Candidate::new(ids::COMMAND, placement, 100, UNKNOWN_S)
        }
        Err(why) => Candidate::unmet(ids::COMMAND, name, why),
    };
    let mut inputs = vec![
        (WORDS, serde_json::to_string(&command.words)?),
        (TIMEOUT, command.timeout.as_secs_f64().to_string()),
        (FLOOR, scope.placements.chart()),
    ];
    if let Some(wanted) = &command.wanted {
        inputs.push((WANTED, serde_json::to_string(wanted)?));
    }
    candidate.case.inputs.extend(inputs.into_iter().map(|(name, value)| (name.to_string(), value)));
    Ok(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::Depth;
    use bench::placement::Placements;
    use machine::{Cache, CacheKind, Core, Machine};
    use model::CpuSet;

    fn command(words: &[&str]) -> Guarded {
        let words = words.iter().map(|word| word.to_string()).collect();
        Guarded { words, wanted: None, timeout: Duration::from_secs(5) }
    }

    fn machine(cpus: u32) -> Machine {
        let mut machine = Machine::default();
        machine.cpus.online = (0..cpus).collect::<CpuSet>();
        machine
    }

    fn in_scope<T>(machine: Machine, of: impl FnOnce(&Scope) -> T) -> T {
        let placements = Placements::of(&machine);
        of(&Scope::new(&machine, &placements, Depth::Quick, 1 << 30))
    }

    fn planned(cpus: u32, words: &[&str]) -> Vec<Candidate> {
        let placements = PLACEMENTS.map(str::to_string);
        in_scope(machine(cpus), |scope| cases(scope, &[command(words)], &placements))
    }

    #[test]
    fn a_duet_is_one_case_of_two_points_on_two_like_cpus() {
        let mut machine = machine(2);
        let core = |cpu| Core { cpus: CpuSet::one(cpu), ..Core::default() };
        machine.cpus.cores = Some([0, 1].map(core).to_vec());
        let [a, b] = [["/bin/z", "1"], ["/bin/b", "2"]].map(|words| command(&words));
        let duet = |machine| in_scope(machine, |scope| duet(scope, &a, &b));
        assert!(duet(machine.clone()).unmet.is_some(), "they share no cache");
        let (kind, cpus) = (CacheKind::Unified, (0..2).collect());
        machine.caches = vec![Cache::new(3, kind, cpus)];
        let found = duet(machine);
        assert_eq!((found.unmet, found.case.key()), (None, "guard.command@duet".to_string()));
        assert_eq!((found.case.placement.seats.len(), found.case.placement.cpus().len()), (2, 2));
        let points = bench::find(ids::COMMAND.as_str()).map(|bench| (bench.points)(&found.case));
        let names: Vec<String> = points
            .unwrap_or_default()
            .iter()
            .filter_map(|point| Some(point.get(ids::param::COMMAND)?.text()?.to_string()))
            .collect();
        // In this order in every list that is sorted.
        assert!(
            names.len() == 2 && names[0].starts_with("A-z-") && names[1].starts_with("B-b-"),
            "{names:?}"
        );
        assert_eq!(found.case.inputs.get(RIVAL), Some(&"[\"/bin/b\",\"2\"]".to_string()));
    }

    #[test]
    fn each_placement_is_a_case_and_the_words_are_no_part_of_its_name() {
        let cases = planned(4, &["/bin/a b", "--secret"]);
        let keys: Vec<String> = cases.iter().map(|candidate| candidate.case.key()).collect();
        assert_eq!(keys.len(), 3);
        assert!(keys[0].starts_with("guard.command@free?command=a_b-"), "{keys:?}");
        assert!(keys.iter().all(|key| !key.contains("secret")));
        assert_eq!(cases[1].case.placement.cpus().len(), 1);
        assert_eq!(cases[2].case.placement.cpus().len(), 4);
        assert_ne!(planned(4, &["a", "b"])[0].case.key(), planned(4, &["a b"])[0].case.key());
        assert!(planned(1, &["a"])[2].unmet.is_some());
    }
}
