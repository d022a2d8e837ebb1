//! `uname -a` and `hostname`: whose kernel and whose host it is.

use super::Tool;
use super::reported::Reported;

pub(super) const UNAME: Tool = Tool { name: "uname", file: "", knows: is_uname, read: uname };
pub(super) const HOSTNAME: Tool = Tool { name: "hostname", file: "", knows: is_name, read: hostname };

fn is_uname(bytes: &[u8]) -> bool {
    bytes.starts_with(b"Linux ") && bytes.len() < 4096
}

/// `Linux HOST RELEASE #1 SMP … x86_64 x86_64 x86_64 GNU/Linux`
fn uname(bytes: &[u8], told: &mut Reported) {
    let text = String::from_utf8_lossy(bytes);
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, host, release, .., architecture, "GNU/Linux"] = words.as_slice() else { return };
    told.host(host);
    told.kernel(release);
    told.architecture(architecture);
}

/// A name alone: what failed says more.
fn is_name(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let name = text.trim();
    !name.is_empty() && name.len() < 256 && name.chars().all(is_of_name)
}

fn hostname(bytes: &[u8], told: &mut Reported) {
    told.host(String::from_utf8_lossy(bytes).trim());
}
