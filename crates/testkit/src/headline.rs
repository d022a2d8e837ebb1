//! Checks of the form of findings' headlines.

/// A longer headline does not fit into a line with its topic.
const MAX_CHARACTERS: usize = 100;

/// Banned words and phrases of printed texts.
pub const NOT_SAID: [&str; 11] = [
    "told",
    "tells",
    "by the kernel",
    "nobody",
    "somebody",
    "Nobody",
    "Somebody",
    "whom",
    "may have moved",
    "that which",
    "series",
];

/// The faults in the form of a headline; empty if there are none.
pub fn headline_faults(headline: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut fault = |is: bool, what: &str| {
        if is {
            faults.push(format!("{what}: {headline}"));
        }
    };
    let length = headline.chars().count();
    fault(length > MAX_CHARACTERS, &format!("{length} characters"));
    let first = headline.chars().next();
    fault(!first.is_some_and(|c| c.is_uppercase() || c.is_ascii_digit()), "no capital");
    let named = headline.contains('`') || headline.chars().any(|c| c.is_ascii_digit());
    fault(!named, "neither a number nor a name");
    fault(headline.contains(['@', '?', '#']), "a sign of a key");
    // A path begins with a slash; a rate ends in a unit of time.
    let key = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/');
        let rate = ["/s", "/ns", "/us"].iter().any(|end| word.ends_with(end));
        word.contains('/') && !word.starts_with('/') && !rate && word != "I/O"
    };
    fault(headline.split_whitespace().any(key), "a part of a key");
    fault(
        headline.contains(". ") != headline.ends_with('.'),
        "two sentences end with a full stop, one does not",
    );
    for words in NOT_SAID {
        let whole = headline.split(|c: char| !c.is_alphanumeric()).any(|word| word == words);
        fault(whole || (words.contains(' ') && headline.contains(words)), words);
    }
    fault(headline.split(|c: char| !c.is_alphanumeric()).any(|word| word == "us"), "us for µs");
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mock_ups_pass_and_old_headlines_do_not() {
        for good in [
            "One task gets 13.5 MiB of the 480 MiB that the kernel reports. Plan for 13.5.",
            "Pipe ping-pong runs at 490k/s on one CPU, 15.9k/s on two. Never quote one alone.",
            "3 of 164 figures changed while measured",
            "The filesystem at /var/lib is 95 % full. Writes are slower than with room.",
            "Governor `powersave` sets the clock",
        ] {
            assert_eq!(headline_faults(good), [""; 0]);
        }
        for bad in [
            "the core clock moved by 14 %",
            "Turbo is switched off",
            "Other processes used 18 % of disk.sync@one-cpu",
            "3 of 164 headline series moved",
            "Read 3 of op=read/block=4096",
            "12 figures are slow. Measure again",
            "It takes 12 us",
            "Nobody measured 12 of them",
        ] {
            assert!(!headline_faults(bad).is_empty(), "{bad}");
        }
    }
}
