//! What a verdict looks like: a mark and a word first, a colour only beside them.

use crate::block::Mark;
use crate::screen::Tone;
use model::{Severity, VerdictKind};

/// How a verdict is drawn.
pub struct Worth {
    pub mark: &'static str,
    /// Class of the style sheet.
    pub class: &'static str,
    /// The same in charts.
    pub ink: &'static str,
}

pub fn worth(kind: VerdictKind) -> Worth {
    let (mark, class, ink) = match kind {
        VerdictKind::Trusted | VerdictKind::TrustedWithCause => ("✓", "good", "blue"),
        // How well a figure is known says nothing about what it is worth.
        VerdictKind::Imprecise => ("!", "unsure", "blue"),
        VerdictKind::Multimodal | VerdictKind::Drifting => ("!", "care", "amber"),
        VerdictKind::Rejected => ("✗", "bad", "grey"),
        VerdictKind::Skipped => ("–", "none", "grey"),
        VerdictKind::Unverified => ("?", "unknown", "grey"),
    };
    Worth { mark, class, ink }
}

/// The class of a tone.
pub fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Care => "care",
        Tone::Bad => "bad",
        Tone::Dim => "none",
        Tone::Plain | Tone::Strong | Tone::Picture => "normal",
    }
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

/// Mark and word of a finding's severity; the word is its class, too.
pub fn severity(severity: Severity) -> (&'static str, &'static str) {
    match severity {
        Severity::Problem => ("✗", "problem"),
        Severity::Warning => ("!", "warning"),
        Severity::Note => ("·", "note"),
    }
}
