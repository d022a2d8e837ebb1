//! A picture of one pixel a cell, for matrices whose cells are too many for an element each.

use base64::Engine;

/// Cells without a value.
pub const GAP: u8 = 255;

/// Rows of palette indices from above, as the address of a BMP picture of 8 bits a pixel.
pub fn address(rows: &[Vec<u8>], palette: impl Fn(u8) -> [u8; 3]) -> String {
    let width = rows.iter().map(Vec::len).max().unwrap_or(0);
    let stride = width.next_multiple_of(4);
    let begin = 14 + 40 + 4 * 256;
    let size = begin + stride * rows.len();
    let mut file = Vec::with_capacity(size);
    file.extend(b"BM");
    let word = |value: usize| u32::try_from(value).unwrap_or(0).to_le_bytes();
    for value in [size, 0, begin, 40, width, rows.len()] {
        file.extend(word(value));
    }
    // One plane, 8 bits a pixel; not compressed, 256 colours.
    file.extend([1, 0, 8, 0]);
    for value in [0, stride * rows.len(), 2835, 2835, 256, 0] {
        file.extend(word(value));
    }
    for index in 0..=u8::MAX {
        let [red, green, blue] = palette(index);
        file.extend([blue, green, red, 0]);
    }
    // The lowest row comes first.
    for row in rows.iter().rev() {
        file.extend((0..stride).map(|at| row.get(at).copied().unwrap_or(GAP)));
    }
    format!("data:image/bmp;base64,{}", base64::engine::general_purpose::STANDARD.encode(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_its_size_and_its_rows_from_below() {
        let address = address(&[vec![1, 2, 3], vec![4, 5, 6]], |index| [index, 0, 0]);
        let (_, data) = address.split_once("base64,").expect("is base64");
        let file = base64::engine::general_purpose::STANDARD.decode(data).expect("decodes");
        assert_eq!(file.len(), 14 + 40 + 1024 + 2 * 4);
        assert_eq!(file[2..6], u32::try_from(file.len()).expect("small").to_le_bytes());
        assert_eq!((file[18], file[22]), (3, 2), "width and height");
        assert_eq!(file[14 + 40 + 1024..], [4, 5, 6, GAP, 1, 2, 3, GAP]);
        assert_eq!(file[14 + 40 + 4 * 7 + 2], 7, "red is the third byte");
    }
}
