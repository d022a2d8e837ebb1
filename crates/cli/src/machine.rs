//! `assay machine`: describes this host, a captured tree or a CPUID dump.

use std::io::{IsTerminal, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use schemars::JsonSchema;
use serde::Serialize;

use super::files;
use super::output::{self, eprint_line};
use bench::network_path;
use machine::{self, CPUS, Machine, Summary};
use model::run_file::{self, Limits};
use model::vocabulary::{host as ids, network::probe as network};
use model::{BLANKED, Entry, Header, Snapshot};
use report::text::screen::{self as first_screen, Wanted};
use report::text_machine::{self, Style};
use snapshot::{archive, disk};

/// Show the hardware and what will disturb measurements
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  assay machine                          this host
  assay machine --all                    with a drawing and every fact
  assay machine --root sos-db7.tar.xz    another host, from its sosreport
  assay machine --dir /var/lib/db        with the disk below that directory, down to the devices
  assay machine --save db7.json.gz       keep what was read
  assay machine --from db7.json.gz --json
  sudo dmidecode >db7.txt                memory modules need root:
  assay machine --dmi db7.txt            which slot on which channel, and what to move
--root takes archives of sosreport, supportconfig or insights (not unpacked), a folder with copies of proc and \
sys, or printouts of dmidecode, hwinfo, lscpu, lshw -json, lstopo --of xml and numactl -H. Contradictions between \
sources are reported.
--dmi takes all that dmidecode prints, a file of `dmidecode --dump-bin`, or a sosreport's folder. Without --from or \
--root only the modules are shown.")]
pub struct Args {
    /// Drawing of packages, cores and caches, and every fact
    #[arg(long, conflicts_with = "quiet")]
    all: bool,
    /// The verdict and the findings only
    #[arg(long)]
    quiet: bool,
    /// JSON output, with a `summary` for scripts
    #[arg(long)]
    json: bool,
    /// File to save what was read, for --from (.gz compresses)
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// File of --save to show instead of this host
    #[arg(long, value_name = "FILE", group = "source")]
    from: Option<PathBuf>,
    /// Archive, folder or printout of another host (see below)
    #[arg(long, value_name = "PATH", group = "source")]
    root: Option<PathBuf>,
    /// Folder of CPUID dumps per CPU, from hwloc-gather-cpuid
    #[arg(long, value_name = "DIR", group = "source")]
    cpuid: Option<PathBuf>,
    /// Memory modules from a printout or dump of dmidecode
    #[arg(long, value_name = "FILE")]
    dmi: Option<PathBuf>,
    /// Folder whose disk to show [default: that of `assay run`]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["source", "dmi"])]
    dir: Option<PathBuf>,
    /// Block device to show as the disk (not opened)
    #[arg(long, value_name = "PATH", conflicts_with_all = ["source", "dmi", "dir"])]
    device: Option<PathBuf>,
    /// ASCII characters for the drawing
    #[arg(long)]
    ascii: bool,
}

/// What `--json` prints.
#[derive(Serialize, JsonSchema)]
pub struct Report {
    pub summary: Summary,
    #[serde(flatten)]
    pub machine: Machine,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let snapshot = read(&args)?;
    if let Some(path) = &args.save {
        save(&snapshot, path)?;
    }
    let machine = Machine::from(&snapshot);
    let is_blank = machine.is_blank();
    let exit = if is_blank { 3 } else { 0 };
    if is_blank {
        eprint_line(&format!("assay: {}", nothing_read(&args)));
    }
    if args.json {
        let report = Report { summary: machine.summary(), machine };
        output::print_json(&report)?;
    } else if !is_blank {
        output::print_text(&text_of(&machine, &args))?
    }
    Ok(ExitCode::from(exit))
}

/// The first screen, with the drawing and every fact on request.
fn text_of(machine: &Machine, args: &Args) -> String {
    let screen = text_machine::screen(machine);
    let counts = screen.counts();
    let counts = if counts.is_empty() { "no findings".to_string() } else { counts.join(", ") };
    let is_this_host = args.from.is_none() && args.root.is_none() && args.cpuid.is_none();
    let closing = vec![
        vec![counts, screen.explain()],
        vec![
            if args.all { "" } else { "--all draws it, with every fact" }.to_string(),
            "keep it: --save FILE".to_string(),
            if is_this_host { "measure it: assay run" } else { "" }.to_string(),
        ],
    ];
    let style = style(args.ascii);
    let wanted = Wanted { quiet: args.quiet, ..Wanted::default() };
    let first = first_screen::render(&screen, wanted, &closing, style);
    if args.all { format!("{first}\n{}", text_machine::draw(machine, style)) } else { first }
}

fn read(args: &Args) -> anyhow::Result<Snapshot> {
    let elsewhere = args.from.is_some() || args.root.is_some() || args.cpuid.is_some();
    let mut snapshot =
        if args.dmi.is_some() && !elsewhere { Snapshot::default() } else { read_machine(args)? };
    if let Some(path) = &args.dmi {
        snapshot.entries.extend(dmi_entries(&dmi_file(path)?)?);
    }
    snapshot.blank();
    Ok(snapshot)
}

/// Largest printout or dump of SMBIOS tables that is read.
const LARGEST_DMI: u64 = 16 << 20;

/// The places of dmidecode's output in sosreports.
const PRINTOUTS: [&str; 2] = ["sos_commands/hardware/dmidecode", "dmidecode"];

/// The file of `--dmi`: itself, or the one in a folder.
fn dmi_file(path: &Path) -> anyhow::Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_path_buf());
    }
    printout_below(path).with_context(|| {
        format!(
            "{} is a folder without {} or {}: name a file with the output of `sudo dmidecode`",
            path.display(),
            PRINTOUTS[0],
            PRINTOUTS[1]
        )
    })
}

