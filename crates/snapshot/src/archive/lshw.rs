//! `lshw -json`: the system, its processors, and the memory's banks.
//!
//! A bank of class memory (`bank:0`) is a slot: `slot` names it, `size` is its module's, and an
//! empty one says so in its description. A module's kind stands in the description, too.

use serde_json::Value;

use super::Tool;
use super::printout::{Printout, size};
use super::reported::Reported;
use machine::archive::Subject;

pub(super) const TOOL: Tool = Tool { name: "lshw", file: "lshw -json", knows, read };

/// Nodes nested; the reader of JSON has its own limit.
const MAX_DEPTH: usize = 64;

fn tree(bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    // `lshw -json -class memory` of old versions prints nodes without brackets around them.
    let whole = serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(&format!("[{}]", text.trim_end_matches(','))));
    whole.ok()
}

fn knows(bytes: &[u8]) -> bool {
    let is_node = |node: &Value| node["id"].is_string() && node["class"].is_string();
    let begins = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(begins, Some(b'{' | b'['))
        && tree(bytes).is_some_and(|tree| match &tree {
            Value::Array(nodes) => nodes.first().is_some_and(is_node),
            node => is_node(node),
        })
}

fn read(bytes: &[u8], told: &mut Reported) {
    let Some(tree) = tree(bytes) else { return };
    let mut nodes = Vec::new();
    match &tree {
        Value::Array(all) => all.iter().for_each(|node| flatten(node, 0, &mut nodes)),
        node => flatten(node, 0, &mut nodes),
    }
    let mut printout = Printout::default();
    let (mut modules, mut sockets, mut installed) = (0usize, 0usize, 0u64);
    let mut processors: Vec<&str> = Vec::new();
    for node in nodes {
        let text = |name: &str| node[name].as_str();
        let id = text("id").unwrap_or("");
        match text("class").unwrap_or("") {
            "system" => {
                let vendor = text("vendor");
                let system = printout.structure(1, "System Information");
                system.field("Manufacturer", vendor).field("Product Name", text("product").map(product));
                system.field("Version", text("version"));
                // `-sanitize` calls every host so.
                if id != "computer" {
                    told.host(id);
                }
                text("product").into_iter().for_each(|name| told.claim(Subject::Product, product(name)));
            }
            "memory" if id == "firmware" => {
                let firmware = printout.structure(0, "BIOS Information");
                firmware.field("Vendor", text("vendor")).field("Version", text("version"));
                firmware.field("Release Date", text("date"));
            }
            "bus" if id == "core" => {
                let board = printout.structure(2, "Base Board Information");
                board.field("Manufacturer", text("vendor")).field("Product Name", text("product"));
            }
            "processor" if is_socket(id) && node["disabled"] != Value::Bool(true) => {
                // Without SMBIOS tables it lists what the kernel does, and not in sockets.
                sockets += usize::from(text("slot").is_some());
                let processor = printout.structure(4, "Processor Information");
                processor.field("Socket Designation", text("slot").or(Some(id)));
                processor.field("Type", Some("Central Processor"));
                // `version` is the processor's name where the tables report it, else three numbers.
                let product = text("product").filter(|name| !name.is_empty());
                processor.field("Version", product.or(text("version")));
                processors.extend(product);
            }
            "memory" if id == "memory" || id.starts_with("memory:") => {
                // Some firmware has an array for each processor, and a node each.
                let is_system = text("description").is_some_and(is_system);
                let bytes = node["size"].as_u64().filter(|_| is_system).unwrap_or(0);
                installed = installed.saturating_add(bytes);
            }
            "memory" if id == "bank" || id.starts_with("bank:") => {
                modules += 1;
                bank(node, &mut printout);
            }
            _ => {}
        }
    }
    if let Some(name) = processors.first() {
        told.processor(None, name);
    }
    if installed > 0 {
        told.claim(Subject::Installed, installed);
    }
    if sockets > 0 {
        told.claim(Subject::Sockets, sockets);
    }
    if modules > 0 {
        told.printout(printout.text());
    }
}

/// A product's name without the number that lshw puts behind it in brackets.
fn product(name: &str) -> &str {
    name.split(" (").next().unwrap_or(name)
}

/// `cpu`, `cpu:1`: what is below them is a thread.
fn is_socket(id: &str) -> bool {
    id == "cpu" || id.starts_with("cpu:")
}

/// Whether it is the memory that programs get, no cache and no ROM.
fn is_system(description: &str) -> bool {
    description.eq_ignore_ascii_case("system memory")
}

fn flatten<'a>(node: &'a Value, depth: usize, nodes: &mut Vec<&'a Value>) {
    nodes.push(node);
    if depth < MAX_DEPTH {
        let children = node["children"].as_array().into_iter().flatten();
        children.for_each(|child| flatten(child, depth + 1, nodes));
    }
}

fn bank(node: &Value, printout: &mut Printout) {
    let text = |name: &str| node[name].as_str();
    let description = text("description").unwrap_or("");
    let is_empty = description.to_ascii_lowercase().contains("[empty]");
    let bytes = node["size"].as_u64().or(is_empty.then_some(0)).map(size);
    // `DIMM DDR4 Synchronous Registered (Buffered) 2933 MHz (0.3 ns)`
    let words: Vec<&str> = description.split_whitespace().collect();
    let kind = words.iter().find(|word| word.contains("DDR") || **word == "SDRAM");
    let speed = words.windows(2).find(|pair| pair[1] == "MHz").map(|pair| format!("{} MT/s", pair[0]));
    let width = node["width"].as_u64().map(|bits| format!("{bits} bits"));
    let detail: Vec<&str> = ["Synchronous", "Registered (Buffered)", "LRDIMM", "Unbuffered (Unregistered)"]
        .into_iter()
        .filter(|word| description.contains(word))
        .collect();
    let module = printout.structure(17, "Memory Device");
    module.field("Data Width", width.as_deref()).field("Size", bytes.as_deref());
    module.field("Locator", text("slot")).field("Type", kind.copied());
    module.field("Type Detail", Some(&detail.join(" "))).field("Speed", speed.as_deref());
    module.field("Manufacturer", text("vendor").filter(|_| !is_empty));
    module.field("Part Number", text("product").filter(|_| !is_empty));
}
