//! The output of a verb that judged a run: the first screen, or more on request.

use std::io::IsTerminal;
use std::path::Path;

use super::output;
use super::references::ReferenceArg;
use diagnose::Diagnosis;
use diagnose::reference::References;
use model::unit_factor;
use report::block::Report;
use report::screen::Screen;
use report::text::screen::{self as first_screen, Wanted};
use report::text::{self, Style};
use report::{json, sections};

/// How much of the judged run is printed.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct ScreenArgs {
    /// Every figure, placement, study and finding
    #[arg(long, conflicts_with_all = ["checks", "quiet"])]
    pub all: bool,
    /// Every check, passed or not
    #[arg(long)]
    pub checks: bool,
    /// The verdict and the findings only
    #[arg(long, conflicts_with = "checks")]
    pub quiet: bool,
    /// Key of each figure
    #[arg(long)]
    pub keys: bool,
    /// Units of key figures, with commas between: ns, us, GB/s, GiB/s, k/s
    #[arg(long, value_name = "UNIT", value_delimiter = ',', value_parser = unit)]
    pub unit: Vec<String>,
    #[command(flatten)]
    pub reference: ReferenceArg,
}

/// A unit that some key figure can be shown in.
fn unit(text: &str) -> Result<String, String> {
    let known =
        diagnose::key_figures::KEY_FIGURES.iter().any(|figure| unit_factor(figure.unit, text).is_some());
    if known {
        Ok(text.to_string())
    } else {
        Err("units are ns, µs, ms and s; MB/s, GB/s, MiB/s, GiB/s, Mbit/s and Gbit/s; 1/s, k/s and M/s; KiB, \
                      MiB and GiB"
            .to_string())
    }
}

/// The page of a run, or the command that makes it.
pub enum Page<'a> {
    /// The page, and the run file if the page is not made from an older one.
    At {
        page: &'a Path,
        run: Option<&'a Path>,
    },
    By(&'static str),
    /// No page is made of this run file.
    NoneOf(&'a Path),
}

impl Page<'_> {
    /// The run file as commands on the screen name it.
    fn run(&self) -> Option<String> {
        let run = match self {
            Page::At { run, .. } => *run,
            Page::By(_) => None,
            Page::NoneOf(run) => Some(*run),
        };
        run.map(|run| diagnose::words::shell(&run.display().to_string()))
    }
}

/// Prints a diagnosis as text, or as JSON with the text on standard error. Returns the report,
/// which is only the first screen unless `saves` or --all asks for more.
pub fn show(
    diagnosis: &Diagnosis,
    references: &References,
    args: &ScreenArgs,
    as_json: bool,
    saves: bool,
    page: &Page,
) -> anyhow::Result<Report> {
    let mut report = if saves || args.all {
        sections::compose_with(diagnosis, &[], references, &args.unit)?
    } else {
        let screen = sections::screen::screen(diagnosis, references, &args.unit);
        Report { screen: Some(screen), ..Report::default() }
    };
    if let (Some(run), Some(screen)) = (page.run(), report.screen.as_mut()) {
        screen.next.iter_mut().for_each(|text| *text = text.replace("RUN", &run));
    }
    if as_json {
        output::print_json(&json::output(diagnosis, references))?;
        let style = output::style(std::io::stderr().is_terminal());
        output::eprint_as_is(text_of(&report, args, page, style).trim_end());
    } else {
        let style = output::style(std::io::stdout().is_terminal());
        output::print_text(&text_of(&report, args, page, style))?;
    }
    Ok(report)
}

/// The first screen, with everything else on request.
fn text_of(report: &Report, args: &ScreenArgs, page: &Page, style: Style) -> String {
    let Some(screen) = &report.screen else { return String::new() };
    let first = first_of(screen, args, page, style);
    if args.all { format!("{first}{}", text::details(report, args.keys, style)) } else { first }
}

fn first_of(screen: &Screen, args: &ScreenArgs, page: &Page, style: Style) -> String {
    let wanted = Wanted { quiet: args.quiet, checks: args.checks, keys: args.keys };
    first_screen::render(screen, wanted, &closing(screen, args, page), style)
}

/// The two closing lines: counts, and where the rest is.
fn closing(screen: &Screen, args: &ScreenArgs, page: &Page) -> Vec<Vec<String>> {
    let mut counts = vec![format!("{} passed", diagnose::words::counted(screen.passed.len(), "check"))];
    counts.extend(screen.counts());
    let checks = if args.checks { "" } else { "--checks lists them" };
    let figures = diagnose::words::counted(screen.figures, "figure");
    let figures = match page {
        Page::At { page, .. } => format!("{figures} in {}", page.display()),
        Page::By(command) => format!("{figures}; page: {command}"),
        Page::NoneOf(_) => format!("{figures}; page: assay report {}", page.run().unwrap_or_default()),
    };
    let all = if args.all { "" } else { "--all prints them" };
    let wide = screen.rows.iter().any(|row| row.reading.wide);
    let legend = if wide && !args.checks { "~ = wide reference class" } else { "" };
    vec![
        vec![counts.join(", "), checks.to_string(), screen.explain()],
        vec![figures, all.to_string(), legend.to_string()],
    ]
}
