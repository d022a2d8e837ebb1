//! Dhrystone 2 by Weicker's definition (SIGPLAN Notices 23:8, 1988): eight procedures, three
//! functions, records with pointers, strings of 30 characters, arrays of 50 and of 50 by 50
//! numbers.
//!
//! The definition forbids merging what it puts into two compilation units: the second one
//! ([`second`]) is called through pointers that the compiler cannot see through. Inside a unit it
//! may do what it likes, as the suite's compiler does.

use std::cell::Cell;
use std::hint::black_box;

use super::super::check_answer;
use super::copies::Loops;
use sys::c_text::{self, Text};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ident {
    One,
    Two,
    Three,
    Four,
    Five,
}

/// The record of the definition, in its first variant.
struct Record<'a> {
    next: Cell<Option<&'a Record<'a>>>,
    discriminant: Cell<Ident>,
    enumeration: Cell<Ident>,
    number: Cell<i32>,
    text: Cell<Text>,
}

impl<'a> Record<'a> {
    fn blank() -> Record<'a> {
        Record {
            next: Cell::new(None),
            discriminant: Cell::new(Ident::One),
            // Nothing yet: what the program sets is none of the values that it compares.
            enumeration: Cell::new(Ident::Five),
            number: Cell::new(0),
            text: Cell::new(c_text::EMPTY),
        }
    }

    /// The assignment of one record to another.
    fn assign(&self, other: &Record<'a>) {
        self.next.set(other.next.get());
        self.discriminant.set(other.discriminant.get());
        self.enumeration.set(other.enumeration.get());
        self.number.set(other.number.get());
        self.text.set(other.text.get());
    }
}

type Row = [Cell<i32>; 50];

/// The global variables.
pub struct Globals<'a> {
    record: Cell<Option<&'a Record<'a>>>,
    pub number: Cell<i32>,
    pub truth: Cell<bool>,
    pub first_letter: Cell<u8>,
    pub second_letter: Cell<u8>,
    pub row: Box<Row>,
    pub rows: Box<[Row; 50]>,
}

const fn row() -> Row {
    [const { Cell::new(0) }; 50]
}

impl Globals<'_> {
    fn new() -> Self {
        Globals {
            record: Cell::new(None),
            number: Cell::new(0),
            truth: Cell::new(false),
            first_letter: Cell::new(0),
            second_letter: Cell::new(0),
            row: Box::new(row()),
            rows: Box::new([const { row() }; 50]),
        }
    }
}

/// The functions of the second compilation unit, as the first one sees them.
#[derive(Clone, Copy)]
struct Second {
    proc_6: fn(&Globals, Ident, &Cell<Ident>),
    proc_7: fn(i32, i32, &Cell<i32>),
    proc_8: fn(&Globals, &Row, &[Row; 50], i32, i32),
    func_1: fn(&Globals, u8, u8) -> Ident,
    func_2: fn(&Globals, &Text, &Text) -> bool,
}

impl Second {
    fn opaque() -> Second {
        black_box(Second {
            proc_6: second::proc_6,
            proc_7: second::proc_7,
            proc_8: second::proc_8,
            func_1: second::func_1,
            func_2: second::func_2,
        })
    }
}

const SOME: Text = c_text::text(b"DHRYSTONE PROGRAM, SOME STRING");
const FIRST: Text = c_text::text(b"DHRYSTONE PROGRAM, 1'ST STRING");
const SECOND: Text = c_text::text(b"DHRYSTONE PROGRAM, 2'ND STRING");
const THIRD: Text = c_text::text(b"DHRYSTONE PROGRAM, 3'RD STRING");

/// What the program's variables hold in the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub number: i32,
    pub truth: bool,
    pub letters: [u8; 2],
    /// Element 8 of the array, element 8, 7 of the square one.
    pub elements: [i32; 2],
    /// Discriminant, enumeration and number of both records.
    pub records: [(Ident, Ident, i32); 2],
    /// Whether both records point to the second one.
    pub linked: bool,
    pub locals: [i32; 3],
    pub enumeration: Ident,
    /// Those of both records, then the local ones.
    pub texts: [Text; 4],
}

impl Outcome {
    /// The published outcome of this many loops (the C version prints it, with what it should be).
    pub fn published(loops: u64) -> Outcome {
        Outcome {
            number: 5,
            truth: true,
            letters: *b"AB",
            // The definition starts this count at 10; it is as wide as a C int and wraps like one.
            elements: [7, (loops as i32).wrapping_add(10)],
            records: [(Ident::One, Ident::Three, 17), (Ident::One, Ident::Two, 18)],
            linked: true,
            locals: [5, 13, 7],
            enumeration: Ident::Two,
            texts: [SOME, SOME, FIRST, SECOND],
        }
    }
}

