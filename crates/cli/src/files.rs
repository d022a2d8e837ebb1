//! Output files, and what they never replace: measurements, inputs and, under an automatic name,
//! files that Assay did not write.

use std::fs::{File, Metadata};
use std::io::{self, BufWriter, IsTerminal, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use flate2::read::MultiGzDecoder;
use rustix::fs::{Mode, OFlags, major, minor};

use super::leftovers;
use model::run_file::{self, EXTENSION, GZIP};
use sys::atomic_file::{AtomicFile, handle, is_kernel_directory, links_to_open_file};

/// Writes a run's output under an automatic name, and replaces only an output of Assay. It is
/// written completely or not at all, readable by the user's umask.
pub fn write_own(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let advice = || {
        format!(
            "cannot write {}; the run file is safe: make room, then `assay report` makes the page (--out: \
              another folder)",
            path.display()
        )
    };
    let kind = Kind::of(path);
    let give_way = || -> anyhow::Result<bool> {
        let ours = match replaceable(path)? {
            Some(mut file) => kind.wrote(&mut file)?,
            // Nothing; or a link, a pipe, a folder, a file that may not be read.
            None => path.symlink_metadata().is_err(),
        };
        ensure!(
            ours,
            "a file of this name exists that Assay did not write or that was edited since; it stays as it is"
        );
        Ok(path.symlink_metadata().is_ok())
    };
    put(path, &give_way, |file| kind.signed(file, write)).with_context(advice)
}

/// Writes into the place that the user named: through a pipe or a terminal, else a file, as
/// [`write_own`] makes it.
pub fn write_named(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let advice = || format!("cannot write {}", path.display());
    if let Some(taker) = taker(path).with_context(advice)? {
        return fill(taker, write).with_context(advice);
    }
    let give_way = || replaceable(path).map(|_| path.symlink_metadata().is_ok());
    put(path, &give_way, write).with_context(advice)
}

/// The same for a file that only its owner may read, and no pipe.
pub fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let give_way = || replaceable(path).map(|_| path.symlink_metadata().is_ok());
    let private = Some(Mode::RUSR | Mode::WUSR);
    put_with(path, private, &give_way, |out| Ok(out.write_all(text.as_bytes())?))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Whether a file of this name is an unchanged report of Assay or empty; an error if it has
/// measurements.
pub fn is_own(path: &Path) -> anyhow::Result<bool> {
    replaceable(path)?.map_or(Ok(false), |mut file| Kind::of(path).wrote(&mut file))
}

/// Puts a copy of a report in place of what `gives_way`.
pub fn copy(report: &Path, to: &Path, gives_way: &dyn Fn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    put(to, gives_way, |out| Ok(io::copy(&mut File::open(report)?, out).map(|_| ())?))
}

fn put(
    path: &Path,
    give_way: &dyn Fn() -> anyhow::Result<bool>,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    put_with(path, None, give_way, write)
}

/// `give_way` says whether an existing file may be replaced, or why not; it is called before
/// writing and again before the rename. `mode` or the umask sets the permissions.
fn put_with(
    path: &Path,
    mode: Option<Mode>,
    give_way: &dyn Fn() -> anyhow::Result<bool>,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let directory = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    ensure!(!is_kernel_directory(directory), "its folder is for devices and kernel files: name another one");
    give_way()?;
    leftovers::sweep([directory]);
    let fresh = AtomicFile::for_path(path)?;
    if let Some(mode) = mode {
        rustix::fs::fchmod(fresh.file(), mode)?;
    }
    fill(fresh.file().try_clone().map(File::from)?, write)?;
    // Another process may put a file there at any moment.
    while !fresh.put(give_way()?)? {}
    Ok(())
}

fn fill(file: File, write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut buffered = BufWriter::new(file);
    write(&mut buffered)?;
    Ok(buffered.flush()?)
}

/// An output that is not replaced: a pipe, a terminal, /dev/null, or an open file named as such
/// (/dev/stdout). It is opened by the checked handle, not by name again. An error if it cannot be a
/// file.
fn taker(path: &Path) -> anyhow::Result<Option<File>> {
    let held = match rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(held) => File::from(held),
        Err(_) => return Ok(None),
    };
    let found = held.metadata()?;
    let kind = found.file_type();
    ensure!(!kind.is_dir(), "it is a folder: name a file in it");
    if kind.is_file() {
        return links_to_open_file(path).then(|| given(&held, &found)).transpose();
    }
    let nothing = [(1, 3), (1, 7)].contains(&(major(found.rdev()), minor(found.rdev())));
    let opened = || File::options().write(true).open(handle(&held));
    match () {
        () if kind.is_fifo() || kind.is_char_device() && nothing => Ok(Some(opened()?)),
        () if kind.is_char_device() => match opened().ok().filter(File::is_terminal) {
            Some(terminal) => Ok(Some(terminal)),
            None => bail!("it is a device: name another file"),
        },
        () => bail!("it is a device or a socket: name another file"),
    }
}

