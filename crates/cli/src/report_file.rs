//! `--out FILE` of verbs that write one report: its ending selects the form.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};

use super::files;
use super::output::eprint_line;
use model::nearest;

/// A form that reports are written in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Page,
    Markdown,
    Json,
    Csv,
}

const FORMS: [(Form, &str, &str); 4] = [
    (Form::Page, "html", "page"),
    (Form::Markdown, "md", "Markdown"),
    (Form::Json, "json", "JSON"),
    (Form::Csv, "csv", "CSV"),
];

/// A file that a report goes into.
#[derive(Clone, Debug)]
pub struct ReportFile {
    path: PathBuf,
    pub form: Form,
}

impl ReportFile {
    /// Of a command line.
    pub fn parser() -> impl TypedValueParser<Value = ReportFile> {
        OsStringValueParser::new().try_map(|text| ReportFile::parse(&text))
    }

    /// Of a verb that writes these forms only.
    pub fn parser_of(forms: &'static [Form]) -> impl TypedValueParser<Value = ReportFile> {
        OsStringValueParser::new().try_map(move |text| ReportFile::of(&text, forms))
    }

    /// Refuses an unknown ending before anything is done.
    pub fn parse(text: &OsStr) -> Result<ReportFile, String> {
        ReportFile::of(text, &FORMS.map(|(form, ..)| form))
    }

    fn of(text: &OsStr, forms: &[Form]) -> Result<ReportFile, String> {
        let path = PathBuf::from(text);
        let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_lowercase();
        let found = FORMS.iter().find(|(form, known, _)| *known == ending && forms.contains(form));
        let form = found.map(|(form, ..)| *form).ok_or_else(|| unknown(&path, &ending, forms))?;
        Ok(ReportFile { path, form })
    }

    pub fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Writes it and prints that.
    pub fn write(&self, write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
        files::write_named(&self.path, write)?;
        eprint_line(&format!("  saved {}", self.path.display()));
        Ok(())
    }
}

fn unknown(path: &Path, ending: &str, forms: &[Form]) -> String {
    let known = || FORMS.iter().filter(|(form, ..)| forms.contains(form));
    let ways: Vec<String> = known().map(|(_, ending, words)| format!(".{ending} ({words})")).collect();
    let meant = match nearest(ending, known().map(|(_, ending, _)| *ending)) {
        Some(ending) => format!("; did you mean {}?", path.with_extension(ending).display()),
        None => String::new(),
    };
    let fault = match (ending, FORMS.iter().any(|(_, known, _)| *known == ending)) {
        ("", _) => "the file name has no ending".to_string(),
        (ending, true) => format!("this cannot be written as .{ending}"),
        (ending, false) => format!("there is no report form .{ending}"),
    };
    format!("{fault}: end it in {}{meant}", ways.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_says_the_form() {
        let form = |name: &str| ReportFile::parse(OsStr::new(name)).map(|file| file.form);
        assert_eq!(form("a/fleet.csv"), Ok(Form::Csv));
        assert_eq!(form("page.HTML"), Ok(Form::Page));
        assert_eq!(form("x.md"), Ok(Form::Markdown));
        assert_eq!(form("x.json"), Ok(Form::Json));
        let why = form("fleet.xlsx").expect_err("no form");
        assert!(why.starts_with("there is no report form .xlsx: end it in .html (page), .md"), "{why}");
        assert!(form("out.htm").expect_err("no form").ends_with("; did you mean out.html?"));
        assert!(form("fleet").expect_err("no form").contains("no ending"));
        let of = |name: &str| ReportFile::of(OsStr::new(name), &[Form::Json, Form::Csv]);
        assert_eq!(of("trend.csv").map(|file| file.form), Ok(Form::Csv));
        let why = of("trend.html").expect_err("no such form");
        assert_eq!(why, "this cannot be written as .html: end it in .json (JSON), .csv (CSV)");
    }
}