/// The loops of a copy.
pub fn loops() -> Loops {
    Box::new(|loops: u64| checked(loops, &run(loops)))
}

fn checked(loops: u64, outcome: &Outcome) -> anyhow::Result<()> {
    let meant = Outcome::published(loops);
    check_answer(*outcome == meant, || {
        format!("after {loops} loops Dhrystone's variables are {outcome:?} instead of {meant:?}")
    })
}

/// The main program, at least once round.
pub fn run(loops: u64) -> Outcome {
    let second = Second::opaque();
    let (record, next) = (Record::blank(), Record::blank());
    record.next.set(Some(&next));
    record.enumeration.set(Ident::Three);
    record.number.set(40);
    record.text.set(SOME);
    let globals = Globals::new();
    globals.record.set(Some(&record));
    globals.rows[8][7].set(10);
    // Out of the compiler's sight, as a C program's global variables are.
    let (globals, first_text) = (black_box(&globals), black_box(FIRST));
    let mut second_text = SECOND;
    let (mut one, mut two, three, enumeration) = (0, 0, Cell::new(0), Cell::new(Ident::One));
    for index in 1..=loops {
        proc_5(globals);
        proc_4(globals);
        one = 2;
        two = 3;
        second_text = SECOND;
        enumeration.set(Ident::Two);
        globals.truth.set(!(second.func_2)(globals, &first_text, black_box(&second_text)));
        while one < two {
            three.set(5 * one - two);
            (second.proc_7)(one, two, &three);
            one += 1;
        }
        (second.proc_8)(globals, &globals.row, &globals.rows, one, three.get());
        if let Some(record) = globals.record.get() {
            proc_1(globals, &second, record);
        }
        let mut letter = b'A';
        while letter <= globals.second_letter.get() {
            if enumeration.get() == (second.func_1)(globals, letter, b'C') {
                (second.proc_6)(globals, Ident::One, &enumeration);
                second_text = THIRD;
                two = index as i32;
                globals.number.set(index as i32);
            }
            letter += 1;
        }
        two = two.wrapping_mul(one);
        // Always 7: where it is not, the answers say so.
        one = two.checked_div(three.get()).unwrap_or(0);
        two = two.wrapping_sub(three.get()).wrapping_mul(7).wrapping_sub(one);
        one = proc_2(globals, one);
    }
    let about = |record: &Record| (record.discriminant.get(), record.enumeration.get(), record.number.get());
    let to_next = |to: Option<&Record>| to.is_some_and(|to| std::ptr::addr_eq(to, &next));
    Outcome {
        number: globals.number.get(),
        truth: globals.truth.get(),
        letters: [globals.first_letter.get(), globals.second_letter.get()],
        elements: [globals.row[8].get(), globals.rows[8][7].get()],
        records: [about(&record), about(&next)],
        linked: to_next(record.next.get()) && to_next(next.next.get()),
        locals: [one, two, three.get()],
        enumeration: enumeration.get(),
        texts: [record.text.get(), next.text.get(), first_text, second_text],
    }
}

fn proc_1<'a>(globals: &Globals<'a>, second: &Second, record: &Record<'a>) {
    let (Some(next), Some(global)) = (record.next.get(), globals.record.get()) else { return };
    next.assign(global);
    record.number.set(5);
    next.number.set(record.number.get());
    next.next.set(record.next.get());
    proc_3(globals, second, &next.next);
    if next.discriminant.get() == Ident::One {
        next.number.set(6);
        (second.proc_6)(globals, record.enumeration.get(), &next.enumeration);
        if let Some(global) = globals.record.get() {
            next.next.set(global.next.get());
        }
        (second.proc_7)(next.number.get(), 10, &next.number);
    } else if let Some(other) = record.next.get() {
        record.assign(other);
    }
}

fn proc_2(globals: &Globals, number: i32) -> i32 {
    let mut result = number;
    let mut local = number.wrapping_add(10);
    let mut enumeration = Ident::Two;
    // Once round: the letter is an A each time. (The definition's loop would not end otherwise;
    // this one does.)
    for _ in 0..2 {
        if globals.first_letter.get() == b'A' {
            local -= 1;
            result = local - globals.number.get();
            enumeration = Ident::One;
        }
        if enumeration == Ident::One {
            break;
        }
    }
    result
}

fn proc_3<'a>(globals: &Globals<'a>, second: &Second, pointer: &Cell<Option<&'a Record<'a>>>) {
    if let Some(global) = globals.record.get() {
        pointer.set(global.next.get());
        (second.proc_7)(10, globals.number.get(), &global.number);
    }
}

