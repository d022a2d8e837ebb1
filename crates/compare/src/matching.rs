//! Which series of two results mean the same, and what forbids comparing those that nearly do.

use std::collections::{BTreeMap, BTreeSet};

use super::occupancy::{Occupancy, difference as moved, occupancies};
use super::unixbench::placed;
use super::{ComparisonSide, Member, Refused, counterparts};
use import::lmbench::has_unknown_size;
use model::{Better, Case, Form, Pages, Params, VerdictKind, figure};

/// Two series that may be compared: A's values times `scale` are in B's unit.
pub struct Match<'a> {
    pub a: &'a Member,
    pub b: &'a Member,
    pub scale: f64,
    pub note: Option<String>,
    /// Whether the two are headlines.
    pub headline: bool,
    /// Different tools measured the same thing in their own ways.
    pub across: bool,
}

impl Match<'_> {
    /// The pair as one that is not compared.
    pub fn refused(&self, factor: &str, reason: String) -> Refused {
        refusal([self.a, self.b], self.headline, factor, reason)
    }

    /// Runs that gave the values of each of the two.
    pub fn runs(&self) -> [usize; 2] {
        [self.a.runs(), self.b.runs()]
    }
}

fn refusal([a, b]: [&Member; 2], headline: bool, factor: &str, reason: String) -> Refused {
    Refused {
        key: a.key.clone(),
        key_b: b.key.clone(),
        factor: factor.to_string(),
        conditions: !LACKS.contains(&factor),
        headline,
        reason,
        a: figure(a.median, &a.metric.unit),
        b: figure(b.median, &b.metric.unit),
        values: [a.median * unit_scale(&a.metric.unit, &b.metric.unit).unwrap_or(f64::NAN), b.median],
        unit: b.metric.unit.to_string(),
        title: b.title.clone(),
        better: b.metric.better,
        rejected: [a, b].map(|one| one.verdict.kind == VerdictKind::Rejected),
    }
}

/// Factors that are no difference of conditions, but a lack of what a comparison needs.
const LACKS: [&str; 3] = ["size", "unit", "value"];

/// Everything but where and on which pages it ran.
fn subject(member: &Member) -> String {
    let mut case: Case = member.case.clone();
    case.placement.name = "".into();
    case.placement.pages = Pages::AsGiven;
    case.placement.beside = Default::default();
    case.knobs.clear();
    case.series_key(&member.point, &member.metric.name)
}

/// The same without the point.
fn curve(member: &Member) -> String {
    let bare = Member { point: Params::new(), ..member.clone() };
    subject(&bare)
}

/// The pairs, in A's order. What is on both sides and must not be compared is added to `refused`.
pub fn matches<'a>(
    a: &'a ComparisonSide,
    b: &'a ComparisonSide,
    refused: &mut Vec<Refused>,
) -> Vec<Match<'a>> {
    let pairing = Pairing::of(a, b);
    let mut matches = Vec::new();
    let mut without_size: BTreeSet<&str> = BTreeSet::new();
    for member in a.valued() {
        match pairing.counterpart(member) {
            Counterpart::None => {}
            // Once a curve is enough.
            Counterpart::WithoutSize(other, _) if !without_size.insert(&other.key) => {}
            Counterpart::WithoutSize(other, side) => {
                let reason = format!("{side} does not report at which size it was measured");
                refused.push(pairing.refused(member, other, "size", reason));
            }
            Counterpart::Differs(other, (factor, reason)) => {
                refused.push(pairing.refused(member, other, factor, reason));
            }
            Counterpart::Same(other, note) => match pairing.matched(member, other, note) {
                Ok(pair) => matches.push(pair),
                Err((factor, reason)) => refused.push(pairing.refused(member, other, factor, reason)),
            },
        }
    }
    add_counterparts(a, b, &mut matches, refused);
    matches
}

/// Figures of different tools that are of the same thing.
fn add_counterparts<'a>(
    a: &'a ComparisonSide,
    b: &'a ComparisonSide,
    matches: &mut Vec<Match<'a>>,
    refused: &mut Vec<Refused>,
) {
    let told = refused.iter().filter(|one| one.factor != "placement").map(|one| one.key.clone());
    let taken: BTreeSet<String> = matches.iter().map(|pair| pair.a.key.clone()).chain(told).collect();
    for pair in counterparts::pairs(a, b, &taken) {
        match pair {
            Ok(pair) => match forbidden(pair.a, pair.b, [None, None]) {
                None => {
                    // Where they ran is said beside it.
                    refused.retain(|one| one.factor != "placement" || one.key != pair.a.key);
                    matches.push(pair);
                }
                Some((factor, reason)) => refused.push(pair.refused(factor, reason)),
            },
            Err((pair, reason)) => refused.push(pair.refused("size", reason)),
        }
    }
}

