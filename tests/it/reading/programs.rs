//! The programs of the sample captures: the verdict of each wait, from what the captures hold.

use super::Program;
use crate::snippets::marker;

/// `callers` lead to the function of a wait, innermost first, as (function, text of the line).
struct Sample {
    source: &'static str,
    callers: &'static [(&'static str, &'static str)],
    /// Function, text of the waiting line, marker.
    waits: &'static [(&'static str, &'static str, &'static str)],
}

const PATTERNS: Sample = Sample {
    source: include_str!("../../../sample-profiles/programs/patterns.py"),
    callers: &[("<lambda>", "one = lambda"), ("main", "            f(work(x, w))")],
    waits: &[
        ("p_item", "return", "read item 2: value-read"),
        ("p_print", "print", "print: debug-print"),
        ("p_print", "print", "read item 2 in /v/torch/_tensor.py:__format__: logging"),
        ("p_cpu", "return", "cpu: value-read"),
        ("p_to_cuda_pageable", "return", "to: upload"),
        ("p_tensor_from_list", "return", "tensor: upload"),
        ("p_if_any", "if", "truth: control-flow"),
        ("p_mask_index", "return", "get-mask: dynamic-shape"),
        ("p_nonzero", "return", "count nonzero: dynamic-shape"),
        ("p_masked_select", "return", "count masked_select: dynamic-shape"),
        ("p_unique", "return", "read _unique2 8 in /v/torch/functional.py:_unique_impl: dynamic-shape"),
        ("p_repeat_interleave", "return", "repeat-interleave: dynamic-shape"),
        ("p_repeat_interleave", "return", "read repeat_interleave 1: dynamic-shape"),
        ("p_index_cpu", "return", "get-list: upload"),
        ("p_scalar_assign", "y[0, 0]", "upload setitem 2: upload"),
        ("p_slice_cuda_bounds", "return", "index: dynamic-shape"),
        ("p_slice_cuda_bounds", "return", "read getitem 8: dynamic-shape"),
        ("p_tolist", "return", "tolist: value-read"),
        ("p_numpy", "return", "cpu: value-read"),
        ("p_device_synchronize", "synchronize()", "sync: explicit"),
        ("p_device_synchronize_twice", "synchronize()", "sync: explicit"),
        ("p_stream_synchronize", "synchronize()", "stream-sync: explicit"),
        ("p_event_synchronize", "e.synchronize()", "event-sync: explicit"),
        ("p_equal", "return", "read equal 1: value-read"),
        ("p_python_max", "return", "truth: control-flow"),
        (
            "p_clip_grad",
            "return",
            "read is_nonzero 1 in /v/torch/nn/utils/clip_grad.py:_get_total_norm: control-flow",
        ),
        (
            "p_clip_grad",
            "return",
            "read is_nonzero 1 in /v/torch/nn/utils/clip_grad.py:clip_grad_norm_: control-flow",
        ),
        ("p_bincount", "return", "copy bincount: dynamic-shape"),
        ("p_bincount", "return", "read bincount 4: dynamic-shape"),
        ("p_format", "return", "format: value-read"),
        ("p_allclose", "return", "allclose: value-read"),
        ("p_inv", "return", "inv: error-check"),
        // The captures without call chains name only API and copy; the verdict must not change into a wrong one.
        ("p_item", "return", "item: value-read; nochain"),
        ("p_cpu", "return", "cpu: value-read; nochain"),
        ("p_to_cuda_pageable", "return", "to: upload; nochain"),
        ("p_tensor_from_list", "return", "tensor: upload; nochain"),
        ("p_if_any", "if", "truth: control-flow; nochain"),
        ("p_mask_index", "return", "item: dynamic-shape; nochain"),
        ("p_nonzero", "return", "item: dynamic-shape; nochain"),
        ("p_unique", "return", "item: dynamic-shape; nochain"),
        ("p_index_cpu", "return", "get-list: upload; nochain"),
        ("p_scalar_assign", "y[0, 0]", "set-scalar: upload; nochain"),
        ("p_slice_cuda_bounds", "return", "index: dynamic-shape; nochain"),
        ("p_device_synchronize", "synchronize()", "sync: explicit; nochain"),
        ("p_python_max", "return", "truth: control-flow; nochain"),
        ("p_inv", "return", "truth: error-check; nochain"),
        ("p_clip_grad", "return", "truth: control-flow; nochain"),
    ],
};

const TRAIN: Sample = Sample {
    source: include_str!("../../../sample-profiles/programs/train_mlp.py"),
    callers: &[("main", "            step("), ("<module>", "    main()")],
    waits: &[
        ("step", "x = x.to(", "to: upload"),
        ("step", "t = t.cuda(", "cuda: upload"),
        ("step", "if loss.item()", "item: control-flow; rule S02"),
        // `i % 1 == 0` is always true, so there is no S18.
        (
            "step",
            "print(",
            "item: logging; expression loss.item(), acc.item(), gnorm.item(); rules S04 S17 S04 S04",
        ),
        ("step", "torch.cuda.synchronize()", "sync: explicit"),
        ("step", "loss = lossf(", "item: stale"),
        ("step", "if i % 1", "item: stale"),
        ("step", "raise", "item: stale"),
    ],
};

#[test]
fn waits_of_the_samples_are_what_their_labels_say() {
    for Sample { source, callers, waits } in [PATTERNS, TRAIN] {
        let lines: Vec<&str> = source.lines().collect();
        let last = |text: &str| 1 + lines.iter().rposition(|line| line.starts_with(text)).unwrap();
        let callers: Vec<(String, usize)> = callers
            .iter()
            .map(|(function, text)| {
                let at = 1 + lines.iter().rposition(|line| line.contains(text)).unwrap();
                ((*function).to_owned(), at)
            })
            .collect();
        let program = Program::new(source.as_bytes());
        for (function, text, marked) in waits {
            let start = last(&format!("def {function}("));
            let at = start + 1 + lines[start..].iter().position(|line| line.contains(text)).unwrap();
            let mark = marker::mark(at, marked);
            let stack = [vec![((*function).to_owned(), at)], callers.clone()].concat();
            for stack in [&stack[..], &stack[..1]] {
                let differs = program.differs(&mark, stack);
                assert!(differs.is_none(), "{function} {text}: {marked}: {differs:?}");
            }
        }
    }
}
