//! Pictures of maps, read back as XML.

use proptest::prelude::*;
use quick_xml::Reader;
use quick_xml::events::Event;

use super::*;
use crate::block::Map;
use crate::map::tests::{hackbench, hostile, region, row, sized};

/// An element with its attributes and its text.
#[derive(Debug, Default)]
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
    /// The classes of what it is in, its own last.
    classes: Vec<String>,
}

impl Element {
    fn get(&self, name: &str) -> &str {
        self.attributes.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }

    fn number(&self, name: &str) -> f64 {
        self.get(name).parse().unwrap_or_else(|_| panic!("{name} of {self:?}"))
    }

    fn is(&self, name: &str, class: &str) -> bool {
        self.name == name && self.classes.last().is_some_and(|own| own.split(' ').any(|one| one == class))
    }

    fn inside(&self, class: &str) -> bool {
        self.classes.iter().any(|own| own == class)
    }
}

/// All elements of a picture that is well-formed.
fn elements(svg: &str) -> Vec<Element> {
    let mut reader = Reader::from_str(svg);
    reader.config_mut().check_end_names = true;
    let (mut done, mut open): (Vec<Element>, Vec<usize>) = (Vec::new(), Vec::new());
    loop {
        let event = reader.read_event().expect("well-formed");
        match event {
            Event::Eof => break,
            Event::Start(ref tag) | Event::Empty(ref tag) => {
                let pair = |pair: quick_xml::events::attributes::Attribute| {
                    (pair.key.as_ref().to_string(), pair.value.to_string())
                };
                let attributes: Vec<(String, String)> =
                    tag.attributes().map(|attribute| pair(attribute.expect("an attribute"))).collect();
                let mut classes = open.last().map_or(Vec::new(), |at: &usize| done[*at].classes.clone());
                let own = attributes.iter().find(|(name, _)| name == "class");
                classes.push(own.map_or(String::new(), |(_, value)| value.clone()));
                let name = tag.name().as_ref().to_string();
                done.push(Element { name, attributes, text: String::new(), classes });
                if matches!(event, Event::Start(_)) {
                    open.push(done.len() - 1);
                }
            }
            Event::End(_) => {
                open.pop().expect("was opened");
            }
            Event::Text(text) => {
                if let Some(at) = open.last() {
                    done[*at].text.push_str(&text);
                }
            }
            Event::GeneralRef(name) => {
                let at = open.last().expect("in an element");
                let name = name.to_string();
                assert!(["amp", "lt", "gt", "quot", "#39"].contains(&name.as_str()), "{name}");
                done[*at].text.push_str(&format!("&{name};"));
            }
            other => panic!("nothing else is in a picture: {other:?}"),
        }
    }
    assert!(open.is_empty());
    done
}

/// The closed lines of a path.
fn polygons(path: &str) -> Vec<Vec<[f64; 2]>> {
    let point = |text: &str| {
        let (x, y) = text.split_once(' ').expect("two numbers");
        [x.parse().expect("x"), y.parse().expect("y")]
    };
    let lines = path.split('Z').filter(|line| !line.is_empty());
    lines.map(|line| line.trim_start_matches('M').split('L').map(point).collect()).collect()
}

/// Whether a place is inside, by how many lines are crossed on the way to the right.
fn encloses(polygons: &[Vec<[f64; 2]>], [x, y]: [f64; 2]) -> bool {
    let crossed = polygons.iter().flat_map(|line| line.iter().zip(line.iter().cycle().skip(1)));
    let crossed = crossed.filter(|([x1, y1], [x2, y2])| (*y1 > y) != (*y2 > y) && x1.min(*x2) > x);
    crossed.count() % 2 == 1
}

fn outlines(all: &[Element]) -> Vec<&Element> {
    all.iter()
        .filter(|one| one.is("path", "line") && one.is("path", "ink") && !one.is("path", "own"))
        .collect()
}

#[test]
fn every_cell_is_drawn_with_its_number_and_its_tooltip() {
    let map = hackbench();
    let all = elements(&super::map(&map, Theme::Page));
    let shades: Vec<&Element> = all.iter().filter(|one| one.name == "rect" && one.inside("cell")).collect();
    assert_eq!(shades.len(), 39, "40 cells, one not measured");
    assert_eq!(all.iter().filter(|one| one.name == "g" && one.inside("cell")).count(), 40);
    let numbers: Vec<&str> =
        all.iter().filter(|one| one.is("text", "n")).map(|one| one.text.as_str()).collect();
    assert_eq!((numbers.len(), numbers[0]), (39, "+42.0"), "the upper row comes first");
    assert!(numbers.contains(&"−28.6"), "{numbers:?}");
    let said: Vec<&str> = all.iter().filter(|one| one.name == "title").map(|one| one.text.as_str()).collect();
    assert_eq!(said.len(), 41);
    assert!(said.contains(&"min granularity, ms 1, wake-up granularity, ms 15: +42.0 %; region A (fall)"));
    assert!(shades.iter().all(|one| one.get("style").starts_with("--dark:#")), "{:?}", shades[0]);
    // The upper left cell is that of the largest y and the smallest x.
    let least = |name: &str| shades.iter().map(|one| one.number(name)).fold(f64::INFINITY, f64::min);
    assert_eq!((shades[0].number("x"), shades[0].number("y")), (least("x"), least("y")));
}