/// The open file itself if it is a standard stream, so that both continue at the same place; else
/// output is appended.
fn given(held: &File, found: &Metadata) -> anyhow::Result<File> {
    let (out, err) = (std::io::stdout(), std::io::stderr());
    for stream in [out.as_fd(), err.as_fd()] {
        let stream = File::from(stream.try_clone_to_owned()?);
        let is_it = |own: Metadata| (own.dev(), own.ino()) == (found.dev(), found.ino());
        if stream.metadata().is_ok_and(is_it) {
            return Ok(stream);
        }
    }
    Ok(File::options().append(true).open(handle(held))?)
}

/// Bytes of a file that show its kind.
const HEAD: u64 = 4096;

/// An existing file that can be replaced, opened; `None` if there is none or only a link. An error
/// if it has measurements or is an input.
fn replaceable(path: &Path) -> anyhow::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(_) => return Ok(None),
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Ok(None);
    }
    let mut head = Vec::new();
    (&file).take(HEAD).read_to_end(&mut head)?;
    let mut unpacked = Vec::new();
    if head.starts_with(&GZIP) {
        // If the head ends inside a block, the bytes before suffice.
        let _ = MultiGzDecoder::new(&head[..]).take(HEAD).read_to_end(&mut unpacked);
    }
    let named = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase().contains(EXTENSION);
    ensure!(
        !named && ![&head, &unpacked].iter().any(|begin| begin.starts_with(br#"{"header":"#)),
        "it is a run file, which a report never replaces: name another file"
    );
    ensure!(!run_file::was_read(&found), "it is the input: name another file");
    file.rewind()?;
    Ok(Some(file))
}

/// The form of a report, by its file's ending. People write into some of them.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Page,
    Markdown,
    Json,
    Csv,
    Lmbench,
}

/// The last line of pages and of Markdown, which no reader sees, has the CRC-32 of all before it.
const SIGNED: &str = "\n<!-- written by assay, crc32 ";
const SIGNED_END: &str = " -->\n";
/// In bytes, with the eight digits between.
const SIGNATURE: usize = SIGNED.len() + 8 + SIGNED_END.len();
/// No report is longer.
const MAX_BYTES: u64 = 1 << 30;

impl Kind {
    fn of(path: &Path) -> Kind {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("md") => Kind::Markdown,
            Some("json") => Kind::Json,
            Some("csv") => Kind::Csv,
            Some("html") => Kind::Page,
            _ => Kind::Lmbench,
        }
    }

    /// Writes a report with a checksum that shows later changes.
    fn signed(
        self,
        file: &mut dyn Write,
        write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut summed = Summed { file, sum: crc32fast::Hasher::new() };
        write(&mut summed)?;
        if matches!(self, Kind::Page | Kind::Markdown) {
            let Summed { file, sum } = summed;
            file.write_all(signature(&sum).as_bytes())?;
        }
        Ok(())
    }

    /// Whether a file is a report of this kind as Assay wrote it, in this version or in an older
    /// one.
    fn wrote(self, file: &mut File) -> anyhow::Result<bool> {
        let bytes = file.metadata()?.len();
        if bytes == 0 {
            return Ok(true);
        }
        let mut head = Vec::new();
        file.take(HEAD).read_to_end(&mut head)?;
        if bytes > MAX_BYTES || !self.begins(&String::from_utf8_lossy(&head)) {
            return Ok(false);
        }
        let end = bytes.saturating_sub(SIGNATURE as u64);
        file.seek(SeekFrom::Start(end))?;
        let mut last = Vec::new();
        file.take(SIGNATURE as u64).read_to_end(&mut last)?;
        let last = String::from_utf8_lossy(&last);
        Ok(match self {
            Kind::Page | Kind::Markdown if last.starts_with(SIGNED) => {
                file.rewind()?;
                let mut summed = Summed { file: std::io::sink(), sum: crc32fast::Hasher::new() };
                std::io::copy(&mut file.take(end), &mut summed)?;
                last == signature(&summed.sum)
            }
            // Older versions did not sign.
            Kind::Page => last.trim_end().ends_with("</html>"),
            Kind::Markdown => false,
            Kind::Json => last.trim_end().ends_with('}'),
            Kind::Csv | Kind::Lmbench => true,
        })
    }

    fn begins(self, head: &str) -> bool {
        match self {
            Kind::Page => head.contains("<meta name=\"generator\" content=\"assay "),
            // The line with date and version of the run.
            Kind::Markdown => head.contains("Z, Assay "),
            Kind::Json => {
                let dense: String = head.chars().filter(|letter| !letter.is_whitespace()).take(40).collect();
                let schema = dense.strip_prefix("{\"schema\":").unwrap_or_default();
                schema.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(",\"assay\":\"")
            }
            Kind::Csv => head.starts_with("host,test,placement,param,metric,"),
            Kind::Lmbench => head.contains("(filled by Assay "),
        }
    }
}

