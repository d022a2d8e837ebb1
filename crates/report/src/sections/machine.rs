//! The machine: in a line, as boxes, as facts.

use crate::block::{Block, BoxNode, MACHINE, Section};
use crate::text_machine::{self, Style};
use crate::tree::{self, Item, Part};
use diagnose::Diagnosis;
use diagnose::words::bytes;
use machine::Hypervisor;
use machine::Machine;

/// `vm-17  KVM guest, 64 CPUs, 256 GiB, Linux 6.12`
pub fn one_line(diagnosis: &Diagnosis) -> String {
    let machine = &diagnosis.machine;
    let mut words = vec![match &machine.hypervisor {
        Hypervisor::Unknown => "machine".to_string(),
        Hypervisor::None => "bare metal".to_string(),
        Hypervisor::Guest(name) => diagnose::words::guest(name),
    }];
    words.extend(machine.around().map(|enclosure| enclosure.name.to_string()));
    words.extend(machine.cpus.name());
    words.push(match machine.cpus.online.len() {
        1 => "1 CPU".to_string(),
        cpus => format!("{cpus} CPUs"),
    });
    words.extend(machine.memory.total_bytes.map(|total| bytes(total as f64)));
    words.extend(machine.kernel.release.as_ref().map(|release| format!("Linux {release}")));
    format!("{}: {}", diagnosis.run.header.host, words.join(", "))
}

pub fn section(diagnosis: &Diagnosis) -> Section {
    let style = Style { color: false, unicode: true, width: 110 };
    Section::new(
        MACHINE,
        "Machine",
        vec![
            Block::Boxes(boxes(&diagnosis.machine)),
            Block::Preformatted(text_machine::draw(&diagnosis.machine, style)),
        ],
    )
    .about("As the kernel describes it. Unknown facts are left out or called unknown.")
    .long()
}

/// Boxes beside each other that differ in numbers only are drawn once from this many on.
const ALIKE: usize = 9;

fn boxes(machine: &Machine) -> Vec<BoxNode> {
    let (root, _) = tree::build(machine);
    let mut nodes = match root.parts.is_empty() {
        true => children(&root),
        false => vec![node(&root)],
    };
    let memory_only = machine.nodes.iter().filter(|node| node.cpus.is_empty());
    nodes.extend(memory_only.map(|node| {
        let size = node.total_bytes.map_or("memory of unknown size".to_string(), |total| bytes(total as f64));
        leaf(format!("node {}: {size}, no CPUs", node.id), "memory")
    }));
    if !machine.cpus.offline.is_empty() {
        nodes.push(leaf(format!("offline CPUs {}", machine.cpus.offline), "offline"));
    }
    nodes
}

fn node(item: &Item) -> BoxNode {
    let outermost = item.parts.first();
    let kind = match outermost {
        Some(Part::Package(_)) => "package",
        Some(Part::Node(_)) => "node",
        Some(Part::Cache { level: 3.., .. }) => "l3",
        Some(Part::Cache { level: 2, .. }) => "l2",
        _ if item.is_core() => "core",
        _ => "l2",
    };
    BoxNode { label: tree::name(&item.parts), kind, inside: children(item), alike: 1 }
}

fn children(item: &Item) -> Vec<BoxNode> {
    let mut nodes: Vec<BoxNode> = Vec::new();
    let mut index = 0;
    while index < item.children.len() {
        let child = &item.children[index];
        let alike = item.children[index..].iter().take_while(|other| other.shape == child.shape).count();
        match alike {
            alike if alike >= ALIKE => {
                nodes.push(BoxNode { alike, ..node(child) });
                index += alike;
            }
            _ => {
                nodes.push(node(child));
                index += 1;
            }
        }
    }
    nodes.extend(item.uncovered().iter().map(|cpu| leaf(cpu.to_string(), "cpu")));
    nodes
}

fn leaf(label: String, kind: &'static str) -> BoxNode {
    BoxNode { label, kind, inside: Vec::new(), alike: 1 }
}
