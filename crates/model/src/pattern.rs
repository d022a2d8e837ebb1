//! Keys of series in their parts, and patterns that keys match:
//! `bench[@placement][?name=value/name=value][#metric]`.

/// A series key in its parts: `BENCH@PLACEMENT+PAGES?param=value!knob=value/point=value#metric`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyParts<'a> {
    pub bench: &'a str,
    pub placement: &'a str,
    /// What stands behind the placement's name: `huge-pages`, `beside-spinner`, `awake`.
    pub with: Vec<&'a str>,
    /// Parameters of the case, then of the point, as name and value.
    pub params: Vec<(&'a str, &'a str)>,
    /// Whether kernel settings were changed for it.
    pub has_knobs: bool,
    pub metric: &'a str,
}

impl<'a> KeyParts<'a> {
    /// The parts of any text; what a text does not have is empty.
    pub fn of(key: &'a str) -> KeyParts<'a> {
        let (rest, metric) = key.split_once('#').unwrap_or((key, ""));
        let end = rest.find(['?', '!', '/']).unwrap_or(rest.len());
        let (head, tail) = rest.split_at(end);
        let (bench, place) = head.split_once('@').unwrap_or((head, ""));
        let mut words = place.split('+');
        let placement = words.next().unwrap_or_default();
        // Knobs stand between the parameters of the case and those of the point.
        let mut params = Vec::new();
        for part in split_keeping(tail, ['?', '!', '/']) {
            let (lead, pairs) = part.split_at(1);
            if lead != "!" {
                params.extend(pairs.split('&').filter_map(|pair| pair.split_once('=')));
            }
        }
        KeyParts { bench, placement, with: words.collect(), params, has_knobs: tail.contains('!'), metric }
    }

    pub fn param(&self, name: &str) -> Option<&'a str> {
        self.params.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }
}

/// The pieces of a text that begin with one of these marks, each with its mark.
fn split_keeping(text: &str, marks: [char; 3]) -> Vec<&str> {
    let starts: Vec<usize> = text.match_indices(marks).map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| &text[*start..end]).collect()
}

/// What keys of series may have in common. A placement or parameter that it leaves out may be any;
/// a parameter without a value (`within=`) must be absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern<'a> {
    bench: &'a str,
    placement: &'a str,
    params: Vec<(&'a str, &'a str)>,
    metric: &'a str,
}

impl<'a> Pattern<'a> {
    /// Parameters may be separated by `&` or `/`, whichever side of a key they stand on.
    pub fn of(text: &'a str) -> Pattern<'a> {
        let (rest, metric) = text.split_once('#').unwrap_or((text, ""));
        let (head, params) = rest.split_once('?').unwrap_or((rest, ""));
        let (bench, placement) = head.split_once('@').unwrap_or((head, ""));
        let params = params.split(['&', '/']).filter_map(|pair| pair.split_once('=')).collect();
        Pattern { bench, placement, params, metric }
    }

    /// Whether a series with this key is one of them. One that was measured beside other work or
    /// under changed kernel settings is not.
    pub fn matches(&self, key: &str) -> bool {
        // A key begins with its benchmark, which decides most without a look at its other parts.
        if !key.starts_with(self.bench) {
            return false;
        }
        let key = KeyParts::of(key);
        let as_is = !key.has_knobs && key.with.iter().all(|word| word.ends_with("-pages"));
        let param = |(name, value): &(&str, &str)| key.param(name).unwrap_or_default() == *value;
        as_is
            && key.bench == self.bench
            && (self.placement.is_empty() || key.placement == self.placement)
            && (self.metric.is_empty() || key.metric == self.metric)
            && self.params.iter().all(param)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_split_into_their_parts() {
        let parts =
            KeyParts::of("memory.latency@one-cpu+huge-pages?k=4&order=a%2fb!slice_ns=3/bytes=65536#latency");
        assert_eq!((parts.bench, parts.placement, parts.metric), ("memory.latency", "one-cpu", "latency"));
        assert_eq!(parts.with, ["huge-pages"]);
        assert_eq!(parts.params, [("k", "4"), ("order", "a%2fb"), ("bytes", "65536")]);
        assert!(parts.has_knobs);
        for odd in ["", "#", "@", "?", "!", "/", "é?é=", "a@b/c?d!e#f#g"] {
            KeyParts::of(odd);
        }
    }

    #[test]
    fn patterns_match_what_they_name_and_nothing_disturbed() {
        let dram = Pattern::of("memory.data-source?source=dram/within=#latency");
        let matches = |key: &str| dram.matches(key);
        assert!(matches("memory.data-source@one-cpu+huge-pages?source=dram#latency"));
        assert!(!matches("memory.data-source@one-cpu+huge-pages?source=dram/within=4096#latency"));
        assert!(!matches("memory.data-source@one-cpu+huge-pages?source=dram#cycles"));
        assert!(!matches("memory.data-source@one-cpu+beside-spinner?source=dram#latency"));
        assert!(!matches("memory.data-source@one-cpu?source=dram!slice_ns=3#latency"));
        let read = Pattern::of("disk.random@one-cpu?op=read/block=4096/depth=1#iops");
        assert!(read.matches("disk.random@one-cpu?cache=direct&op=read/block=4096&depth=1#iops"));
        assert!(!read.matches("disk.random@all?cache=direct&op=read/block=4096&depth=1#iops"));
    }
}
