//! B01 to B15: outputs whose size only the GPU knows.

use super::{Category::*, Pattern, Strategy::*};
use crate::vocabulary::Kind::*;

const COUNT: &str = "a cub reduction, a copy of 4 bytes to pinned host memory and cudaStreamSynchronize, then selection and write kernels";
const BASE: Pattern = Pattern {
    category: DynamicShapes,
    op: "aten::nonzero",
    trace: COUNT,
    kind: Some(DynamicShape),
    why: "The size of the result depends on the values, so the CPU must read the count before it can allocate.",
    ..Pattern::BASE
};

pub(super) const PATTERNS: &[Pattern] = &[
    BASE.entry("B01", "nonzero(), argwhere(), one-argument where()")
        .triggers(&["t.nonzero()", "torch.nonzero(t)", "torch.argwhere(t)", "torch.where(cond)"])
        .fix(SyncFreeApi, "torch.nonzero_static(size=N), and mask the filler")
        .before("idx = mask.nonzero().squeeze(1)\ntotal = f(x)[idx].sum()")
        .after("idx = torch.nonzero_static(mask, size=n_max, fill_value=-1).squeeze(1)\nkept = (idx >= 0).unsqueeze(1)  # -1 fills up to n_max\ntotal = torch.where(kept, f(x)[idx], 0).sum()")
        .mind("n_max must be large enough: entries beyond it are dropped without a word. nonzero_static runs on CUDA since about 2.6. f(x) has two dimensions here: kept gets an unsqueeze for each more, and none for one.")
        .or(&["three-argument torch.where keeps the full shape"])
        .versions("the count is copied to pinned memory since about 2.6, to pageable memory before")
        .sources("PyTorch Nonzero.cu; pytorch#134712, pytorch#131256"),
    BASE.entry("B02", "x[mask], torch.masked_select()")
        .triggers(&["x[mask]", "torch.masked_select(x, mask)", "x[x > 0]"])
        .op("aten::index, aten::masked_select")
        .fix(SyncFreeApi, "keep the full shape: torch.where")
        .before("mean = loss[mask].mean()")
        .after("mean = torch.where(mask, loss, 0).sum() / mask.sum()")
        .mind("An empty mask divides by zero: use mask.sum().clamp(min=1) where that can happen. A mask of fewer dimensions than x becomes mask[..., None].expand_as(x) first, with a None for each. In half precision the sum overflows: sum(dtype=torch.float32).")
        .or(&["weigh with the mask: (loss * mask).sum() / mask.sum(), where no masked value is NaN or infinite"])
        .sources("PyTorch IndexingUtils.h; test_sync_warning"),
    BASE.entry("B31", "x[mask] += value")
        .triggers(&["x[mask] += w", "x[mask] *= 2"])
        .op("aten::index, aten::index_put_")
        .why("The mask is turned into index lists twice, to read and to write, whose length must be known, although the shape of x does not change.")
        .fix(SyncFreeApi, "use torch.where(mask, x + value, x)")
        .before("x[mask] += w")
        .after("x = torch.where(mask.unsqueeze(-1), x + w, x)  # mask: one dimension less than x")
        .mind("where makes a new tensor: other names of x keep the old one. The mask gets an unsqueeze(-1) for each dimension that it lacks. NaN or infinity in places left out can reach the gradient. A wider dtype of w widens x: cast it first.")
        .sources("PyTorch TensorAdvancedIndexing.cpp"),
    BASE.entry("B32", "x[mask], of which the rows themselves go on")
        .triggers(&["rows = x[mask]", "return x[mask]"])
        .op("aten::index, aten::masked_select")
        .fix(Leave, "needed, unless what follows can take a mask for the rows")
        .or(&[
            "what follows can take a mask: keep the full shape with torch.where",
            "a bound of the count is known: torch.nonzero_static(size=N), and mask the filler",
        ])
        .sources("PyTorch IndexingUtils.h"),
    BASE.entry("B03", "x[mask] = tensor")
        .triggers(&["x[mask] = t"])
        .op("aten::index_put_")
        .why("The mask is turned into index lists, whose length must be known, although the shape of x does not change.")
        .fix(SyncFreeApi, "use torch.where(mask, t, x)")
        .before("x[mask] = t[mask]")
        .after("x = torch.where(mask, t, x)")
        .mind("where makes a new tensor: other names of x keep the old one. A mask of fewer dimensions than x becomes mask[..., None] first, with a None for each.")
        .or(&["values packed in a row: x.masked_scatter_(mask, src) works in place"])
        .sources("PyTorch TensorAdvancedIndexing.cpp; test_sync_warning"),
    BASE.entry("B04", "x[mask] = number")
        .category(NotAWait)
        .triggers(&["x[mask] = 0"])
        .op("aten::masked_fill_")
        .trace("a masked_fill kernel, no wait")
        .by_use()
        .why("A number as the value is dispatched to masked_fill_, which needs no count.")
        .fix(Leave, "nothing to do: does not wait")
        .driver_api("none")
        .sources("PyTorch TensorAdvancedIndexingUtils.h; seen in captures"),
    BASE.entry("B05", "x[torch.where(mask)] = number")
        .triggers(&["x[torch.where(m)] = -1"])
        .op("aten::nonzero, aten::index_put_")
        .trace("the count of nonzero (4 bytes to the host) and an upload of the value: two waits")
        .why("The mask is listed first, which needs the count, and then the number is uploaded as a tensor.")
        .fix(SyncFreeApi, "use x.masked_fill_(mask, value)")
        .before("x[torch.where(mask)] = -1")
        .after("x.masked_fill_(mask, -1)")
        .mind("mask is bool and of x's shape: one of fewer dimensions becomes mask[..., None], with a None for each.")
        .versions("the upload is gone since 2.15, the count is not")
        .sources("NVIDIA sync-free guide, category 7"),
    BASE.entry("B06", "backward of x[mask]")
        .triggers(&["x[mask].sum().backward()"])
        .op("aten::index_put_ in index_backward")
        .trace("the count of nonzero (4 bytes to the host) on an autograd thread")
        .why("The gradient is scattered back through the same mask, so the mask is counted a second time.")
        .fix(SyncFreeApi, "mask with torch.where in the forward pass")
        .before("loss = (x[mask] ** 2).sum()\nloss.backward()")
        .after("loss = torch.where(mask, x, 0).square().sum()\nloss.backward()")
        .mind("NaN or infinity in masked places can still reach the gradient: mask the input of the bad operation. A mask of fewer dimensions than x becomes mask[..., None], with a None for each.")
        .sources("NVIDIA sync-free guide, category 7"),
    BASE.entry("B07", "torch.unique(), unique_consecutive()")
        .triggers(&["torch.unique(x)", "torch.unique_consecutive(x)"])
        .op("aten::_unique2, aten::unique_consecutive")
        .trace("radix sort and selection kernels, a copy of 8 bytes to pinned host memory, then cudaStreamSynchronize")
        .fix(SyncFreeApi, "mark the classes that are present")
        .before("classes = torch.unique(labels)")
        .after("present = torch.zeros(C, dtype=torch.bool, device='cuda')\npresent.index_fill_(0, labels, True)")
        .mind("present is a fixed-size mask of C classes, not a list. labels are int64, of one dimension, in 0..C-1. Runs (unique_consecutive) have no such form.")
        .or(&["compute it in the data loader"])
        .sources("PyTorch UniqueCub.cu; pytorch#107132"),
    BASE.entry("B08", "torch.unique() of a bool tensor")
        .triggers(&["torch.unique(mask)"])
        .op("aten::_unique2")
        .trace("a unique_bool kernel, a copy of 4 bytes to pageable host memory, then cudaStreamSynchronize")
        .fix(SyncFreeApi, "use mask.any() and (~mask).any()")
        .before("values = torch.unique(mask)")
        .after("has_true, has_false = mask.any(), (~mask).any()")
        .sources("PyTorch UniqueCub.cu"),
    BASE.entry("B09", "torch.unique(dim=...)")
        .triggers(&["torch.unique(x, dim=0)"])
        .op("aten::unique_dim")
        .trace("thrust sort and unique kernels with several bare cudaStreamSynchronize calls between them")
        .why("The thrust algorithms behind it wait for their own results, and the count sizes the output.")
        .fix(Offload, "deduplicate in the data loader")
        .before("rows = torch.unique(edges, dim=0)")
        .after("edges_cpu = torch.unique(edges_cpu, dim=0)  # in the dataset\nrows = edges_cpu.pin_memory().to('cuda', non_blocking=True)")
        .sources("PyTorch Unique.cu"),
    BASE.entry("B10", "repeat_interleave() with repeats on the GPU")
        .triggers(&["torch.repeat_interleave(x, repeats)", "x.repeat_interleave(repeats)"])
        .op("aten::repeat_interleave")
        .trace("a scan, a copy of 8 bytes and cudaStreamSynchronize, a reduction, a copy of 1 byte (8 since 2.15) and cudaStreamSynchronize: two waits")
        .why("The sum of the repeats is the output's length, and their sign is checked as well.")
        .fix(SyncFreeApi, "pass output_size=N when the total is known")
        .before("y = torch.repeat_interleave(x, repeats)")
        .after("y = torch.repeat_interleave(x, repeats, output_size=total)")
        .mind("total must be the exact sum of repeats; of one number for all, that number times the rows.")
        .sources("PyTorch Repeat.h; test_sync_warning"),
    BASE.entry("B11", "F.one_hot() without num_classes")
        .triggers(&["F.one_hot(idx)", "torch.nn.functional.one_hot(idx)"])
        .op("aten::one_hot")
        .trace("a reduction, a copy of 8 bytes to pinned host memory and cudaStreamSynchronize, then fill and scatter kernels")
        .why("The number of classes is taken from the largest index.")
        .fix(SyncFreeApi, "pass num_classes=C")
        .before("y = F.one_hot(labels)")
        .after("y = F.one_hot(labels, num_classes=10)")
        .mind("An index out of range is then caught by a device-side assertion.")
        .sources("PyTorch Onehot.cpp; test_sync_warning"),
    BASE.entry("B12", "torch.bincount()")
        .triggers(&["torch.bincount(x)", "x.bincount()"])
        .op("aten::bincount")
        .trace("a reduction and a pageable copy of one value, a reduction and a pinned copy of one value, each with cudaStreamSynchronize, then a histogram kernel")
        .why("The smallest value is checked and the largest sizes the result; minlength does not avoid either.")
        .fix(SyncFreeApi, "use scatter_add_ into a fixed number of bins")
        .before("hist = torch.bincount(labels, minlength=C)")
        .after("ones = torch.ones_like(labels)\nhist = torch.zeros(C, dtype=labels.dtype, device='cuda').scatter_add_(0, labels, ones)")
        .mind("Values must lie in 0..C-1, as int64.")
        .sources("PyTorch SummaryOps.cu; torchmetrics#1413"),
    BASE.entry("B13", "torch.histc() without a range")
        .triggers(&["torch.histc(x, bins)"])
        .op("aten::histc")
        .trace("two reductions, each with a pageable copy of one value and cudaStreamSynchronize")
        .kind(CpuCompute)
        .why("The range of the data is read to the CPU to compute the bin edges.")
        .fix(SyncFreeApi, "pass min= and max=")
        .before("h = torch.histc(x, bins=100)")
        .after("h = torch.histc(x, bins=100, min=0.0, max=1.0)")
        .mind("Values outside the range are not counted.")
        .sources("PyTorch SummaryOps.cu"),
    BASE.entry("B14", "torch.combinations()")
        .triggers(&["torch.combinations(t)"])
        .op("aten::combinations -> aten::masked_select")
        .kind(RoundTrip)
        .why("The size is known beforehand, but the implementation selects with a mask and counts it.")
        .fix(SyncFreeApi, "gather pairs with torch.triu_indices")
        .before("pairs = torch.combinations(t)")
        .after("i, j = torch.triu_indices(len(t), len(t), offset=1, device='cuda')\npairs = torch.stack([t[i], t[j]], dim=1)")
        .mind("For pairs (r=2) only.")
        .sources("PyTorch Itertools.cpp"),
    BASE.entry("B15", "torch.isin() with many test elements")
        .triggers(&["torch.isin(a, b)"])
        .op("aten::isin -> aten::_unique2")
        .trace("sort and selection kernels with a copy of 8 bytes and cudaStreamSynchronize, twice")
        .kind(RoundTrip)
        .why("The result has a fixed shape, but the sorting implementation removes duplicates first and counts them.")
        .fix(SyncFreeApi, "compare by broadcasting")
        .before("m = torch.isin(tokens, stop_ids)")
        .after("m = (tokens.unsqueeze(-1) == stop_ids).any(-1)")
        .mind("Broadcasting takes memory for every pair. stop_ids has one dimension: flatten() others.")
        .sources("PyTorch TensorCompare.cpp"),
];
