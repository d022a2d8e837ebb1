//! Outcomes of many hosts on one screen: how many are accepted, which are rejected and for what,
//! what the undecided lack.

use check::{Demand, Outcome, PEERS, Standing, Verdict};

use super::{LONGEST, Shown, deciding, measured, tone};
use crate::plain::{lines, plain};
use crate::screen::{HostPart, Screen, Tone};
use crate::text::screen::{closing, host, shown, verdict};
use crate::text::{Style, paint};

/// Hosts that are listed one by one; above that what they miss is counted, too.
const HOSTS: usize = 12;

/// Demands that are counted, and hosts that are named beside each.
const DEMANDS: usize = 6;
const NAMED: usize = 3;

/// What several runs come to: `3 runs: REJECT: 1 accepted, 2 rejected.`
pub fn total(outcomes: &[Outcome]) -> String {
    let counts: Vec<String> =
        counts(outcomes).into_iter().map(|(count, word)| format!("{count} {word}")).collect();
    format!("{} runs: {}: {}.", outcomes.len(), Verdict::of_all(outcomes).words(), counts.join(", "))
}

/// How many runs have each verdict, without those that none has.
fn counts(outcomes: &[Outcome]) -> Vec<(usize, &'static str)> {
    let words = [
        (Verdict::Accept, "accepted"),
        (Verdict::Reject, "rejected"),
        (Verdict::NotUsable, "not usable"),
        (Verdict::CannotTell, "undecided"),
    ];
    let count = |verdict| outcomes.iter().filter(|one| one.verdict == verdict).count();
    words.into_iter().map(|(verdict, word)| (count(verdict), word)).filter(|(count, _)| *count > 0).collect()
}

/// The first screen of many runs; `older` says what was left out, or is empty.
pub fn many(outcomes: &[Outcome], older: &str, how: Shown, style: Style) -> String {
    let style = Style { width: style.width.clamp(40, 140), ..style };
    let of = |verdict: Verdict| outcomes.iter().filter(|one| one.verdict == verdict).collect::<Vec<_>>();
    let worst = Verdict::of_all(outcomes);
    let counted: Vec<String> =
        counts(outcomes).iter().map(|(count, word)| format!("{count} {word}")).collect();
    let sentence = format!("Of {} runs: {}.", outcomes.len(), counted.join(", "));
    let mut sentences = vec![sentence];
    sentences.extend(shared_label(outcomes));
    sentences.extend((!older.is_empty()).then(|| format!("{older}.")));
    let screen = Screen { word: worst.words().into(), tone: tone(worst), sentences, ..Screen::default() };
    let judged = verdict(&screen, style);
    if how == Shown::Quiet {
        return judged.join("\n").trim_start().to_string() + "\n";
    }
    let (rejected, unusable, undecided) =
        (of(Verdict::Reject), of(Verdict::NotUsable), of(Verdict::CannotTell));
    let mut parts = vec![about(outcomes, style), judged];
    if rejected.len() > HOSTS {
        parts.push(by_demand("missed", &rejected, Standing::Missed, style));
    }
    parts.push(listed("rejected", &rejected, style));
    parts.push(listed("not usable", &unusable, style));
    parts.push(by_demand("undecided", &undecided, Standing::Undecided, style));
    let decides = undecided.iter().find_map(|one| deciding(one));
    parts.push(decides.map_or(Vec::new(), |text| {
        let all = lines(&shown(&text, style), style.width.saturating_sub(2));
        all.iter().map(|line| paint(&format!("  {line}"), Tone::Dim, style)).collect()
    }));
    let exit = worst.exit_code();
    let row = [
        "--brief: one line per run".to_string(),
        "--all: each demand".to_string(),
        "--out fleet.csv".to_string(),
        if exit == 0 { String::new() } else { format!("exit {exit}") },
    ];
    parts.push(closing(&[row.to_vec()], style));
    parts.retain(|part| !part.is_empty());
    parts.iter().map(|part| part.join("\n") + "\n").collect::<Vec<_>>().join("\n")
}

/// How many hosts, and by which specs.
fn about(outcomes: &[Outcome], style: Style) -> Vec<String> {
    // What cannot be read may be of any host.
    let read = outcomes.iter().filter(|one| !one.background.assay.is_empty());
    let mut hosts: Vec<&str> = read.map(|one| one.host.as_str()).collect();
    let mut specs: Vec<&str> = outcomes.iter().map(|one| one.spec.as_str()).collect();
    for names in [&mut hosts, &mut specs] {
        names.sort_unstable();
        names.dedup();
        names.retain(|name| !name.is_empty());
    }
    let count = if hosts.len() == 1 { "1 host".to_string() } else { format!("{} hosts", hosts.len()) };
    let mut parts = vec![HostPart::needed(count)];
    parts.extend(match specs.as_slice() {
        [] => None,
        [spec] => Some(HostPart::needed(format!("spec {}", plain(spec, LONGEST)))),
        several => Some(HostPart::needed(format!("{} specs", several.len()))),
    });
    host(&parts, style)
}