/// The printout in a sosreport's folder, or in one that holds a single such folder. Links that lead
/// out of it are not followed: they would show the host that reads it.
fn printout_below(folder: &Path) -> Option<PathBuf> {
    let own = |folder: &Path| -> Option<PathBuf> {
        let root = folder.canonicalize().ok()?;
        let files = PRINTOUTS.iter().filter_map(|name| root.join(name).canonicalize().ok());
        files.into_iter().find(|path| path.starts_with(&root) && path.is_file())
    };
    own(folder).or_else(|| {
        let inner = std::fs::read_dir(folder).ok()?.take(1000).flatten().map(|entry| entry.path());
        let mut found = inner.filter(|path| !path.is_symlink()).filter_map(|path| own(&path));
        found.next().filter(|_| found.next().is_none())
    })
}

/// A file of `--dmi` as entries of a snapshot.
fn dmi_entries(path: &Path) -> anyhow::Result<Vec<(String, Entry)>> {
    let shown = path.display();
    let advice = "give the output of `sudo dmidecode`, or a file of `sudo dmidecode --dump-bin FILE`";
    let file = run_file::open(path).map_err(|error| anyhow!("{error:#}; for --dmi {advice}"))?;
    let mut bytes = Vec::new();
    let read = file.take(LARGEST_DMI + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("{shown} cannot be read: {advice}"))?;
    if bytes.len() as u64 > LARGEST_DMI {
        bail!("{shown} is larger than {} MiB: {advice}", LARGEST_DMI >> 20);
    }
    if bytes.is_empty() {
        bail!("{shown} is empty: {advice}");
    }
    if let Some(table) = machine::table_of(&bytes) {
        return Ok(vec![(machine::TABLES.to_string(), Entry::Bytes(table.to_vec()))]);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if machine::is_printout(&text) {
        return Ok(machine::printout_of(&text).map(|(name, entry)| (name.to_string(), entry)).to_vec());
    }
    let denied = ["Permission denied", "not permitted"].iter().any(|words| text.contains(words));
    if denied {
        bail!(
            "{shown} holds dmidecode's \"Permission denied\" and no tables: run dmidecode as root; {advice}"
        )
    } else {
        bail!("{shown} is not from dmidecode: {advice}")
    }
}

fn read_machine(args: &Args) -> anyhow::Result<Snapshot> {
    if let Some(path) = &args.from {
        return saved_snapshot(path);
    }
    if let Some(folder) = args.cpuid.as_deref() {
        std::fs::read_dir(folder)
            .with_context(|| format!("{} cannot be read as a folder", folder.display()))?;
    }
    Ok(match (&args.root, &args.cpuid) {
        (Some(root), _) => archive::read(root).map_err(anyhow::Error::msg)?,
        (_, Some(dump)) => snapshot::read_cpuid(dump),
        _ => {
            let mut snapshot = live_snapshot(Path::new("/"));
            let way = Entry::Text(network_path::describe(None, network_path::Probe::Nothing));
            snapshot.entries.insert(network::NETWORK.to_string(), way);
            match &args.device {
                Some(path) => {
                    disk::store(&mut snapshot, super::device::Device::look(path)?.described(Path::new("/")))
                }
                None => add_disk(&mut snapshot, Path::new("/"), args.dir.as_deref())?,
            }
            let way = Entry::Text(network_path::describe(None, network_path::Probe::Nothing));
            snapshot.entries.insert(network::NETWORK.to_string(), way);
            snapshot
        }
    })
}

/// This host, or the tree below `root`. For this host, what only system calls report is added.
pub fn live_snapshot(root: &Path) -> Snapshot {
    let mut snapshot = snapshot::read(root);
    if root == Path::new("/") {
        add_probes(&mut snapshot);
    }
    snapshot
}

/// The disk below a directory, or below the system's temporary one. A named directory must be
/// usable.
pub fn add_disk(snapshot: &mut Snapshot, root: &Path, directory: Option<&Path>) -> anyhow::Result<()> {
    let named = directory.map_or_else(std::env::temp_dir, Path::to_path_buf);
    let found = named.canonicalize().and_then(|path| Ok((path.metadata()?.dev(), path)));
    match found {
        Ok((number, path)) => {
            let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
            let path = path.to_string_lossy();
            disk::store(
                snapshot,
                disk::describe(root, &disk::Subject::Directory { path: &path, number: Some(&number) }),
            );
            Ok(())
        }
        Err(error) if directory.is_some() => {
            Err(error).with_context(|| format!("cannot open the directory {}", named.display()))
        }
        Err(_) => Ok(()),
    }
}

fn add_probes(snapshot: &mut Snapshot) {
    if let Ok(cpus) = sys::affinity::allowed() {
        snapshot.entries.insert(ids::probe::AFFINITY.to_string(), Entry::Text(cpus.to_string()));
    }
    sys::cpuid::probe(snapshot);
    // /sys says which CPUs share a cache; without it CPUID does.
    if !snapshot.below(CPUS).any(|(path, _)| path.contains("/cache/index")) {
        let online = Machine::from(&*snapshot).cpus.online;
        sys::cpuid::probe_each(snapshot, &online);
    }
}

fn nothing_read(args: &Args) -> String {
    match (&args.root, &args.cpuid, &args.from) {
        (None, None, None) if args.dmi.is_some() => {
            "it lists no memory slot: give all that dmidecode prints (without -t)".to_string()
        }
        (Some(root), ..) => format!(
            "{} does not list CPUs: give copies of /proc and /sys, an archive of sosreport, supportconfig \
              or insights, or a printout of lscpu or lstopo",
            root.display()
        ),
        (_, Some(dump), _) => format!(
            "{} holds no CPUID dumps: files pu0, pu1, ... with lines 'mask eax ebx ecx edx => eax ebx ecx \
              edx'",
            dump.display()
        ),
        (.., Some(file)) => format!("{} describes no host", file.display()),
        _ => "no files in /proc and /sys: are they mounted?".to_string(),
    }
}

/// Largest saved snapshot that is read, uncompressed.
const LARGEST: u64 = 256 << 20;

/// A snapshot that `--save` wrote.
pub fn saved_snapshot(path: &Path) -> anyhow::Result<Snapshot> {
    let whole = run_file::unpacked(run_file::open(path)?, &Limits::default());
    let mut text = String::new();
    let read = whole.and_then(|whole| whole.take(LARGEST + 1).read_to_string(&mut text));
    let advice = "give a file of `assay machine --save`";
    let size = read.with_context(|| format!("{} cannot be read: {advice}", path.display()))?;
    if size as u64 > LARGEST {
        bail!("{} is larger than {} MiB: {advice}", path.display(), LARGEST >> 20);
    }
    serde_json::from_str(&text).with_context(|| format!("{} is not a snapshot: {advice}", path.display()))
}

/// Whether the file of an interrupted run has secrets that are blanked on reading; prints why it is
/// not resumed.
pub fn holds_secrets(old: &Header) -> bool {
    let holds = old.snapshot.get(BLANKED).is_some();
    if holds {
        eprint_line(&format!(
            "  the run of {} is not resumed: its file contains serial numbers or ids, as files of older \
              versions do",
            old.started
        ));
    }
    holds
}

fn save(snapshot: &Snapshot, path: &Path) -> anyhow::Result<()> {
    let compressed = path.extension().is_some_and(|extension| extension == "gz");
    files::write_named(path, |file| {
        if compressed {
            let mut encoder = GzEncoder::new(file, Compression::default());
            serde_json::to_writer(&mut encoder, snapshot)?;
            encoder.finish()?;
        } else {
            serde_json::to_writer(file, snapshot)?
        }
        Ok(())
    })
}

fn style(ascii: bool) -> Style {
    let style = output::style(std::io::stdout().is_terminal());
    Style { unicode: style.unicode && !ascii, ..style }
}
