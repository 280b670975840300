//! B16 to B27: sizes in sparse, nested, ragged and segmented data, and in the backward of embeddings.

use super::{Category::*, Pattern, Strategy::*, fix, torch};
use crate::vocabulary::Kind::*;

const BASE: Pattern = Pattern {
    category: DynamicShapes,
    kind: Some(DynamicShape),
    why: "A size depends on the values, so the CPU must read it before it can allocate.",
    ..Pattern::BASE
};

pub(super) const PATTERNS: &[Pattern] = &[
    Pattern {
        id: "B16",
        title: "sparse tensors: coalesce(), to_sparse(), SparseAdam",
        triggers: &["x.coalesce()", "x.to_sparse()", "torch.optim.SparseAdam(params)"],
        op: "aten::_coalesce, aten::_to_sparse",
        trace: "thrust kernels with bare cudaStreamSynchronize calls, and the count of nonzero",
        why: "The number of stored elements depends on the values.",
        fix: fix(
            Offload,
            "use dense tensors, or a fixed number of elements",
            "emb = nn.Embedding(n, d, sparse=True)",
            "emb = nn.Embedding(n, d)\nopt = torch.optim.AdamW(emb.parameters(), fused=True)",
            "Dense gradients of a large table take memory and time.",
        ),
        sources: "PyTorch SparseCUDATensor.cu",
        ..BASE
    },
    Pattern {
        id: "B17",
        title: "torch.sparse_coo_tensor() without a size",
        triggers: &["torch.sparse_coo_tensor(i, v)"],
        op: "aten::sparse_coo_tensor",
        trace: "two pageable copies of 8 bytes per dimension, each with cudaStreamSynchronize",
        kind: None,
        why: "The size is taken from the largest indices, or the indices are checked against the size.",
        fix: fix(
            SyncFreeApi,
            "give size= and check_invariants=False",
            "s = torch.sparse_coo_tensor(i, v)",
            "s = torch.sparse_coo_tensor(i, v, size=(n, m), check_invariants=False)",
            "Indices out of range are no longer found.",
        ),
        sources: "PyTorch SparseTensor.cpp",
        ..BASE
    },
    Pattern {
        id: "B18",
        title: "sparse CSR construction and arithmetic",
        triggers: &["torch.sparse_csr_tensor(crow, col, v)", "x.to_sparse_csr()"],
        op: "aten::sparse_csr_tensor",
        trace: "copies of 4 or 8 bytes to pinned host memory, each with cudaStreamSynchronize",
        why: "The last row pointer, the number of elements, is read from the GPU.",
        fix: fix(
            Delay,
            "build the matrix once, outside the loop",
            "for x in batches:\n    y = dense.to_sparse_csr() @ x",
            "a = dense.to_sparse_csr()\nfor x in batches:\n    y = a @ x",
            "Only if the matrix does not change.",
        ),
        sources: "PyTorch SparseCsrTensorMath.cu",
        ..BASE
    },
    Pattern {
        id: "B19",
        title: "nested and jagged tensors",
        triggers: &["torch.nested.nested_tensor(tensors)", "torch.nested.nested_tensor_from_jagged(v, offsets)"],
        op: "aten::_nested_*",
        trace: "many copies of 8 bytes to pinned host memory, each with cudaStreamSynchronize",
        why: "Offsets and the longest sequence are read to the CPU to choose kernels and sizes.",
        fix: fix(
            SyncFreeApi,
            "pass min_seqlen and max_seqlen",
            "nt = torch.nested.nested_tensor_from_jagged(v, offsets)",
            "nt = torch.nested.nested_tensor_from_jagged(v, offsets, min_seqlen=1, max_seqlen=longest)",
            "The values must be true bounds of the batch.",
        ),
        sources: "PyTorch NestedTensorTransformerFunctions.cpp",
        ..BASE
    },
    Pattern {
        id: "B20",
        category: DeviceMovement,
        title: "pack_padded_sequence()",
        triggers: &["pack_padded_sequence(x, lengths)"],
        op: "torch.nn.utils.rnn.pack_padded_sequence",
        trace: "an upload of 8 bytes per sequence from pageable memory with cudaStreamSynchronize (enforce_sorted=False)",
        kind: Some(Upload),
        why: "Lengths must lie on the CPU; with enforce_sorted=False their order is uploaded with a wait. \
              A `.cpu()` of the lengths on your own line is a wait of its own.",
        fix: fix(
            SyncFreeApi,
            "keep lengths on the CPU, sorted by the data loader",
            "packed = pack_padded_sequence(x, lengths.cpu(), enforce_sorted=False)",
            "# the collate function sorts the batch and keeps lengths on the CPU\npacked = pack_padded_sequence(x, lengths_cpu)",
            "Sorting changes the order of the batch.",
        ),
        sources: "torch/nn/utils/rnn.py",
        library: torch(&[("torch/nn/utils/rnn.py", "pack_padded_sequence")]),
        ..BASE
    },
];
