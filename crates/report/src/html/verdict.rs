//! What a verdict looks like: a mark and a word first, a colour only beside them.

use crate::block::CheckMark;
use crate::screen::Tone;
use model::{Severity, VerdictKind};

/// How a verdict is drawn.
pub struct VerdictStyle {
    pub mark: &'static str,
    /// Class of the style sheet.
    pub class: &'static str,
    /// The same in charts.
    pub ink: &'static str,
}

pub fn worth(kind: VerdictKind) -> VerdictStyle {
    let (mark, class, ink) = match kind {
        VerdictKind::Trusted | VerdictKind::TrustedWithCause => ("✓", "good", "blue"),
        // How precisely a figure is known is independent of how good it is.
        VerdictKind::Imprecise => ("!", "unsure", "blue"),
        VerdictKind::Multimodal | VerdictKind::Drifting => ("!", "care", "amber"),
        VerdictKind::Rejected => ("✗", "bad", "grey"),
        VerdictKind::Skipped => ("–", "none", "grey"),
        VerdictKind::Unverified => ("?", "unknown", "grey"),
    };
    VerdictStyle { mark, class, ink }
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
pub fn check(mark: CheckMark) -> (&'static str, &'static str, &'static str) {
    match mark {
        CheckMark::Good => ("✓", "good", "good"),
        CheckMark::Care => ("!", "care", "with care"),
        CheckMark::Bad => ("✗", "bad", "bad"),
        CheckMark::Note => ("·", "unknown", "noted"),
    }
}

/// CheckMark and word of a finding's severity; the word is its class, too.
pub fn severity(severity: Severity) -> (&'static str, &'static str) {
    match severity {
        Severity::Problem => ("✗", "problem"),
        Severity::Warning => ("!", "warning"),
        Severity::Note => ("·", "note"),
    }
}
