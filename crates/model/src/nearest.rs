//! The name that someone meant who mistyped it.

/// Names less alike than this are other names.
const ALIKE: f64 = 0.6;

/// What is longer is no name that someone mistyped, bytes.
const MAX_NAME_BYTES: usize = 100;

/// The known name that is most like a word; `None` where none is.
pub fn nearest<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if word.len() > MAX_NAME_BYTES {
        return None;
    }
    let word = word.to_lowercase();
    let alike = |name: &'n str| {
        let lower = name.to_lowercase();
        // People leave the group away: `latency` for `memory.latency`.
        let last = lower.rsplit('.').next().unwrap_or_default();
        let last = strsim::normalized_damerau_levenshtein(&word, last) * 0.95;
        (strsim::normalized_damerau_levenshtein(&word, &lower).max(last), name)
    };
    let names = names.into_iter().map(alike).filter(|(alike, _)| *alike >= ALIKE);
    // Of equals the first.
    names.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, name)| name)
}

/// ` (did you mean memory.latency?)`, or nothing: what stands behind an unknown name.
pub fn did_you_mean<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    nearest(word, names).map(|name| format!(" (did you mean {name}?)")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        let names = ["memory", "memory.latency", "memory.bandwidth", "ipc.pipe-pingpong", "background-load"];
        for (word, meant) in [
            ("memory.latancy", Some("memory.latency")),
            ("memroy", Some("memory")),
            ("latency", Some("memory.latency")),
            ("pipe-pingpong", Some("ipc.pipe-pingpong")),
            ("Backgroundload", Some("background-load")),
            ("nonsense", None),
            (&format!("memory{}", "y".repeat(100)), None),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), meant, "{word}");
        }
        assert_eq!(did_you_mean("memroy", names), " (did you mean memory?)");
        assert_eq!(did_you_mean("nonsense", names), "");
    }
}
