//! C strings, compared by the C library as C programs do.

use std::cmp::Ordering;

/// 30 characters and the terminating zero.
pub type Text = [u8; 31];

pub const EMPTY: Text = [0; 31];

pub const fn text(characters: &[u8; 30]) -> Text {
    let mut text = EMPTY;
    let (body, _) = text.split_at_mut(30);
    body.copy_from_slice(characters);
    text
}

/// `strcmp`.
pub fn compare(one: &Text, other: &Text) -> Ordering {
    // Without a terminating zero strcmp would read beyond the array.
    if one[30] != 0 || other[30] != 0 {
        return one.cmp(other);
    }
    // SAFETY: both arrays end with a zero, as checked above.
    unsafe { libc::strcmp(one.as_ptr().cast(), other.as_ptr().cast()) }.cmp(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_and_are_ordered() {
        let (one, other) = (text(b"DHRYSTONE PROGRAM, 1'ST STRING"), text(b"DHRYSTONE PROGRAM, 2'ND STRING"));
        assert_eq!(one[30], 0);
        assert_eq!((compare(&one, &other), compare(&other, &one)), (Ordering::Less, Ordering::Greater));
        assert_eq!(compare(&one, &one), Ordering::Equal);
        assert_eq!(compare(&EMPTY, &one), Ordering::Less);
        assert_eq!(compare(&[7; 31], &[8; 31]), Ordering::Less, "no end anywhere");
    }
}
