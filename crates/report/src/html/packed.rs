//! The result's JSON inside the page: compressed, because it is half of the page otherwise.

use std::fmt;
use std::io::{Read, Write};

use base64::Engine;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// Where it begins: gzip, written as Base64. No text can contain this, because every `<` in a text
/// is escaped.
pub const BEGIN: &str = "<script type=\"application/gzip\" id=\"assay-report\">";
/// Where pages of version 0.1 have it, as it is.
const BEGIN_PLAIN: &str = "<script type=\"application/json\" id=\"assay-report\">";
pub const END: &str = "</script>";

/// Assay writes no larger result.
const MAX_BYTES: u64 = 1 << 30;

/// JSON as it stands between `BEGIN` and `END`.
pub struct Packed<'a>(pub &'a str);

impl fmt::Display for Packed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        let packed = gzip.write_all(self.0.as_bytes()).and_then(|()| gzip.finish());
        Base64Display::new(&packed.map_err(|_| fmt::Error)?, &STANDARD).fmt(f)
    }
}

/// The JSON of a page; `None` if Assay did not write it.
pub fn unpacked(html: &str) -> Option<String> {
    let between = |begin: &str| Some(html.split_once(begin)?.1.split_once(END)?.0);
    let Some(packed) = between(BEGIN) else { return between(BEGIN_PLAIN).map(str::to_owned) };
    let packed = STANDARD.decode(packed).ok()?;
    let mut json = Vec::new();
    GzDecoder::new(packed.as_slice()).take(MAX_BYTES).read_to_end(&mut json).ok()?;
    String::from_utf8(json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_back_from_pages_of_this_and_of_earlier_versions() {
        let json = r#"{"host": "</script><!-- & \u2028", "n": [1, 2.5000000000000004, null]}"#;
        let packed = Packed(json).to_string();
        assert!(!packed.contains(['<', '>', '&']), "{packed}");
        assert_eq!(unpacked(&format!("<p>{BEGIN}{packed}{END}</p>")).as_deref(), Some(json));
        assert_eq!(unpacked(&format!("<p>{BEGIN_PLAIN}[1]{END}</p>")).as_deref(), Some("[1]"));
        for other in
            ["<p>something else</p>".into(), format!("{BEGIN}no gzip{END}"), format!("{BEGIN}{packed}")]
        {
            assert_eq!(unpacked(&other), None, "{other}");
        }
    }
}
