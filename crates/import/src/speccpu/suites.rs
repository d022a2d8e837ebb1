//! What the two generations of SPEC CPU call their suites, components and headlines.

use super::{Printed, Sheet, Tune, number};

/// CPU2006 has the same components in its suites for speed and for throughput, CPU2017 has a name
/// of its own for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Year {
    Cpu2006,
    #[default]
    Cpu2017,
}

/// Components of the suites of CPU2006.
const INTEGER_2006: [&str; 12] =
    ["400", "401", "403", "429", "445", "456", "458", "462", "464", "471", "473", "483"];
const FLOATING_2006: usize = 17;

/// How CPU2017 calls its suites in raw files and on pages.
const SUITES_2017: [(&str, &str); 4] = [
    ("intrate", "Integer Rate"),
    ("intspeed", "Integer Speed"),
    ("fprate", "Floating Point Rate"),
    ("fpspeed", "Floating Point Speed"),
];

impl Year {
    /// As the tool calls itself.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Year::Cpu2006 => "SPEC CPU2006",
            Year::Cpu2017 => "SPEC CPU2017",
        }
    }

    /// The generation that a component is of: each has numbers of its own.
    pub(super) fn of_component(name: &str) -> Year {
        if name.starts_with('4') { Year::Cpu2006 } else { Year::Cpu2017 }
    }
}

/// The suite that a raw file names.
pub(super) fn suite_2017(name: &str) -> Option<&'static str> {
    SUITES_2017.iter().find(|(known, _)| *known == name).map(|(_, suite)| *suite)
}

/// The generation and the suite that a title names: `SPEC CPU2017 Integer Rate Result`, `SPEC(R)
/// CINT2006 Summary`, which does not say whether it is for speed or for throughput.
pub(super) fn title(line: &str) -> Option<(Year, &str)> {
    let line = line.trim_matches(|c: char| c.is_whitespace() || c == '"' || c == ';' || c == ',');
    let rest = line.strip_prefix("SPEC")?;
    let rest = rest.strip_prefix("(R)").or_else(|| rest.strip_prefix('®')).unwrap_or(rest);
    let rest = rest.strip_prefix(' ')?;
    for (suite, words) in [("CINT2006", "Integer"), ("CFP2006", "Floating Point")] {
        if let Some(rest) = rest.strip_prefix(suite) {
            return ["", " Summary", " Result"].contains(&rest).then_some((Year::Cpu2006, words));
        }
    }
    let rest = rest.strip_prefix("CPU")?;
    let rest = rest.strip_prefix("(R)").or_else(|| rest.strip_prefix('®')).unwrap_or(rest);
    let suite = rest.strip_prefix("2017 ")?.strip_suffix(" Result")?;
    (suite.len() < 40).then_some((Year::Cpu2017, suite))
}

/// Whether a text is a headline's name: `SPECrate2017_int_base`, `SPECint_rate_base2006`,
/// `SPECfp2006`.
fn headline(title: &str) -> Option<(Year, Tune)> {
    if let Some(rest) = title.strip_prefix("SPECrate2017_").or_else(|| title.strip_prefix("SPECspeed2017_")) {
        let (kind, tune) = rest.rsplit_once('_')?;
        let tune = Tune::BOTH.into_iter().find(|known| known.word() == tune)?;
        return ["int", "fp"].contains(&kind).then_some((Year::Cpu2017, tune));
    }
    let rest = title.strip_prefix("SPECint").or_else(|| title.strip_prefix("SPECfp"))?;
    let rest = rest.strip_prefix("_rate").unwrap_or(rest);
    match rest {
        "_base2006" => Some((Year::Cpu2006, Tune::Base)),
        "2006" => Some((Year::Cpu2006, Tune::Peak)),
        _ => None,
    }
}

/// A headline's name as it stands in a text or a table, and what stands behind it.
pub(super) fn printed(title: &str, value: &str) -> Option<(Year, Printed)> {
    let title = title.trim().trim_start_matches("Est. ").replace("(R)", "").replace('®', "");
    let (year, tune) = headline(&title)?;
    let text: String = value.trim().chars().take(40).collect();
    Some((year, Printed { title, tune, value: number(&text).ok().flatten(), text }))
}