/// What B has for a series of A.
enum Counterpart<'a> {
    None,
    /// One of the two does not say at which size it was measured: A or B.
    WithoutSize(&'a Member, char),
    Differs(&'a Member, (&'static str, String)),
    /// The same, with a note on what is forgiven.
    Same(&'a Member, Option<String>),
}

/// Two results, with what finds B's counterpart of a series of A.
struct Pairing<'a> {
    a: &'a ComparisonSide,
    b: &'a ComparisonSide,
    subjects: BTreeMap<String, Vec<&'a Member>>,
    curves: BTreeMap<String, &'a Member>,
    /// Curves of B without a size.
    untold: BTreeMap<String, &'a Member>,
    occupancies: [BTreeMap<String, Occupancy>; 2],
    pinned: BTreeMap<String, Vec<&'a str>>,
}

impl<'a> Pairing<'a> {
    fn of(a: &'a ComparisonSide, b: &'a ComparisonSide) -> Pairing<'a> {
        let mut subjects: BTreeMap<String, Vec<&Member>> = BTreeMap::new();
        let mut curves = BTreeMap::new();
        for member in b.valued() {
            subjects.entry(subject(member)).or_default().push(member);
            curves.entry(curve(member)).or_insert(member);
        }
        let untold = b.valued().filter(|member| has_no_size(member));
        let untold = untold.map(|member| (curve(member), member)).collect();
        let occupancies = [occupancies(a), occupancies(b)];
        Pairing { a, b, subjects, curves, untold, occupancies, pinned: pinned(a, b) }
    }

    fn counterpart(&self, member: &Member) -> Counterpart<'a> {
        let candidates = self.subjects.get(&subject(member)).map(Vec::as_slice).unwrap_or_default();
        if candidates.is_empty() || has_no_size(member) {
            let (curves, side) = if has_no_size(member) { (&self.curves, 'A') } else { (&self.untold, 'B') };
            let other = curves.get(&curve(member));
            return other.map_or(Counterpart::None, |other| Counterpart::WithoutSize(other, side));
        }
        let imported = self.a.imported || self.b.imported;
        for other in candidates {
            if let Some(note) = forgiven(member, other, imported) {
                return Counterpart::Same(other, note);
            }
        }
        let mut differing = candidates.iter().filter_map(|other| Some((*other, difference(member, other)?)));
        differing.next().map_or(Counterpart::None, |(other, why)| Counterpart::Differs(other, why))
    }

    /// Where neither result knows its headlines, whatever has a better side is one.
    fn headline(&self, one: &Member, other: &Member) -> bool {
        let knows = self.a.knows_headlines || self.b.knows_headlines;
        let by_side = !knows && one.metric.better != Better::Neither;
        one.metric.headline || other.metric.headline || by_side
    }

    fn refused(&self, member: &Member, other: &Member, factor: &str, reason: String) -> Refused {
        refusal([member, other], self.headline(member, other), factor, reason)
    }

    /// The pair, or the factor that forbids to compare it.
    fn matched(
        &self,
        member: &'a Member,
        other: &'a Member,
        note: Option<String>,
    ) -> Result<Match<'a>, (&'a str, String)> {
        if self.a.pretended != self.b.pretended {
            let side = if self.a.pretended { "A" } else { "B" };
            return Err(("samples", format!("the samples of {side} were invented (--pretend)")));
        }
        let clocks = [self.a, self.b].map(|arm| arm.clock_source.as_deref());
        let forbidden = forbidden(member, other, clocks).or_else(|| self.moved(member, other));
        if let Some(why) = forbidden {
            return Err(why);
        }
        let units = [&member.metric.unit, &other.metric.unit];
        let scale = unit_scale(units[0], units[1])
            .ok_or_else(|| ("unit", format!("{:?} in A, {:?} in B", units[0], units[1])))?;
        let headline = self.headline(member, other);
        Ok(Match { a: member, b: other, scale, note, headline, across: false })
    }

    /// The scheduler put the tasks of a free figure elsewhere in B.
    fn moved(&self, member: &Member, other: &Member) -> Option<(&'static str, String)> {
        let (in_a, in_b) = (placed(&member.case).key(), placed(&other.case).key());
        let [of_a, of_b] = &self.occupancies;
        if member.case.placement.name != "free" {
            return None;
        }
        let words = moved(of_a.get(&in_a)?, of_b.get(&in_b)?)?;
        let whose = if in_a == member.case.key() { "" } else { " (context switching, which is in it)" };
        Some(("placement", format!("{words}{whose}{}", instead(member, &self.pinned))))
    }
}