#[test]
fn an_outline_encloses_its_cells_and_no_others() {
    let mut map = hackbench();
    // A part that hangs on by a corner, one apart, and a hole.
    let ring = (0..9).map(|at| [at / 3, at % 3]).filter(|cell| *cell != [1, 1]);
    map.regions.push(region("D", "ragged", ring.chain([[3, 3], [4, 7], [0, 99], [99, 0], [3, 3]]).collect()));
    let layout = Layout::new(&map);
    let all = elements(&super::map(&map, Theme::Alone));
    let outlines = outlines(&all);
    assert_eq!(outlines.len(), 4);
    for (region, outline) in map.regions.iter().zip(outlines) {
        let polygons = polygons(outline.get("d"));
        for cell in map.cells() {
            let middle = layout.place([cell[1] as f64, cell[0] as f64]);
            assert_eq!(encloses(&polygons, middle), region.cells.contains(&cell), "{} {cell:?}", region.name);
        }
        assert_eq!(outline.number("stroke-width"), 2.0);
    }
    assert_eq!(polygons(outlines_of(&all, 0)).len(), 1);
    assert_eq!(polygons(outlines_of(&all, 0))[0].len(), 6, "an L has six corners");
    assert_eq!(polygons(outlines_of(&all, 3)).len(), 4, "a ring's two lines and two cells");
}

fn outlines_of(all: &[Element], at: usize) -> &str {
    outlines(all)[at].get("d")
}

#[test]
fn marks_stand_at_their_cells() {
    let map = hackbench();
    let layout = Layout::new(&map);
    let all = elements(&super::map(&map, Theme::Page));
    let first = |one: &Element| {
        let d = one.get("d").trim_start_matches('M');
        let (x, y) = d.split(['L', 'a']).next().and_then(|at| at.split_once(' ')).expect("two numbers");
        [x, y].map(|at| at.parse::<f64>().expect("a number"))
    };
    let of = |class: &str| -> Vec<[f64; 2]> {
        all.iter().filter(|one| one.is("path", class) && !one.inside("legend")).map(first).collect()
    };
    let inside = |place: [f64; 2], cell: [usize; 2]| {
        let corner = layout.corner(cell);
        (0..2).all(|axis| place[axis] > corner[axis] && place[axis] < corner[axis] + layout.cell[axis])
    };
    assert_eq!(of("star").len(), 1);
    assert!(inside(of("star")[0], [3, 5]), "{:?}", of("star"));
    let dots = of("dot");
    assert!(dots.len() == 2 && inside(dots[0], [2, 5]) && inside(dots[1], [2, 6]), "{dots:?}");
    // A ring and its light edge, a quarter of the way from one column to the next.
    let own = of("own");
    assert_eq!(own.len(), 2);
    let wanted = layout.place([1.25, 1.0])[0] - 4.0;
    assert!((own[0][0] - wanted).abs() < 0.1, "{own:?} {wanted}");
    let words: Vec<&str> = all
        .iter()
        .filter(|one| one.name == "text" && one.inside("legend"))
        .map(|one| one.text.as_str())
        .collect();
    assert_eq!(
        words,
        [
            "A",
            "fall",
            "B",
            "ragged",
            "C",
            "flat",
            "best",
            "as good as the best",
            "the setting before",
            "not measured"
        ]
    );
    let bare = elements(&super::map(&row(&[Some(1.0), Some(2.0)]), Theme::Page));
    assert!(!bare.iter().any(|one| one.name == "text" && one.inside("legend")), "nothing to explain");
}

#[test]
fn hostile_texts_stay_texts() {
    for theme in [Theme::Page, Theme::Alone] {
        let svg = super::map(&hostile(), theme);
        let all = elements(&svg);
        let known = ["svg", "title", "desc", "g", "rect", "path", "text"];
        assert!(all.iter().all(|one| known.contains(&one.name.as_str())), "{svg}");
        assert!(!svg.contains("<script") && svg.contains("&lt;/text&gt;"), "{svg}");
        assert!(!svg.contains(['\x1b', '\u{202e}', '\u{ffff}']));
        assert_eq!(outlines(&all).len(), 3);
    }
}

