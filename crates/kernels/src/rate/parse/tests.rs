//! Expressions against a naive matcher, texts, and faults.

use super::*;

/// Matches what is repeated and calls what comes after.
type Single<'a> = dyn Fn(&[u8], &dyn Fn(&[u8]) -> bool) -> bool + 'a;

/// Whether `pattern` matches at the beginning of `text`, by backtracking; calls `rest` with what
/// follows.
fn naive(pattern: &[u8], text: &[u8], rest: &dyn Fn(&[u8]) -> bool) -> bool {
    let mut depth = 0;
    for (at, letter) in pattern.iter().enumerate() {
        match letter {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'|' if depth == 0 => {
                return naive(&pattern[..at], text, rest) || naive(&pattern[at + 1..], text, rest);
            }
            _ => {}
        }
    }
    let Some(first) = pattern.first() else { return rest(text) };
    let length = match first {
        b'(' => {
            let mut depth = 0;
            1 + pattern
                .iter()
                .take_while(|letter| {
                    depth += i32::from(**letter == b'(') - i32::from(**letter == b')');
                    depth > 0
                })
                .count()
        }
        b'[' => 1 + pattern.iter().take_while(|letter| **letter != b']').count(),
        b'\\' => 2,
        _ => 1,
    };
    let (one, mut left) = pattern.split_at(length);
    let sign = left.first().copied().filter(|sign| b"*+?".contains(sign)).unwrap_or(0);
    if sign != 0 {
        left = &left[1..];
    }
    let single = |text: &[u8], then: &dyn Fn(&[u8]) -> bool| match one {
        [b'(', inner @ .., b')'] => naive(inner, text, then),
        _ => text.split_first().is_some_and(|(letter, after)| {
            let fits = match one {
                [b'.'] => true,
                [b'[', class @ .., b']'] => {
                    class.windows(3).any(|three| three[1] == b'-' && (three[0]..=three[2]).contains(letter))
                        || class.contains(letter) && *letter != b'-'
                }
                _ => one[one.len() - 1] == *letter,
            };
            fits && then(after)
        }),
    };
    fn more(single: &Single, text: &[u8], then: &dyn Fn(&[u8]) -> bool) -> bool {
        then(text) || single(text, &|after| after.len() < text.len() && more(single, after, then))
    }
    let then = |text: &[u8]| naive(left, text, rest);
    match sign {
        b'?' => then(text) || single(text, &then),
        b'*' => more(&single, text, &then),
        b'+' => single(text, &|after| more(&single, after, &then)),
        _ => single(text, &then),
    }
}

#[test]
fn patterns_are_found_where_backtracking_finds_them() -> anyhow::Result<()> {
    let (text, lines) = log(20_000);
    let mut found = [0; PATTERNS.len()];
    let automaton = Automaton::new(&PATTERNS)?;
    automaton.search(&text, &mut found);
    assert_eq!(found, lines);
    assert!(automaton.states() > 100, "{}", automaton.states());
    for (pattern, count) in PATTERNS.iter().zip(lines) {
        let has = |line: &&[u8]| (0..line.len()).any(|at| naive(pattern.as_bytes(), &line[at..], &|_| true));
        assert_eq!(text.split(|letter| *letter == b'\n').filter(has).count() as u64, count, "{pattern}");
        assert!(count > 5);
    }
    for pattern in ["(a", "a)", "[a", "a\\", "*"] {
        assert!(Automaton::new(&[pattern]).is_err() || pattern == "*");
    }
    Ok(())
}

#[test]
fn trees_are_what_was_written() {
    let mut nodes = [[0; 4]; 50];
    let mut strings = [0; 100];
    let text = br#" { "a" : [ 1 , -20 , "x\ny\"" , [ ] , { } ] , "b" : null , "c" : [ true , false ] } "#;
    let used = parse_it(text, &mut nodes, &mut strings);
    assert_eq!(used, Some((14, 7)));
    let mut back = Vec::new();
    json::write(&nodes, &strings, 0, &mut back);
    assert_eq!(back, br#"{"a":[1,-20,"x\ny\"",[],{}],"b":null,"c":[true,false]}"#);
    for wrong in ["", "[", "[1,", "[1,]", "{\"a\"}", "{1:2}", "\"a", "tru", "1 2", "-", "99999999999", "[1}"]
    {
        assert_eq!(parse_it(wrong.as_bytes(), &mut nodes, &mut strings), None, "{wrong}");
    }
    // Too small a buffer is an error, not a panic.
    assert_eq!(parse_it(b"[1,2,3]", &mut nodes[..3], &mut strings), None);
}

fn parse_it(text: &[u8], nodes: &mut [Node], strings: &mut [u8]) -> Option<(usize, usize)> {
    json::parse(text, nodes, strings)
}

#[test]
fn any_flipped_bit_is_noticed() -> anyhow::Result<()> {
    let mut work = Parse::new(5000, 2)?;
    work.iterate();
    let good = work.verify();
    assert!(good.is_ok(), "{good:?}");
    let (nodes, strings) = work.used.unwrap_or_default();
    assert_eq!(nodes, work.nodes.len());
    let mut rng = Rng(6);
    for _ in 0..300 {
        let (at, field, bit) = (rng.below(nodes as u64) as usize, rng.below(4) as usize, rng.below(32));
        work.nodes[at][field] ^= 1 << bit;
        assert!(work.verify().is_err());
        work.nodes[at][field] ^= 1 << bit;
        let at = rng.below(strings as u64) as usize;
        work.strings[at] ^= 1 << (bit % 8);
        assert!(work.verify().is_err());
        work.strings[at] ^= 1 << (bit % 8);
        work.found[field] ^= 1 << bit;
        assert!(work.verify().is_err());
        work.found[field] ^= 1 << bit;
    }
    assert_eq!(work.verify(), good);
    Ok(())
}

#[test]
fn finds_the_same_without_wide_vectors() -> anyhow::Result<()> {
    let mut work = Parse::new(50_000, 1)?;
    work.iterate();
    let mut found = [0; PATTERNS.len()];
    work.automaton.search(&work.log, &mut found);
    assert_eq!(found, work.found);
    Ok(())
}
