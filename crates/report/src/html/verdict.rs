//! What a verdict looks like: a mark and a word first, a colour only beside them.

use crate::block::Mark;
use model::{Severity, VerdictKind};

/// How a verdict is drawn.
pub struct Worth {
    pub mark: &'static str,
    /// Class of the style sheet.
    pub class: &'static str,
    /// Colour of the charts, by its name in the style sheet.
    pub colour: &'static str,
}

pub fn worth(kind: VerdictKind) -> Worth {
    let (mark, class, colour) = match kind {
        VerdictKind::Trusted | VerdictKind::TrustedWithCause => ("✓", "good", "$c0"),
        VerdictKind::Imprecise | VerdictKind::Multimodal | VerdictKind::Drifting => ("!", "care", "$c1"),
        VerdictKind::Rejected => ("✗", "bad", "$off"),
        VerdictKind::Skipped => ("–", "none", "$off"),
        VerdictKind::Unverified => ("?", "unknown", "$off"),
    };
    Worth { mark, class, colour }
}

/// The mark of a condition, its class, and its word for readers who see neither.
pub fn check(mark: Mark) -> (&'static str, &'static str, &'static str) {
    match mark {
        Mark::Good => ("✓", "good", "good"),
        Mark::Care => ("!", "care", "with care"),
        Mark::Bad => ("✗", "bad", "bad"),
        Mark::Note => ("·", "unknown", "noted"),
    }
}

/// Class and word of a finding's severity.
pub fn severity(severity: Severity) -> (&'static str, &'static str) {
    match severity {
        Severity::Problem => ("problem", "problem"),
        Severity::Warning => ("warning", "warning"),
        Severity::Note => ("note", "note"),
    }
}
