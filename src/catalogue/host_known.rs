//! A36, B30, D10: reads of what the host had before it was uploaded; A39, A40: reads that bring nothing new.

use super::{Category::*, Pattern, PatternId::*, Reads, Strategy::*};
use crate::vocabulary::Kind::*;

const BASE: Pattern = Pattern::BASE.kind(HostKnown);

pub(super) const PATTERNS: &[Pattern] = &[
    BASE.reads(Reads::Number).entry(A36, "a number computed on the GPU from what the host uploaded")
        .triggers(&["lengths.max().item()", "int(torch.tensor(sizes).cuda().sum())"])
        .op("aten::_local_scalar_dense")
        .trace("an H2D copy, a reduction of it, a copy of one value to pinned host memory and cudaStreamSynchronize")
        .why("The host made the data and sent it to the GPU: it can compute the number itself, before the H2D copy.")
        .fix(Remove, "compute it from the host's data before the H2D copy")
        .before("lens = torch.tensor(sizes, device='cuda')\nlongest = lens.max().item()")
        .after("longest = max(sizes)\nlens = torch.tensor(sizes).pin_memory().to('cuda', non_blocking=True)")
        .mind("Only while nothing changes the tensor on the GPU in between.")
        .sources("vllm#22792, sglang#4932; diffusers#13461"),
    BASE.reads(Reads::Number).entry(A39, "a value that another line reads anyway")
        .triggers(&["if not torch.isfinite(loss): raise RuntimeError()", "total = int(offsets[-1])"])
        .op("aten::is_nonzero, aten::_local_scalar_dense")
        .trace("two copies of one value each, of the same tensor or of what is computed from it, with a synchronisation each")
        .why("The program reads the value a second time, for the log or as a size: one wait would do for both.")
        .fix(Coalesce, "read it once, and test or use that number")
        .before("if not torch.isfinite(loss):\n    raise RuntimeError('diverged')\nhistory.append(loss.item())")
        .after("value = loss.item()\nif not math.isfinite(value):\n    raise RuntimeError('diverged')\nhistory.append(value)")
        .mind("Where the other read comes later or only now and then, so does the check.")
        .sources("torchtitan#3873, torchtitan#2440, detectron2 2984c56c"),
    BASE.reads(Reads::Number).entry(A40, "a test that a constant of the program settles")
        .triggers(&["if torch.isnan(x).any() and DEBUG:"])
        .op("aten::is_nonzero")
        .trace("a copy of 1 byte and cudaStreamSynchronize; nothing follows from it")
        .why("Python asks the operands from left to right: the GPU first, although the constant alone decides.")
        .fix(Remove, "put the constant first")
        .before("DEBUG = False\nif torch.isnan(x).any() and DEBUG:\n    print('nan')")
        .after("DEBUG = False\nif DEBUG and torch.isnan(x).any():\n    print('nan')")
        .sources("seen in captures"),
    BASE.entry(B30, "an output size that follows from what the host uploaded")
        .category(DynamicShapes)
        .triggers(&[
            "torch.repeat_interleave(x, torch.tensor(counts).cuda())",
            "x[torch.tensor(keep).cuda()]",
        ])
        .op("aten::repeat_interleave, aten::nonzero")
        .trace("an H2D copy, counting kernels, a copy of 4 or 8 bytes and cudaStreamSynchronize")
        .why("The size depends on values that the host made: it can count them itself.")
        .fix(SyncFreeApi, "count on the host: output_size=, or indices for a mask")
        .before("rep = torch.tensor(counts, pin_memory=True).to('cuda', non_blocking=True)\ny = torch.repeat_interleave(x, rep)")
        .after("rep = torch.tensor(counts, pin_memory=True).to('cuda', non_blocking=True)\ny = torch.repeat_interleave(x, rep, output_size=sum(counts))")
        .mind("One count for all rows: output_size is that times the rows.")
        .or(&["a mask of the host: make it a list of indices before the H2D copy"])
        .sources("torchtitan#2440, torchtitan#3274"),
    BASE.reads(Reads::Tensors).entry(D10, "reading back what the host uploaded")
        .category(DeviceMovement)
        .triggers(&["torch.tensor(lengths).cuda().cpu()", "batch['lens'].cuda().tolist()"])
        .op("aten::to")
        .trace("an H2D copy, later a copy of as many bytes to the host and cudaStreamSynchronize")
        .why("The host had the data before it sent them: the copy back brings nothing new.")
        .fix(Remove, "keep the host's copy and read that")
        .before("lens = batch.lens.cuda()\npacked = pack_padded_sequence(x, lens.cpu())")
        .after("lens_host = batch.lens\nlens = lens_host.cuda(non_blocking=True)\npacked = pack_padded_sequence(x, lens_host)")
        .mind("Only while nothing changes the tensor on the GPU in between.")
        .sources("sglang#7563, vllm#24334"),
];
