//! What the figures of a comparison are called: benchmark, parameters, point and placement in
//! words, from the key alone, so that a saved report says them as a run does.

use crate::sections::names::{placement_words, point_words, traits};
use import::keyed;
use model::Case;

/// A figure's whole name: `Memory bandwidth, read, all CPUs, 64 KiB`.
pub fn whole(title: &str, key: &str) -> String {
    let Some(keyed) = keyed(key) else { return title.to_string() };
    let traits = traits(&keyed.case).into_iter().map(|one| one.words);
    let words = std::iter::once(title.to_string())
        .chain(traits)
        .chain([placement(&keyed.case), point_words(&keyed.point)]);
    words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The same without what is usual, for a screen's narrow column.
pub fn short(title: &str, key: &str) -> String {
    whole(title, key).replace(", huge pages", "")
}

/// Where it ran, in the short form of screens; what runs on one CPU does so by its nature.
fn placement(case: &Case) -> String {
    match case.placement.name.as_ref() {
        "one-cpu" => String::new(),
        name => placement_words(name).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_alone_names_the_point() {
        let name = |key: &str| whole("Memory bandwidth", key);
        assert_eq!(
            name("memory.bandwidth@all+huge-pages?op=read/bytes=65536#bandwidth"),
            "Memory bandwidth, read, huge pages, all CPUs, 64 KiB"
        );
        assert_eq!(name("memory.bandwidth@one-cpu?op=copy#bandwidth"), "Memory bandwidth, copy");
        assert_eq!(name("no key"), "Memory bandwidth");
        let key = "memory.latency@one-cpu+huge-pages?order=random/bytes=4096#latency";
        assert_eq!(short("Memory latency", key), "Memory latency, random, 4 KiB");
        assert_eq!(short("Memory latency: settling", key), "Memory latency: settling, random, 4 KiB");
    }
}