#[test]
fn a_file_stands_alone_and_a_page_has_its_own_colours() {
    let [page, alone] = [Theme::Page, Theme::Alone].map(|theme| super::map(&hackbench(), theme));
    assert!(alone.contains("xmlns=\"http://www.w3.org/2000/svg\"") && !page.contains("http"));
    assert!(
        alone.contains("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>") && !page.contains("100%")
    );
    assert!(!alone.contains("--dark") && page.contains("--dark"));
    let all = elements(&alone);
    assert_eq!((all[0].name.as_str(), all[0].get("role")), ("svg", "img"));
    assert_eq!(
        (all[1].name.as_str(), all[1].text.as_str()),
        (
            "title",
            "time over that of the default setting, % by wake-up granularity, ms and min granularity, ms"
        )
    );
    let said = &all[2].text;
    assert!(said.starts_with("A map of 8 columns and 5 rows. Best: min granularity, ms 16, "), "{said}");
    assert!(said.ends_with("Region A fall: 12 cells. Region B ragged: 13 cells. Region C flat: 14 cells."));
}

#[test]
fn values_that_are_none_and_maps_of_nothing() {
    let nothing = [row(&[]), row(&[None]), row(&[Some(f64::NAN), Some(f64::INFINITY)]), row(&[Some(1e300)])];
    for map in nothing {
        let svg = super::map(&map, Theme::Alone);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        elements(&svg);
    }
    let mut short = hackbench();
    short.values.truncate(2);
    short.values[0].truncate(3);
    let all = elements(&super::map(&short, Theme::Page));
    assert_eq!(all.iter().filter(|one| one.is("text", "n")).count(), 11);
}

/// What texts of one line take up, as this picture's own estimate has it.
fn overlapping(all: &[Element]) -> Vec<String> {
    let plain = |one: &&Element| one.name == "text" && one.get("transform").is_empty();
    let span = |one: &Element| {
        let text = one.text.replace("&#39;", "'").replace("&amp;", "&").replace("&lt;", "<");
        let wide = canvas::measured(&text, one.number("font-size"));
        let left = match one.get("text-anchor") {
            "end" => one.number("x") - wide,
            "middle" => one.number("x") - wide / 2.0,
            _ => one.number("x"),
        };
        (one.number("y"), left, left + wide, text)
    };
    let spans: Vec<_> = all.iter().filter(plain).map(span).collect();
    let mut wrong = Vec::new();
    for (at, one) in spans.iter().enumerate() {
        for other in &spans[at + 1..] {
            // Texts on the same or nearly the same line.
            if (one.0 - other.0).abs() < 8.0 && one.1 < other.2 && other.1 < one.2 {
                wrong.push(format!("{one:?} {other:?}"));
            }
        }
    }
    wrong
}

#[test]
fn texts_of_the_example_do_not_overlap() {
    for map in [hackbench(), sized(20, 20, "", 1.0, Some(0.0)), sized(6, 3, "value ", 0.01, None)] {
        assert_eq!(overlapping(&elements(&super::map(&map, Theme::Page))), [""; 0]);
    }
}

fn maps() -> impl Strategy<Value = Map> {
    let label =
        prop_oneof![Just(""), Just("12."), Just("1000 µs × "), Just("漢字漢字漢字"), Just("WWWWWWWWWWWWWWW")];
    let around = prop_oneof![Just(None), Just(Some(0.0)), Just(Some(1.0))];
    (1..=20_usize, 1..=20_usize, label, -4..6_i32, around).prop_map(
        |(columns, rows, label, power, around)| sized(columns, rows, label, 10_f64.powi(power), around),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever the size, all texts and marks are inside the picture and beside each other, and all
    /// cells are there.
    #[test]
    fn any_size_has_room_for_its_texts(map in maps()) {
        let all = elements(&super::map(&map, Theme::Page));
        let (width, height) = (all[0].number("width"), all[0].number("height"));
        let cells = all.iter().filter(|one| one.name == "g" && one.inside("cell")).count();
        prop_assert_eq!(cells, map.columns() * map.rows());
        prop_assert_eq!(overlapping(&all), Vec::<String>::new());
        for one in all.iter().filter(|one| one.name == "text" && one.get("transform").is_empty()) {
            let wide = canvas::measured(&one.text, one.number("font-size"));
            let (from, to) = match one.get("text-anchor") {
                "end" => (one.number("x") - wide, one.number("x")),
                "middle" => (one.number("x") - wide / 2.0, one.number("x") + wide / 2.0),
                _ => (one.number("x"), one.number("x")),
            };
            prop_assert!(from >= -1.0 && to <= width + 1.0, "{:?} of {}", one, width);
            prop_assert!(one.number("y") <= height, "{:?}", one);
        }
        for one in all.iter().filter(|one| one.name == "rect") {
            prop_assert!(one.number("x") + one.number("width") <= width + 0.5, "{:?}", one);
        }
    }
}
