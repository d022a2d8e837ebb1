//! Mails as archives keep them: quoted-printable (RFC 2045, section 6.7), in which `=` is `=3D` and
//! a line that goes on in the next ends with `=`.

use std::borrow::Cow;

/// A text with as many `=3D` is one: no tool prints it by itself.
const MIN_SIGNS: usize = 2;

/// A text without them; itself where it has none.
pub fn unencoded(text: &str) -> Cow<'_, str> {
    if text.matches("=3D").count() < MIN_SIGNS {
        return Cow::Borrowed(text);
    }
    let mut bytes: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('=') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let behind = &rest[at + 1..];
        let code = behind.get(..2).filter(|code| code.bytes().all(|one| one.is_ascii_hexdigit()));
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        let line = behind.strip_prefix('\n').or_else(|| behind.strip_prefix("\r\n"));
        rest = match (line, code) {
            (Some(next), _) => next,
            (None, Some(code)) => {
                bytes.push(code);
                &behind[2..]
            }
            (None, None) => {
                bytes.push(b'=');
                behind
            }
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// A text as a mail has it, in lines of 75 letters; itself where it has too few signs for one.
#[cfg(test)]
pub fn encoded(text: &str) -> String {
    if text.matches('=').count() < MIN_SIGNS || !text.is_ascii() {
        return text.to_string();
    }
    let line = |line: &str| {
        let mut left = line.replace('=', "=3D");
        let mut parts = Vec::new();
        while left.len() > 75 {
            let end = (70..=75).rev().find(|at| !left[at - 2..*at].contains('=')).unwrap_or(75);
            let rest = left.split_off(end);
            parts.push(std::mem::replace(&mut left, rest) + "=");
        }
        parts.push(left);
        parts.join("\n")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::unencoded;

    #[test]
    fn only_what_a_mail_encoded_is_decoded() {
        for (mail, text) in [
            ("a=3D1 b=3D2", "a=1 b=2"),
            ("RunTime=3D1.0 se=\nc; Sent=3D5", "RunTime=1.0 sec; Sent=5"),
            ("percentile 99.0 =3D   45.6=20\n<MAX> =3D 7.5", "percentile 99.0 =   45.6 \n<MAX> = 7.5"),
            ("=E2=80=9C=3D=3D=", "\u{201c}==="),
            ("=3D=3D=é1=zz", "===é1=zz"),
            // These are not encoded.
            ("x=3D", "x=3D"),
            ("a=1 b=20 c=\nd", "a=1 b=20 c=\nd"),
        ] {
            assert_eq!(unencoded(mail), text, "{mail}");
        }
    }
}