fn proc_4(globals: &Globals) {
    let local = globals.first_letter.get() == b'A';
    globals.truth.set(local | globals.truth.get());
    globals.second_letter.set(b'B');
}

fn proc_5(globals: &Globals) {
    globals.first_letter.set(b'A');
    globals.truth.set(false);
}

/// The second compilation unit.
mod second {
    use super::{Cell, Globals, Ident, Row, Text, c_text};

    pub fn proc_6(globals: &Globals, value: Ident, result: &Cell<Ident>) {
        result.set(value);
        if !func_3(value) {
            result.set(Ident::Four);
        }
        match value {
            Ident::One => result.set(Ident::One),
            Ident::Two if globals.number.get() > 100 => result.set(Ident::One),
            Ident::Two => result.set(Ident::Four),
            Ident::Three => result.set(Ident::Two),
            Ident::Four => {}
            Ident::Five => result.set(Ident::Three),
        }
    }

    pub fn proc_7(one: i32, two: i32, result: &Cell<i32>) {
        let local = one + 2;
        result.set(two + local);
    }

    pub fn proc_8(globals: &Globals, row: &Row, rows: &[Row; 50], one: i32, two: i32) {
        let local = (one + 5) as usize;
        row[local].set(two);
        row[local + 1].set(row[local].get());
        row[local + 30].set(local as i32);
        for element in &rows[local][local..=local + 1] {
            element.set(local as i32);
        }
        rows[local][local - 1].set(rows[local][local - 1].get().wrapping_add(1));
        rows[local + 20][local].set(row[local].get());
        globals.number.set(5);
    }

    pub fn func_1(globals: &Globals, one: u8, two: u8) -> Ident {
        let first = one;
        let second = first;
        if second != two {
            Ident::One
        } else {
            globals.first_letter.set(first);
            Ident::Two
        }
    }

    pub fn func_2(globals: &Globals, one: &Text, two: &Text) -> bool {
        let mut local = 2;
        let mut letter = 0;
        while local <= 2 {
            if func_1(globals, one[local], two[local + 1]) == Ident::One {
                letter = b'A';
                local += 1;
            } else {
                // The definition would loop forever.
                return true;
            }
        }
        if (b'W'..b'Z').contains(&letter) {
            local = 7;
        }
        if letter == b'R' {
            return true;
        }
        if c_text::compare(one, two).is_gt() {
            globals.number.set(local as i32 + 7);
            return true;
        }
        false
    }

    fn func_3(value: Ident) -> bool {
        value == Ident::Three
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WrongAnswer;

    #[test]
    fn the_published_values_come_out() {
        for loops in [1, 2, 1000] {
            assert_eq!(run(loops), Outcome::published(loops));
        }
        assert_eq!(run(300).elements, [7, 310]);
    }

    #[test]
    fn each_variable_that_is_otherwise_is_a_wrong_answer() {
        assert!(checked(5, &run(5)).is_ok());
        let planted: [fn(&mut Outcome); 8] = [
            |outcome| outcome.number = 6,
            |outcome| outcome.letters[1] = b'C',
            |outcome| outcome.elements[1] += 1,
            |outcome| outcome.records[1].2 = 17,
            |outcome| outcome.linked = false,
            |outcome| outcome.locals[1] = 12,
            |outcome| outcome.enumeration = Ident::One,
            |outcome| outcome.texts[3] = THIRD,
        ];
        for plant in planted {
            let mut outcome = run(5);
            plant(&mut outcome);
            let error = checked(5, &outcome).expect_err("planted");
            assert!(error.downcast_ref::<WrongAnswer>().is_some(), "{error}");
        }
        // As many loops as were not done.
        assert!(checked(6, &run(5)).is_err());
    }

    /// The branches that the main program never takes are part of the definition, too.
    #[test]
    fn the_second_unit_by_itself() {
        let globals = Globals::new();
        let turned = |value| {
            let result = Cell::new(value);
            second::proc_6(&globals, value, &result);
            result.get()
        };
        assert_eq!(
            [Ident::One, Ident::Two, Ident::Three, Ident::Four, Ident::Five].map(turned),
            [Ident::One, Ident::Four, Ident::Two, Ident::Four, Ident::Three]
        );
        globals.number.set(101);
        let result = Cell::new(Ident::Two);
        second::proc_6(&globals, Ident::Two, &result);
        assert_eq!(result.get(), Ident::One);
        assert_eq!(second::func_1(&globals, b'Q', b'Q'), Ident::Two);
        assert_eq!(globals.first_letter.get(), b'Q');
        assert!(!second::func_2(&globals, &FIRST, &SECOND));
        assert!(second::func_2(&globals, &SECOND, &FIRST) && globals.number.get() == 10);
    }
}
