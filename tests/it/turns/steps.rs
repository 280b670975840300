//! Loops within loops: the outermost around the optimizer's steps has the iterations.

use super::{Program, assert_found};

impl Program {
    /// Forward and backward pass of a batch: an H2D copy and 10 launches, 22 µs.
    fn batch(&mut self) {
        self.forward();
        for kernel in ["loss'", "gemm'", "gelu'", "gemm'"] {
            self.on(self.autograd, kernel);
        }
    }

    fn source(&self) -> String {
        self.found().expect("a loop").source
    }
}

/// ```text
///  [copy forward backward] [copy forward backward] [copy forward backward] [copy forward backward adam item] …
///  [0----------------------------------------------------------------------------------------------------]
/// ```
#[test]
fn accumulated_gradients_are_one_iteration() {
    let mut p = Program::new();
    for i in 0..32 {
        p.batch();
        if i % 4 == 3 {
            p.launch(&["adam", "adam"]);
            p.item();
        }
    }
    assert_found(p.found().as_ref(), 8, 94_000, 1.0);
    assert_eq!(p.source(), "repeating launches around an inner loop of 32");
}

/// An agent plays, then learns from what it saw in two epochs of two batches:
/// ```text
///  [env ×8][[batch adam item][batch adam item]] [[batch adam item][batch adam item]] [env ×8][[…
///  [0-------------------------------------------------------------------------------][1------…
/// ```
#[test]
fn epochs_over_minibatches_are_inside_an_iteration() {
    let mut p = Program::new();
    for i in 0..20 {
        for _ in 0..8 {
            p.upload();
            p.launch(&["policy", "policy", "value", "softmax", "sample", "log", "gather"]);
            p.item();
        }
        for _ in 0..2 {
            p.launch(&["permute", "sort"]);
            for _ in 0..2 {
                p.batch();
                p.launch(&["multi_tensor_apply_kernel norm", "clamp", "multi_tensor_apply_kernel adam"]);
                p.item();
            }
        }
        p.idle(i * 7919 % 3000);
    }
    let found = p.found().expect("a loop");
    assert_eq!((found.count, found.waits_per_iteration), (20, 12.0), "{found:?}");
    assert!(found.source.starts_with("repeating launches around an inner loop of "), "{found:?}");
}

/// A grid is refreshed, and read, in every 16th step; steps are what the optimizer does:
/// ```text
///  [rays march … mlp' encode' adam] ×16 [grid ×7 item] [rays …
///  [0------------------------------][1-…                [16----
/// ```
#[test]
fn a_grid_of_steps_is_no_iteration() {
    let mut p = Program::new();
    for i in 0..320 {
        p.launch(&["rays", "march", "encode", "mlp", "composite", "loss", "composite'", "mlp'", "encode'"]);
        p.launch(&["adam_step"]);
        if i % 16 == 15 {
            p.upload();
            p.launch(&["grid_sample", "grid_mlp", "grid_max", "grid_mean", "bitfield", "mip", "mip"]);
            p.item();
        }
    }
    assert_found(p.found().as_ref(), 320, 20_000, 1.0 / 16.0);
}

/// Every third step takes the tokens of each expert in turn, the others all at once:
/// ```text
///  [route experts.. loss backward adam item] [route all loss backward adam item] [route all …] [route experts.. …
///  [0--------------------------------------][1---------------------------------][2-----------][3-------------…
/// ```
#[test]
fn steps_of_two_kinds_are_iterations() {
    let mut p = Program::new();
    for i in 0..20 {
        p.upload();
        p.launch(&["gate", "softmax", "topk", "gather", "sort", "bincount"]);
        match i % 3 {
            0 => (0..3).for_each(|_| {
                p.launch(&["nonzero", "index"]);
                p.item();
            }),
            _ => p.launch(&["onehot", "cumsum", "place", "pad"]),
        }
        p.batch();
        p.launch(&["multi_tensor_apply_kernel", "multi_tensor_apply_kernel"]);
        p.item();
        p.launch(&["count", "mean"]);
        p.item();
    }
    assert_eq!(p.found().map(|found| found.count), Some(20), "{:?}", p.found());
}

/// Two networks against each other, each with an optimizer of its own: the iteration trains both.
/// ```text
///  [fake real judge judge' adam] [fake judge' fake' adam item] [fake real …
///  [0--------------------------------------------------------][1---------…
/// ```
#[test]
fn an_iteration_may_hold_two_optimizers() {
    let mut p = Program::new();
    for _ in 0..20 {
        p.batch();
        p.launch(&["fake", "fake norm", "judge", "judge norm", "judge'", "judge norm'", "hinge", "adam"]);
        p.launch(&["noise", "up", "up norm", "tanh", "judge", "judge'", "tanh'", "up norm'", "up'", "adam"]);
        p.item();
    }
    assert_found(p.found().as_ref(), 20, 60_000, 1.0);
}