/// Whether a line of a text is a headline of CPU2006, whose tables stand in logs without a title.
pub(super) fn is_headline_2006(line: &str) -> bool {
    let line = line.trim().trim_start_matches("Est. ");
    if !line.starts_with("SPEC") {
        return false;
    }
    let name = line.split([' ', ',']).next().unwrap_or_default().replace("(R)", "");
    headline(&name).is_some_and(|(year, _)| year == Year::Cpu2006)
}

/// The name that both tunings of a headline share.
pub(super) fn shared(title: &str) -> String {
    title.trim_end_matches("_base").trim_end_matches("_peak").replace("_base2006", "2006")
}

impl Sheet {
    /// How many components the suite has.
    pub(super) fn components(&self) -> usize {
        match (self.year, self.is_floating()) {
            (Year::Cpu2006, true) => FLOATING_2006,
            (Year::Cpu2006, false) => INTEGER_2006.len(),
            (Year::Cpu2017, true) if !self.speed => 13,
            (Year::Cpu2017, _) => 10,
        }
    }

    pub(super) fn is_floating(&self) -> bool {
        self.suite.starts_with("Floating")
    }

    /// What the headline of a tuning is called.
    pub(super) fn headline(&self, tune: Tune) -> String {
        let kind = if self.is_floating() { "fp" } else { "int" };
        match (self.year, tune) {
            (Year::Cpu2017, _) => {
                format!("SPEC{}2017_{kind}_{}", if self.speed { "speed" } else { "rate" }, tune.word())
            }
            (Year::Cpu2006, _) => {
                let rate = if self.speed { "" } else { "_rate" };
                let base = if tune == Tune::Base { "_base" } else { "" };
                format!("SPEC{kind}{rate}{base}2006")
            }
        }
    }

    /// Notes what a title says.
    pub(super) fn titled(&mut self, (year, suite): (Year, &str)) {
        (self.year, self.suite) = (year, suite.to_string());
        self.speed = suite.ends_with("Speed");
    }

    /// Notes where a line says that SPEC took a result back.
    pub(super) fn judged(&mut self, line: &str) {
        let is_said = line.contains("not in compliance") || line.contains("not compliant with");
        if is_said && !self.non_compliant {
            self.non_compliant = true;
            self.banner.push(line.trim_matches(|c: char| "#\", ".contains(c)).chars().take(160).collect());
        }
    }

    /// Settles what only the table of a result of CPU2006 gives.
    pub(super) fn settle(&mut self) {
        let Some(first) = self.rows.first() else { return };
        if self.suite.is_empty() {
            self.year = Year::of_component(&first.name);
        }
        if self.year != Year::Cpu2006 {
            return;
        }
        if self.suite.is_empty() {
            let is_integer = INTEGER_2006.iter().any(|number| first.name.starts_with(number));
            self.suite = if is_integer { "Integer" } else { "Floating Point" }.to_string();
        }
        self.suite += if self.speed { " Speed" } else { " Rate" };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_headlines_name_their_generation() {
        let of = |line| title(line).map(|(year, suite)| (year.word(), suite));
        assert_eq!(of("\"SPEC CPU2017 Integer Rate Result\""), Some(("SPEC CPU2017", "Integer Rate")));
        assert_eq!(of("SPEC CPU®2017 Integer Speed Result"), Some(("SPEC CPU2017", "Integer Speed")));
        assert_eq!(of("    SPEC(R) CINT2006 Summary"), Some(("SPEC CPU2006", "Integer")));
        assert_eq!(of("SPEC® CFP2006 Result"), Some(("SPEC CPU2006", "Floating Point")));
        for other in ["SPEC CINT2000 Summary", "SPEC CINT2006 results are here", "SPECint2006"] {
            assert_eq!(of(other), None, "{other}");
        }
        let of = |title| printed(title, " 19.5").map(|(_, one)| (one.title, one.tune.word(), one.value));
        for (text, title, tune) in [
            ("Est. SPECint(R)_base2006", "SPECint_base2006", "base"),
            ("SPECfp_rate2006", "SPECfp_rate2006", "peak"),
            ("SPECint(R)_rate_base2006", "SPECint_rate_base2006", "base"),
            ("SPECspeed(R)2017_fp_peak", "SPECspeed2017_fp_peak", "peak"),
        ] {
            assert_eq!(of(text), Some((title.to_string(), tune, Some(19.5))), "{text}");
            assert_eq!(shared(title), shared(&title.replace("_base", "").replace("_peak", "")));
        }
        assert_eq!(of("SPECint_rate2000"), None);
    }
}
