//! The digits example as somebody runs it: what it prints, and how it ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn digits(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--example", "digits", "--"]).args(arguments);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs")
}

fn data(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/examples/data");
    folder.join(name).to_str().expect("a path in UTF-8").to_owned()
}

/// The input is no use: status 2, nothing printed, one line that says why.
fn assert_refused(arguments: &[&str], reason: &str) {
    let output = digits(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
    assert!(output.stdout.is_empty());
    assert_eq!(errors.trim_end().lines().count(), 1, "{errors}");
    assert!(errors.contains(reason), "{arguments:?}: {errors}");
}

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn all_musts_of_the_report_hold_and_the_graph_is_written_as_dot() {
    let dot = scratch("digits.dot");
    let output = digits(&["--batch", "1,200", "--dot", dot.to_str().expect("UTF-8")]);
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}");
    assert_eq!(report.matches("578 of 597").count(), 2, "{report}");
    assert_eq!(report.matches("must: ok").count(), 6, "{report}");
    assert!(!report.contains("FAILED"), "{report}");
    let graph = std::fs::read_to_string(dot).expect("the graph was written");
    assert!(graph.starts_with("digraph captured {"), "{graph}");
    for kernel in ["scale", "dense", "relu", "argmax"] {
        assert!(graph.contains(kernel), "{graph}");
    }
    assert_eq!(graph.matches(" -> ").count(), 6, "seven kernels in a row: {graph}");
}

#[test]
fn input_that_is_no_use_is_one_clear_line_and_status_2() {
    let (weights, tests) = (data("weights.safetensors"), data("test.safetensors"));
    assert_refused(&["--images", "no/such/file"], "no/such/file");
    assert_refused(&["--weights", "no/such/file"], "no/such/file");
    assert_refused(&["--images", &weights], "no tensor `labels`");
    assert_refused(&["--weights", &tests], "no tensor `fc1.weight`");
    assert_refused(&["--images", &data("README.md")], "not a safetensors file");
    for batch in ["0", "-1", "many", "1,,2", "99999999999999999999", "1000000"] {
        assert_refused(&[&format!("--batch={batch}")], "batch sizes are numbers");
    }
    assert_refused(&["--device", "toaster"], "toaster");
    assert_refused(&["--frobnicate"], "--frobnicate");
}

#[test]
fn a_tensor_of_another_shape_or_type_is_refused_with_both() {
    use safetensors::tensor::{Dtype, TensorView, serialize_to_file};
    let path = scratch("shape.safetensors");
    let bytes = vec![0u8; 3 * 63];
    let images = TensorView::new(Dtype::U8, vec![3, 63], &bytes).expect("a tensor");
    let labels = TensorView::new(Dtype::U8, vec![3], &bytes[..3]).expect("a tensor");
    let tensors = [("images", images), ("labels", labels)];
    serialize_to_file(tensors, &None, &path).expect("a file");
    assert_refused(&["--images", path.to_str().expect("UTF-8")], "[3, 63], not U8 [3, 64]");
}
