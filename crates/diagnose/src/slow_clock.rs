//! A core clock below the reported one, and its causes.

use super::tracks::{self, Track};
use super::words::percent;
use super::{Evidence, Rule};
use machine::Hypervisor;
use model::vocabulary::host as ids;
use model::{Fact, Finding, Severity, TimeLine};
use stats::estimate::interval_of_median;
use stats::order::{Interval, median};

pub const RULES: &[Rule] = &[SLOW];

const SLOW: Rule = Rule {
    id: ids::rule::SLOW_CLOCK,
    title: "The core clock is below the reported one",
    topic: "clock",
    meaning: "A processor keeps its base clock under any load that its cooling and power supply are made for. Here something keeps \
             it lower: a governor, a cap, heat, a power limit or firmware. All work inside the core is slower by the same share.",
    action: "Remove the cause that the finding names, such as the governor: cpupower frequency-set -g performance. See it: assay \
             run --only cpu.clock --profile standard --new",
    when: "The 95 % interval of the median clock over passes (six at least) lies below 95 % of the base clock. With a cap the \
             hardware's highest clock counts. In a guest without cpufreq it is a note.",
    how: "The clock of a pass is the median over its samples. The base clock is base_frequency, what CPUID leaf 16h or the model \
             name gives, or acpi-cpufreq's highest (which has no turbo in it). A cap is scaling_max_freq below cpuinfo_max_freq. \
             A guest's base clock is what the host reports, which may be too high. Load raises the clock: what the kernel shows \
             for an idle core says nothing.",
    calm: "core clock at or above base",
    looked_at: "timed additions",
    source: file!(),
    check: slow,
};

/// Clocks from this share of the reported one on are in order: a reading from a short chain errs by
/// a percent or two.
const MIN_SHARE: f64 = 0.95;
/// Within this many degrees of the critical temperature processors throttle, or soon will.
const THROTTLING_MARGIN_C: f64 = 7.0;

/// A reported clock.
struct Claim {
    ghz: f64,
    what: &'static str,
    source: &'static str,
}

fn slow(evidence: &Evidence) -> Option<Vec<Finding>> {
    let claim = claim(evidence)?;
    let clocks: Vec<f64> = tracks::visit_clocks(evidence.run).into_iter().map(|(_, ghz)| ghz).collect();
    let (middle, interval) = (median(&clocks)?, interval_of_median(&clocks, 0.95)?);
    if interval.high >= MIN_SHARE * claim.ghz {
        return Some(Vec::new());
    }
    Some(vec![finding(evidence, &claim, middle, interval)])
}

/// The reported clock to compare with: with a cap the highest of the hardware, else the base clock.
fn claim(evidence: &Evidence) -> Option<Claim> {
    const GHZ: f64 = 1e-6;
    let frequency = &evidence.machine.frequency;
    let highest = frequency.hardware_max_khz.map(|khz| khz as f64 * GHZ);
    if let (Some(ghz), true) = (highest, is_capped(evidence)) {
        return Some(Claim { ghz, what: "highest clock", source: "cpuinfo_max_freq" });
    }
    let base = frequency.base_khz.map(|khz| khz as f64 * GHZ);
    let plain = highest.filter(|_| frequency.driver.as_deref() == Some("acpi-cpufreq"));
    match (base, plain) {
        (Some(ghz), _) => {
            Some(Claim { ghz, what: "base clock", source: "base_frequency, cpuid or model name" })
        }
        (None, Some(ghz)) => {
            Some(Claim { ghz, what: "base clock", source: "cpuinfo_max_freq of acpi-cpufreq" })
        }
        _ => None,
    }
}

fn is_capped(evidence: &Evidence) -> bool {
    let frequency = &evidence.machine.frequency;
    frequency.max_khz.zip(frequency.hardware_max_khz).is_some_and(|(now, hardware)| now < hardware)
}