/// What the two of one case forbid: a number that is not to be believed, or one that another clock
/// timed.
fn forbidden<'a>(a: &'a Member, b: &'a Member, clocks: [Option<&str>; 2]) -> Option<(&'a str, String)> {
    let rejected: Vec<(&str, &Member)> = [("A", a), ("B", b)]
        .into_iter()
        .filter(|(_, one)| one.verdict.kind == VerdictKind::Rejected)
        .collect();
    if let Some((_, first)) = rejected.first() {
        let factor = first.rejected_by.as_deref().unwrap_or("verdict");
        let reason = |(side, one): &(&str, &Member)| format!("rejected in {side}: {}", one.verdict.reason);
        return Some((factor, rejected.iter().map(reason).collect::<Vec<_>>().join("; ")));
    }
    // Single events are as short as a reading of the clock is long; windows are not.
    let events = [a, b].iter().any(|one| matches!(one.metric.form, Form::Quantile { .. }));
    match clocks {
        [Some(of_a), Some(of_b)] if of_a != of_b && events => {
            Some(("clock-source", format!("{of_a} timed single events in A, {of_b} in B")))
        }
        _ => None,
    }
}

/// A series but for where its tasks were.
fn unplaced(member: &Member) -> String {
    let mut case: Case = member.case.clone();
    case.placement.name = "".into();
    case.series_key(&member.point, &member.metric.name)
}

/// The pinned figures that both have and that may be used, by what they are of.
fn pinned<'a>(a: &'a ComparisonSide, b: &'a ComparisonSide) -> BTreeMap<String, Vec<&'a str>> {
    fn of(arm: &ComparisonSide) -> impl Iterator<Item = &Member> {
        arm.valued().filter(|one| one.case.placement.name != "free" && one.verdict.usable())
    }
    let known: BTreeSet<&str> = of(b).map(|one| one.key.as_str()).collect();
    let mut pinned: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for one in of(a).filter(|one| known.contains(one.key.as_str())) {
        pinned.entry(unplaced(one)).or_default().push(&one.key);
    }
    pinned
}

/// What to compare instead of a free figure, as advice.
fn instead(free: &Member, pinned: &BTreeMap<String, Vec<&str>>) -> String {
    match pinned.get(&unplaced(free)) {
        None => "; pin the tasks to compare it".to_string(),
        Some(keys) => format!("; compare {} instead", keys[..keys.len().min(3)].join(" and ")),
    }
}

fn has_no_size(member: &Member) -> bool {
    member.point.values().any(has_unknown_size)
}

/// Whether two series of one subject may be compared, and what is to be said then.
fn forgiven(a: &Member, b: &Member, imported: bool) -> Option<Option<String>> {
    let (of_a, of_b) = (&a.case.placement, &b.case.placement);
    if of_a.name != of_b.name || of_a.beside != of_b.beside || a.case.knobs != b.case.knobs {
        return None;
    }
    match (of_a.pages, of_b.pages) {
        (one, other) if one == other => Some(None),
        (Pages::AsGiven, Pages::Base) | (Pages::Base, Pages::AsGiven) if imported => {
            Some(Some("base pages on one side, pages as the system gave them on the other".to_string()))
        }
        _ => None,
    }
}

/// The factor that makes them incomparable.
fn difference(a: &Member, b: &Member) -> Option<(&'static str, String)> {
    let (of_a, of_b) = (&a.case.placement, &b.case.placement);
    let words = |pages: Pages| match pages {
        Pages::AsGiven => "as given",
        Pages::Huge => "huge",
        Pages::Base => "base",
    };
    if of_a.name != of_b.name {
        return Some(("placement", format!("{} in A, {} in B", of_a.name, of_b.name)));
    }
    if of_a.pages != of_b.pages {
        return Some(("pages", format!("{} in A, {} in B", words(of_a.pages), words(of_b.pages))));
    }
    if of_a.beside != of_b.beside {
        return Some(("beside", format!("{:?} in A, {:?} in B", of_a.beside, of_b.beside)));
    }
    (a.case.knobs != b.case.knobs)
        .then(|| ("knobs", format!("{:?} in A, {:?} in B", a.case.knobs, b.case.knobs)))
}

/// How many of unit `to` one of unit `from` is.
pub fn unit_scale(from: &str, to: &str) -> Option<f64> {
    const UNITS: [&[(&str, f64)]; 3] = [
        &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)],
        &[("B/s", 1e-9), ("kB/s", 1e-6), ("MB/s", 1e-3), ("GB/s", 1.0)],
        &[("Hz", 1e-9), ("MHz", 1e-3), ("GHz", 1.0)],
    ];
    if from == to {
        return Some(1.0);
    }
    let size =
        |kind: &[(&str, f64)], unit: &str| kind.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size);
    UNITS.iter().find_map(|kind| Some(size(kind, from)? / size(kind, to)?))
}

#[cfg(test)]
mod tests {
    use super::unit_scale as scale;

    #[test]
    fn units_of_one_kind_are_converted() {
        assert_eq!(
            (scale("us", "ns"), scale("MB/s", "GB/s"), scale("", "")),
            (Some(1e3), Some(1e-3), Some(1.0))
        );
        assert_eq!((scale("us", "GB/s"), scale("1/s", "ns")), (None, None));
    }
}
