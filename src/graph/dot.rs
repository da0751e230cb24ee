//! A graph as DOT text.

use std::fmt::Write;

use super::node::Node;

pub(super) fn render(nodes: &[Node]) -> String {
    let mut text = String::from("digraph captured {\n    node [shape=box, fontname=monospace];\n");
    for (place, node) in nodes.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "    n{place} [label=\"{}\"];", label(node));
    }
    for (place, node) in nodes.iter().enumerate() {
        for before in &node.dependencies {
            let _ = writeln!(text, "    n{before} -> n{place};");
        }
    }
    text.push_str("}\n");
    text
}

fn label(node: &Node) -> String {
    let mut label = format!("{:?}", node.kind);
    if let Some(kernel) = &node.kernel {
        let _ = write!(label, "\\n{}", escaped(kernel));
    }
    if let Some(grid) = &node.grid {
        let _ = write!(label, "\\n{:?} x {:?}", grid.blocks, grid.threads);
    }
    if let Some(bytes) = node.bytes {
        let _ = write!(label, "\\n{bytes} B");
    }
    label
}

fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::NodeKind;

    #[test]
    fn names_cannot_break_out_of_their_label() {
        let node = Node {
            kind: NodeKind::Kernel,
            kernel: Some("a\"b\\c".into()),
            grid: None,
            bytes: None,
            dependencies: vec![],
        };
        assert!(render(&[node]).contains(r#"label="Kernel\na\"b\\c""#));
    }
}
