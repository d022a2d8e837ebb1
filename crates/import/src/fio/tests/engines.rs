//! Jobs by io_uring and by libaio, which have one key where a file has only one of them.

use super::values;
use crate::read;
use crate::tests::recorded;

/// The keys and values of `iops` in each result of a text.
fn iops(text: &str) -> Vec<Vec<(String, f64)>> {
    let all = read(text.as_bytes()).expect("a result");
    let of = |one: &crate::Imported| {
        let keys = one.figures.iter().map(|figure| figure.judged.series.key.clone());
        let own = keys.filter(|key| key.ends_with("#iops"));
        own.flat_map(|key| values(one, &key).into_iter().map(move |value| (key.clone(), value))).collect()
    };
    all.iter().map(of).collect()
}

#[test]
fn two_engines_are_two_series() {
    let text = recorded("fio-debian-libaio-io-uring.txt");
    let without = |text: &str| -> String {
        text.lines().filter(|line| !line.starts_with('$')).map(|line| format!("{line}\n")).collect()
    };
    let (libaio, uring) = text.split_at(text.rfind("$ fio").expect("two"));
    for both in
        [text.clone(), without(&text), format!("{uring}{libaio}"), without(&format!("{uring}{libaio}"))]
    {
        let found: Vec<(String, f64)> = iops(&both).concat();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].0 != found[1].0 && found.iter().any(|(key, _)| key.contains("engine=libaio")),
            "{found:?}"
        );
    }
    // What has no other beside it is compared with ours.
    for alone in [libaio, uring] {
        let found = iops(alone).concat();
        assert!(found.len() == 1 && !found[0].0.contains("engine="), "{found:?}");
    }
    // Other work is told apart by that.
    let other = text.replacen("iodepth=4", "iodepth=8", 1).replacen("iodepth=4", "iodepth=8", 1);
    let other = other.replacen("ioengine=libaio, iodepth=4", "ioengine=libaio, iodepth=8", 1);
    assert!(iops(&other).concat().iter().all(|(key, _)| !key.contains("engine=")), "{other}");
}