fn signature(sum: &crc32fast::Hasher) -> String {
    format!("{SIGNED}{:08x}{SIGNED_END}", sum.clone().finalize())
}

/// Computes the checksum of what is written.
struct Summed<W> {
    file: W,
    sum: crc32fast::Hasher,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let wrote = self.file.write(bytes)?;
        self.sum.update(&bytes[..wrote]);
        Ok(wrote)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<!DOCTYPE html>\n<meta name=\"generator\" content=\"assay 0.1.0\">\n</html>\n";
    const MARKDOWN: &str = "# vm\n\nquick profile, 1 visits in 1 s, 2026-11-25T08:25:13Z, Assay 0.1.0\n";
    const CSV: &str = "host,test,placement,param,metric,process,window,value,unit,verdict\nvm,\n";

    /// What becomes of a file of this name and text when Assay writes a report there.
    fn is_replaced(name: &str, text: &str) -> bool {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        let written = write_own(&path, |file| Ok(file.write_all(b"new")?));
        let now = std::fs::read_to_string(&path).expect("a file");
        assert_eq!(written.is_err(), now == text, "{now}");
        written.is_ok()
    }

    #[test]
    fn reports_are_told_from_what_people_write() {
        let pretty = "{\n  \"schema\": 1,\n  \"assay\": \"0.1.0\"}\n";
        let dense = "{\"schema\":1,\"assay\":\"0.1.0\"}";
        for (name, ours) in [
            ("report.html", PAGE),
            ("report.json", pretty),
            ("report.json", dense),
            ("report.csv", CSV),
            ("report.html", ""),
            ("report.md", ""),
        ] {
            assert!(is_replaced(name, ours), "{ours}");
        }
        let blank = " ".repeat(5000) + "<p>mine</p>";
        for (name, foreign) in [
            ("report.md", "My notes on Assay"),
            ("report.md", MARKDOWN),
            ("report.html", "<!DOCTYPE html>"),
            ("report.html", MARKDOWN),
            ("report.html", &blank),
            ("report.html", &format!("{PAGE}<p>mine</p>")),
            ("report.json", "{\"schema\":1}"),
            ("report.json", &format!("{dense}\nmine")),
            ("report.json", "{\"assay\":\"0\"}"),
            ("report.csv", "host,test\n"),
        ] {
            assert!(!is_replaced(name, foreign), "{foreign}");
        }
    }

    #[test]
    fn a_report_that_somebody_wrote_into_is_his() {
        for (name, text) in [("report.md", MARKDOWN), ("report.html", PAGE)] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join(name);
            let again = || write_own(&path, |file| Ok(file.write_all(text.as_bytes())?));
            again().expect("written");
            again().expect("replaced");
            let ours = std::fs::read_to_string(&path).expect("a report");
            assert!(ours.starts_with(text) && ours.len() == text.len() + SIGNATURE, "{ours}");
            for changed in [format!("{ours}mine"), format!("mine{ours}"), ours.replace("0.1.0", "0.1.1")] {
                assert!(!is_replaced(name, &changed), "{changed}");
            }
        }
    }

    #[test]
    fn what_comes_while_a_report_is_made_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.html");
        let error = write_own(&path, |file| {
            std::fs::write(&path, "mine")?;
            Ok(file.write_all(PAGE.as_bytes())?)
        });
        assert!(format!("{:#}", error.expect_err("it stays")).contains("that Assay did not write"));
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "mine");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn nothing_is_put_among_the_files_of_the_kernel() {
        let error = write_named(Path::new("/dev/assay-report"), |_| Ok(())).expect_err("no file");
        assert!(format!("{error:#}").contains("kernel files"), "{error:#}");
    }
}
