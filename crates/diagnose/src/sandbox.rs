//! Sandboxes that answer in the kernel's or the hardware's place.

use super::{Evidence, Rule};
use model::vocabulary::host as ids;
use model::{Effect, Fact, Finding, Severity};

pub const RULES: &[Rule] = &[SANDBOXED];

const SANDBOXED: Rule = Rule {
    id: ids::rule::SANDBOXED,
    title: "A sandbox stands between the figures and the machine",
    topic: "sandbox",
    about: "gVisor, WSL 1 and User-Mode Linux answer system calls themselves, lxcfs writes files of /proc, and a nested guest \
            has two hypervisors below it. Figures then say what the sandbox costs, not what this kernel or this hardware \
            can do, and what other work does may not be seen at all.",
    method: "Fires where a sign that only such a sandbox leaves was read when the run began: gVisor's fixed /proc/version, the \
             kernel release of WSL, the vendor in /proc/cpuinfo, mounts of fuse.lxcfs below /proc, several control \
             programs in /proc/sysinfo, or Xen above another hypervisor. No verdict changes: the figures are true of the \
             sandbox. Containers, microVMs and WSL 2 are only shown by `assay machine`: they run on the kernel itself.",
    calm: "no sandbox in the kernel's place",
    looked_at: "kernel and mounts",
    source: file!(),
    check: sandboxed,
};

fn sandboxed(evidence: &Evidence) -> Option<Vec<Finding>> {
    let machine = &evidence.machine;
    machine.kernel.release.as_ref().or(machine.kernel.version.as_ref())?;
    let told = machine.enclosures.iter().filter(|enclosure| enclosure.changes_figures);
    let finding = |enclosure: &machine::Enclosure| {
        let (path, says) = enclosure.sign.split_once(": ").unwrap_or((&enclosure.sign, enclosure.name));
        let mut facts = vec![Fact::new("sign", says, path)];
        facts.extend(enclosure.hides.iter().map(|hidden| Fact::new("not seen", *hidden, enclosure.name)));
        Finding {
            rule: SANDBOXED.id.into(),
            severity: Severity::Warning,
            headline: enclosure.reading.clone(),
            cause: format!("The run was made inside of this: {}.", enclosure.name),
            facts,
            confirm: "assay machine --all".into(),
            advice: "Measure outside of it to judge the machine; compare only with runs in the same sandbox."
                .into(),
            series: Vec::new(),
            effect: Effect::None,
        }
    };
    Some(told.map(finding).collect())
}
