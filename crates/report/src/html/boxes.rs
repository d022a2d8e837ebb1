//! The host as boxes in boxes.

use askama::Template;

use super::text::filters;
use crate::block::BoxNode;

#[derive(Template)]
#[template(path = "report/box.html", whitespace = "minimize")]
pub struct BoxView<'a> {
    pub node: &'a BoxNode,
}

impl<'a> BoxView<'a> {
    /// A class that the style sheet knows.
    fn kind(&self) -> &'static str {
        let known = ["package", "node", "l3", "l2", "core", "cpu", "memory", "offline"];
        known.into_iter().find(|kind| *kind == self.node.kind).unwrap_or("other")
    }

    fn inside(&self) -> impl Iterator<Item = BoxView<'a>> + use<'a> {
        self.node.inside.iter().map(|node| BoxView { node })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_nest_and_collapse() {
        let cpu =
            |label: &str| BoxNode { label: label.to_owned(), kind: "cpu", inside: Vec::new(), alike: 1 };
        let core =
            BoxNode { label: String::new(), kind: "core", inside: vec![cpu("0"), cpu("<b>")], alike: 4 };
        let html = BoxView { node: &core }.to_string();
        assert!(html.contains("box core"), "{html}");
        assert!(html.contains("× 4 alike"), "{html}");
        assert!(html.contains("&#60;b&#62;") && !html.contains("<b>"), "{html}");
    }
}