fn finding(evidence: &Evidence, claim: &Claim, middle: f64, interval: Interval) -> Finding {
    let found = causes(evidence);
    let guest = matches!(evidence.machine.hypervisor, Hypervisor::Guest(_));
    let unseen = guest && evidence.machine.frequency.driver.is_none();
    let ghz = format!("{middle:.2} GHz ({:.2}–{:.2})", interval.low, interval.high);
    let (sentences, advice): (Vec<&str>, Vec<&str>) =
        found.iter().map(|cause| (cause.sentence, cause.advice)).unzip();
    let (cause, advice) = match (found.is_empty(), unseen) {
        (false, _) => (sentences.join(" "), advice.join(" ")),
        (true, true) => (
            "A guest cannot see what sets the clock. The host may save power, share the core, or not keep the clock of its \
             model name."
                .to_string(),
            "Plan with the measured clock. Ask the provider for the host's power settings.".to_string(),
        ),
        (true, false) => (
            "Nothing that the kernel reports explains it. A power limit (RAPL, a BMC's cap), firmware's energy setting or \
             wide vector work may."
                .to_string(),
            "Look at the firmware's power profile. See PkgWatt and the limits that turbostat prints first."
                .to_string(),
        ),
    };
    let headline = format!(
        "The core runs at {middle:.2} GHz, {} below its {} of {:.2} GHz",
        percent(1.0 - middle / claim.ghz),
        claim.what,
        claim.ghz
    );
    let severity = if unseen { Severity::Note } else { Severity::Warning };
    let finding = Finding::of(SLOW.id, severity, headline)
        .cause(cause)
        .fact("measured clock", ghz, "covariate clock_ghz, median over passes")
        .fact(claim.what, format!("{:.2} GHz", claim.ghz), claim.source)
        .facts(found.iter().map(|cause| Fact::new(cause.label, &cause.value, &cause.source)))
        .confirm("assay run --only cpu.clock --profile standard --new")
        .advice(advice);
    match unseen {
        true => finding,
        false => finding.explains(evidence.series.iter().map(|judged| &judged.series.key)),
    }
}

/// One cause of a low clock, as the snapshot or the time lines show it.
struct Cause {
    label: &'static str,
    value: String,
    source: String,
    sentence: &'static str,
    advice: &'static str,
}

fn causes(evidence: &Evidence) -> Vec<Cause> {
    let frequency = &evidence.machine.frequency;
    let mut causes = Vec::new();
    let slow_governors = ["powersave", "userspace", "ondemand", "conservative", "schedutil"];
    for (name, cpus) in &frequency.governors {
        if slow_governors.contains(&name.as_str()) {
            causes.push(Cause {
                label: "governor",
                value: format!("{name} on CPUs {cpus}"),
                source: "scaling_governor".into(),
                sentence: "The governor keeps the clock low or raises it late.",
                advice: "For measuring: cpupower frequency-set -g performance, and back afterwards.",
            });
        }
    }
    if is_capped(evidence) {
        causes.push(Cause {
            label: "highest allowed clock",
            value: format!("{:.2} GHz", frequency.max_khz.unwrap_or(0) as f64 / 1e6),
            source: "scaling_max_freq".into(),
            sentence: "A cap limits the clock below what the processor offers.",
            advice: "Lift the cap: cpupower frequency-set -u with the value of cpuinfo_max_freq.",
        });
    }
    let throttles = Evidence::total(evidence.visits(), |c| c.thermal_throttles);
    if let Some(total) = throttles.filter(|total| total.value > 0.0) {
        causes.push(Cause {
            label: "thermal throttle events",
            value: format!("{:.0}", total.value),
            source: "thermal_throttle over all passes".into(),
            sentence: "The processor throttled itself because it was too hot.",
            advice: "Look at fans, heat sink and the air around the host.",
        });
    }
    causes.extend(hot(&tracks::observed(evidence.run)));
    if frequency.turbo == Some(false) {
        causes.push(Cause {
            label: "turbo",
            value: "off".into(),
            source: "intel_pstate/no_turbo, cpufreq/boost".into(),
            sentence: "Turbo is off, so the clock cannot rise above base.",
            advice: "Allow turbo (no_turbo to 0, boost to 1).",
        });
    }
    causes
}