/// A label that all rejected hosts have and not all others: what fails in one rack alone may be the
/// rack's.
fn shared_label(outcomes: &[Outcome]) -> Option<String> {
    let is_rejected = |one: &&Outcome| one.verdict == Verdict::Reject;
    let rejected: Vec<&Outcome> = outcomes.iter().filter(is_rejected).collect();
    let has = |one: &Outcome, label: (&String, &String)| one.labels.get(label.0) == Some(label.1);
    let label = rejected.first().filter(|_| rejected.len() > 1)?.labels.iter().find(|label| {
        rejected.iter().all(|one| has(one, *label)) && !outcomes.iter().all(|one| has(one, *label))
    });
    label.map(|(name, value)| format!("All rejected hosts have the label {name}={value}; not all others do."))
}

/// What of a demand was asked and found: `DRAM latency: 132 ns (130–134), asked ≤ 100 ns`.
fn words(demand: &Demand) -> String {
    let found = measured(demand, Shown::First);
    if demand.group == PEERS && demand.standing == Standing::Missed {
        // That is a sentence of its own.
        return found;
    }
    let why = if demand.value.is_none() && !demand.why.is_empty() && demand.why != found {
        format!(" ({})", demand.why)
    } else {
        String::new()
    };
    format!("{}: {found}{why}, asked {}", demand.alone(), demand.asked)
}

/// Why a run is not accepted: of what it misses the worst; else its first sentence.
fn reason(outcome: &Outcome) -> String {
    let missed = || outcome.demands.iter().filter(|demand| demand.standing == Standing::Missed);
    let by = |demand: &&Demand| demand.by.unwrap_or(0.0);
    let worst = missed().max_by(|a, b| by(a).total_cmp(&by(b)));
    match worst.filter(|_| outcome.verdict == Verdict::Reject) {
        None => outcome.sentences.first().cloned().unwrap_or_default(),
        Some(worst) => match missed().count() - 1 {
            0 => words(worst),
            more => format!("{}; {more} more missed", words(worst)),
        },
    }
}

/// Two columns, the first of which has names.
fn columns(rows: &[(String, String)], style: Style) -> Vec<String> {
    let text = |text: &str| shown(&plain(text, LONGEST), style);
    let widest = rows.iter().map(|(name, _)| text(name).chars().count()).max().unwrap_or(0);
    let width = widest.min(style.width / 3).max(8);
    let mut all = Vec::new();
    for (name, told) in rows {
        let name = lines(&text(name), width);
        let told = lines(&text(told), style.width.saturating_sub(width + 5).max(8));
        for at in 0..name.len().max(told.len()) {
            let of = |cells: &[String]| cells.get(at).cloned().unwrap_or_default();
            all.push(format!("    {:width$} {}", of(&name), of(&told)).trim_end().to_string());
        }
    }
    all
}

fn listed(title: &str, outcomes: &[&Outcome], style: Style) -> Vec<String> {
    if outcomes.is_empty() {
        return Vec::new();
    }
    let rows: Vec<(String, String)> =
        outcomes.iter().take(HOSTS).map(|one| (one.named(), reason(one))).collect();
    let mut all = vec![paint(&format!("  {title}"), Tone::Dim, style)];
    all.extend(columns(&rows, style));
    if let Some(more @ 1..) = outcomes.len().checked_sub(HOSTS) {
        all.push(paint(&format!("    {more} more {title}: --brief"), Tone::Dim, style));
    }
    all
}

/// The demands of which most hosts have a standing, with how many and the first of them.
fn by_demand(title: &str, outcomes: &[&Outcome], standing: Standing, style: Style) -> Vec<String> {
    let mut found: Vec<(&Demand, Vec<&str>)> = Vec::new();
    for (one, demand) in outcomes.iter().flat_map(|one| one.demands.iter().map(move |own| (one, own))) {
        if demand.standing != standing {
            continue;
        }
        let known = found.iter_mut().find(|(first, _)| first.key == demand.key);
        match known {
            Some((_, hosts)) if hosts.last() == Some(&one.host.as_str()) => {}
            Some((_, hosts)) => hosts.push(&one.host),
            None => found.push((demand, vec![&one.host])),
        }
    }
    // Of equals the one that the spec has first.
    found.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
    let rows = found.iter().take(DEMANDS).map(|(demand, hosts)| {
        let count = if hosts.len() == 1 { "1 host".to_string() } else { format!("{} hosts", hosts.len()) };
        let more = match hosts.len().checked_sub(NAMED) {
            Some(more @ 1..) => format!(" and {more} more"),
            _ => String::new(),
        };
        let named: Vec<&str> = hosts.iter().take(NAMED).copied().collect();
        let why = match standing {
            Standing::Undecided if !demand.why.is_empty() => format!(" ({})", demand.why),
            _ => String::new(),
        };
        (demand.alone().to_string(), format!("{count}: {}{more}{why}", named.join(", ")))
    });
    let rows: Vec<(String, String)> = rows.collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let mut all = vec![paint(&format!("  {title}, by demand"), Tone::Dim, style)];
    all.extend(columns(&rows, style));
    if let Some(more @ 1..) = found.len().checked_sub(DEMANDS) {
        all.push(paint(&format!("    {more} more demands: --brief, --all"), Tone::Dim, style));
    }
    all
}
