//! The quick reference: what waits, what to write instead, and the nine categories with the driver call of each
//! pattern. Follows the table of NVIDIA's guide to sync-free code, corrected where sources and captures disagree.

use super::Category;

/// One row: what waits and what to write instead.
#[derive(Clone, Copy, Debug)]
pub struct QuickRow {
    pub group: &'static str,
    /// The form that waits.
    pub waits: &'static str,
    /// The form that does not.
    pub instead: &'static str,
    /// Id of the entry that explains it.
    pub pattern: &'static str,
}

/// One of the nine categories of synchronising code.
#[derive(Clone, Copy, Debug)]
pub struct CategoryRow {
    /// 1 to 9.
    pub number: u8,
    pub category: Category,
    pub calls: &'static [Call],
}

/// A call and what it costs in driver terms.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub code: &'static str,
    /// The driver call that blocks, or "none".
    pub driver_api: &'static str,
    /// Id of the entry that explains it.
    pub pattern: &'static str,
}

const fn row(
    group: &'static str,
    waits: &'static str,
    instead: &'static str,
    pattern: &'static str,
) -> QuickRow {
    QuickRow { group, waits, instead, pattern }
}

const fn call(code: &'static str, driver_api: &'static str, pattern: &'static str) -> Call {
    Call { code, driver_api, pattern }
}

/// The rows, group by group.
pub const ROWS: &[QuickRow] = &[
    row("Transfers", ".cpu(), .to('cpu')", ".to('cpu', non_blocking=True), an event before reading", "D01"),
    row("Transfers", ".cuda(), .to('cuda')", ".to('cuda', non_blocking=True)", "C03"),
    row("Transfers", ".type(torch.LongTensor)", ".type(torch.long)", "D03"),
    row(
        "Creation",
        "torch.tensor(obj, device='cuda')",
        "CPU tensor, then .to('cuda', non_blocking=True)",
        "C01",
    ),
    row("Creation", "torch.tensor(0, device='cuda')", "torch.zeros((), device='cuda')", "C02"),
    row(
        "Creation",
        "torch.as_tensor(arr, device='cuda')",
        "CPU tensor, then .to('cuda', non_blocking=True)",
        "C01",
    ),
    row(
        "Creation",
        "torch.cuda.BoolTensor(list)",
        "torch.tensor(list), then .to('cuda', non_blocking=True)",
        "C01",
    ),
    row("Control flow", ".item() in a condition", "torch.where(), or move it out of the loop", "A01"),
    row("Control flow", "if gpu_tensor:", "torch.where()", "A03"),
    row("Control flow", "max(a, b) of Python", "torch.maximum(a, b)", "A05"),
    row("Control flow", "torch.is_nonzero(t)", "a comparison on the GPU", "A04"),
    row("Indexing", "x_gpu[idx_cpu], x_gpu[idx_list]", "x_gpu[idx_gpu]", "C07"),
    row("Indexing", "x_gpu[idx] = 0", "x_gpu.index_fill_(0, idx, 0), or a zero on the GPU", "C05"),
    row("Slicing", "x[i:j] with CUDA bounds", "x.index_select(0, torch.arange(n, device='cuda') + i)", "A08"),
    row("Dynamic shapes", "x_gpu[mask_gpu]", "torch.where(mask_gpu, x_gpu, 0)", "B02"),
    row("Dynamic shapes", "torch.nonzero(mask)", "three-argument torch.where(), or nonzero_static", "B01"),
    row("Dynamic shapes", "torch.masked_select(x, mask)", "torch.where(mask, x, 0)", "B02"),
    row("Dynamic shapes", "torch.unique(x)", "keep it out of the hot path", "B07"),
    row("Dynamic shapes", "torch.repeat_interleave(x, r)", "repeat_interleave(x, r, output_size=N)", "B10"),
];

const STREAM: &str = "cuStreamSynchronize";
const NONE: &str = "none";