/// The sensor that came nearest to its critical temperature, if within the margin.
fn hot(tracks: &[Track]) -> Option<Cause> {
    let of = |subject: &'static str| tracks.iter().filter(move |track| track.subject == subject);
    let margin = |track: &Track| {
        let limit = of(TimeLine::CRITICAL).find(|limit| limit.name == track.name)?.highest()?;
        Some((limit - track.highest()?, limit, track.highest()?, track.name.clone()))
    };
    let nearest =
        of(TimeLine::TEMPERATURE).filter_map(margin).min_by(|one, other| one.0.total_cmp(&other.0))?;
    let (left, limit, degrees, name) = nearest;
    (left <= THROTTLING_MARGIN_C).then(|| Cause {
        label: "hottest",
        value: format!("{degrees:.0} °C, critical is {limit:.0} °C"),
        source: format!("time line temperature, {name}"),
        sentence: "The processor was nearly critically hot, and slows down to protect itself.",
        advice: "Look at fans, heat sink and the air around the host.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Machine;
    use model::{Packed, Run};
    use testkit::{run, samples, visit};

    /// The readings of a Core i5-2520M (2.5 GHz, turbo up to 3.2) that were published: idle, and
    /// under lmbench.
    const IDLE_GHZ: [f64; 2] = [1.36696, 1.38101];
    const LOADED_GHZ: [f64; 2] = [2.98917, 3.05032];

    fn at(clocks: &[f64]) -> Run {
        let visit = |order: u32| {
            let mut noted = samples("rate", 0, &[1.0; 4]);
            noted.beside.clock_ghz = Some(Packed::Same(clocks[order as usize % clocks.len()]));
            visit(order, 0, 0, vec![noted])
        };
        run(1, (0..12).map(visit).collect())
    }

    fn laptop() -> Machine {
        let mut machine = Machine::default();
        machine.frequency.base_khz = Some(2_500_000);
        machine.frequency.hardware_max_khz = Some(3_200_000);
        machine.frequency.max_khz = Some(3_200_000);
        machine
    }

    fn found(run: &Run, machine: &Machine) -> Option<Vec<Finding>> {
        slow(&Evidence::new(run, machine, None, &[]))
    }

    fn words(run: &Run, machine: &Machine) -> String {
        let found = found(run, machine).unwrap_or_default();
        found.first().map(|finding| format!("{}. {}", finding.headline, finding.cause)).unwrap_or_default()
    }

    #[test]
    fn the_published_laptop() {
        let machine = laptop();
        assert_eq!(found(&at(&LOADED_GHZ), &machine), Some(Vec::new()), "load alone reaches turbo");
        let idle = words(&at(&IDLE_GHZ), &machine);
        let wanted = "The core runs at 1.37 GHz, 45 % below its base clock of 2.50 GHz. Nothing that the kernel reports";
        assert!(idle.starts_with(wanted), "{idle}");
    }

    #[test]
    fn what_holds_it_back_is_named() {
        let mut machine = laptop();
        machine.frequency.governors.insert("powersave".into(), (0..2).collect());
        assert!(words(&at(&IDLE_GHZ), &machine).contains("The governor keeps the clock low"));
        let mut machine = laptop();
        machine.frequency.max_khz = Some(2_000_000);
        let capped = words(&at(&[2.0]), &machine);
        assert!(capped.contains("38 % below its highest clock of 3.20 GHz. A cap limits"), "{capped}");
        machine.frequency.turbo = Some(false);
        assert!(words(&at(&[2.0]), &machine).contains("Turbo is off"));

        let mut run = at(&[1.2]);
        run.visits[0].conditions.wall_ms = 10.0;
        run.visits[0].conditions.thermal_throttles = Some(3.0);
        assert!(words(&run, &laptop()).contains("throttled itself"));

        let mut run = at(&[1.2]);
        let line = |subject: &'static str, degrees: &[f64]| TimeLine {
            subject: subject.into(),
            name: "coretemp Package id 0".into(),
            unit: "°C".into(),
            at_ms: vec![0.0; degrees.len()],
            value: degrees.to_vec(),
            missing: None,
        };
        run.time_lines =
            vec![line(TimeLine::CRITICAL, &[100.0]), line(TimeLine::TEMPERATURE, &[62.0, 96.0, 73.0])];
        assert!(words(&run, &laptop()).contains("critically hot"), "{}", words(&run, &laptop()));
        run.time_lines[1] = line(TimeLine::TEMPERATURE, &[62.0, 69.0, 73.0]);
        assert!(words(&run, &laptop()).contains("Nothing that the kernel reports"));
    }

    #[test]
    fn a_guests_claim_is_its_hosts() {
        let mut machine = laptop();
        machine.frequency = Default::default();
        machine.frequency.base_khz = Some(2_500_000);
        machine.hypervisor = Hypervisor::Guest("kvm".into());
        let found = found(&at(&[1.9]), &machine).unwrap_or_default();
        assert_eq!((found[0].severity, found[0].effect), (Severity::Note, model::Effect::None));
        assert!(found[0].cause.starts_with("A guest cannot see"));
    }

    #[test]
    fn without_a_claim_or_enough_visits_it_does_not_apply() {
        assert_eq!(found(&at(&[1.0]), &Machine::default()), None);
        let mut run = at(&[1.0]);
        run.visits.truncate(3);
        assert_eq!(found(&run, &laptop()), None);
        assert_eq!(found(&at(&[2.42]), &laptop()), Some(Vec::new()), "three percent are no finding");
    }
}
