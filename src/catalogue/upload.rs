//! C01 to C13: data on its way to the GPU. The CPU receives nothing, so none of these waits is needed as such.

use super::{Category::*, Pattern, Strategy::*, fix, torch};
use crate::vocabulary::Kind::*;

const BASE: Pattern = Pattern {
    category: DeviceMovement,
    op: "aten::copy_",
    trace: "a copy from pageable host memory to the GPU, then cudaStreamSynchronize",
    kind: Some(Upload),
    why: "The copy is followed by an unconditional wait for the stream, and with it for all work queued before.",
    ..Pattern::BASE
};

pub(super) const PATTERNS: &[Pattern] = &[
    Pattern {
        id: "C01",
        category: TensorCreation,
        title: "a tensor made from Python or NumPy data on the GPU",
        triggers: &[
            "torch.tensor(obj, device='cuda')",
            "torch.as_tensor(arr, device='cuda')",
            "x.new_tensor(obj)",
            "torch.cuda.FloatTensor(list)",
            "torch.cuda.BoolTensor(list)",
            "torch.from_numpy(a).cuda()",
        ],
        op: "torch.tensor -> aten::to",
        why: "The tensor is built on the CPU and then uploaded with a blocking copy.",
        fix: fix(
            NonBlocking,
            "build on the CPU, then .to('cuda', non_blocking=True)",
            "idx = torch.tensor(ids, device='cuda')",
            "idx = torch.tensor(ids, pin_memory=True).to('cuda', non_blocking=True)",
            "Constants are better made once and kept. From pageable memory a large copy can still block inside the call.",
        ),
        sources: "PyTorch tensor_new.cpp; pytorch#120996, sglang#35106; seen in captures",
        ..BASE
    },
    Pattern {
        id: "C02",
        category: TensorCreation,
        title: "torch.tensor(number, device='cuda')",
        triggers: &["torch.tensor(3.14, device='cuda')", "torch.tensor(0, device='cuda')", "torch.tensor(0).to('cuda')"],
        op: "torch.tensor -> aten::to",
        trace: "an upload of 4 or 8 bytes from pageable memory, then cudaStreamSynchronize",
        fix: fix(
            SyncFreeApi,
            "fill on the GPU: torch.full((), value, device='cuda')",
            "scale = torch.tensor(3.14, device='cuda')",
            "scale = torch.full((), 3.14, device='cuda')",
            "Give dtype= where the default for the number is not the one you want.",
        ),
        sources: "pytorch#120996",
        ..BASE
    },
    Pattern {
        id: "C03",
        title: ".cuda(), .to('cuda') of a CPU tensor",
        triggers: &[".cuda()", ".to('cuda')", ".to(device)"],
        op: "aten::to, aten::_to_copy",
        trace: "a copy from pageable (or pinned) host memory to the GPU, then cudaStreamSynchronize",
        fix: fix(
            NonBlocking,
            "copy with non_blocking=True from pinned memory",
            "loader = DataLoader(ds, batch_size=64)\nfor x, y in loader:\n    x, y = x.cuda(), y.cuda()",
            "loader = DataLoader(ds, batch_size=64, pin_memory=True)\nfor x, y in loader:\n    x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)",
            "Do not overwrite the CPU tensor before the copy has run. Pin in the loader: x.pin_memory() in the hot loop can cost more than it saves.",
        ),
        sources: "PyTorch Copy.cu; seen in captures",
        ..BASE
    },
];