/// The nine categories in their order.
pub const CATEGORIES: [CategoryRow; 9] = [
    CategoryRow {
        number: 1,
        category: Category::ExplicitSync,
        calls: &[
            call("torch.cuda.synchronize()", "cuCtxSynchronize", "F01"),
            call("stream.synchronize()", STREAM, "F02"),
            call("event.synchronize()", "cuEventSynchronize", "F03"),
            call("event.wait(), stream.wait_stream(s)", NONE, "F05"),
        ],
    },
    CategoryRow {
        number: 2,
        category: Category::DeviceMovement,
        calls: &[
            call(".cpu(), .to('cpu')", STREAM, "D01"),
            call(".cuda(), .to('cuda')", STREAM, "C03"),
            call(".type(torch.LongTensor)", STREAM, "D03"),
            call(".to('cuda', non_blocking=True)", NONE, "C13"),
        ],
    },
    CategoryRow {
        number: 3,
        category: Category::TensorCreation,
        calls: &[
            call("torch.tensor(obj, device='cuda')", STREAM, "C01"),
            call("torch.as_tensor(arr, device='cuda')", STREAM, "C01"),
            call("torch.cuda.BoolTensor(list)", STREAM, "C01"),
            call("torch.tensor(0).to('cuda')", STREAM, "C02"),
            call("torch.zeros(n, device='cuda')", NONE, "N01"),
        ],
    },
    CategoryRow {
        number: 4,
        category: Category::DataDependentControlFlow,
        calls: &[
            call("t.item()", STREAM, "A01"),
            call("if t:", STREAM, "A03"),
            call("torch.is_nonzero(t)", STREAM, "A04"),
            call("max(a, b) of Python", STREAM, "A05"),
            call("scaler.step(optimizer)", STREAM, "A20"),
        ],
    },
    CategoryRow {
        number: 5,
        category: Category::Indexing,
        calls: &[
            call("x[idx_cpu], x[idx_list]", STREAM, "C07"),
            call("x[idx] = 0", STREAM, "C05"),
            call("x[3] = 1.0", STREAM, "C06"),
            call("x[cuda_scalar]", STREAM, "A09"),
            call("x[idx_gpu], x[0]", NONE, "N02"),
        ],
    },
    CategoryRow {
        number: 6,
        category: Category::Slicing,
        calls: &[
            call("x[i:j] with CUDA bounds: 2 waits", STREAM, "A08"),
            call("x[i:j, i:j] with CUDA bounds: 4 waits", STREAM, "A08"),
        ],
    },
    CategoryRow {
        number: 7,
        category: Category::DynamicShapes,
        calls: &[
            call("t.nonzero(), torch.where(cond)", STREAM, "B01"),
            call("x[mask], torch.masked_select(x, mask)", STREAM, "B02"),
            call("x[mask] = tensor", STREAM, "B03"),
            call("x[torch.where(mask)] = -1: 2 waits", STREAM, "B05"),
            call("backward of x[mask]", STREAM, "B06"),
            call("torch.unique(x), unique_consecutive(x)", STREAM, "B07"),
            call("torch.repeat_interleave(x, r): 2 waits", STREAM, "B10"),
            call("x[mask] = -1, masked_fill_(mask, -1)", NONE, "B04"),
            call("torch.where(cond, x, 0)", NONE, "N03"),
        ],
    },
    CategoryRow {
        number: 8,
        category: Category::EmbeddingBackward,
        calls: &[call("backward of nn.Embedding, old CUB: 2 waits", STREAM, "B27")],
    },
    CategoryRow {
        number: 9,
        category: Category::Distributed,
        calls: &[
            call("dist.all_reduce(t), work.wait()", NONE, "H01"),
            call("dist.barrier()", STREAM, "H03"),
            call("DDP's run-time statistics", "cuEventSynchronize", "H05"),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{all, by_id};

    #[test]
    fn rows_point_to_entries() {
        assert_eq!(ROWS.len(), 19);
        for row in ROWS {
            assert!(by_id(row.pattern).is_some(), "{}", row.waits);
        }
    }

    #[test]
    fn categories_point_to_entries() {
        for (i, row) in CATEGORIES.iter().enumerate() {
            assert_eq!(usize::from(row.number), i + 1);
            assert!(all().any(|p| p.category == row.category), "category {} has no entry", row.number);
            for call in row.calls {
                let entry = by_id(call.pattern);
                assert!(entry.is_some(), "{}", call.code);
                // A wait is listed under its own category; what does not wait may be listed for contrast.
                assert!(
                    call.driver_api == NONE || entry.is_some_and(|p| p.category == row.category),
                    "{}",
                    call.code
                );
            }
        }
    }
}
