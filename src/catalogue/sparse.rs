//! B16 to B29: sizes in sparse, nested, ragged and segmented data, in the backward of embeddings, in adaptive softmax.

use super::{
    Category::{self, *},
    Pattern,
    Strategy::*,
};
use crate::vocabulary::Kind::{self, *};

const BASE: Pattern = Pattern {
    category: DynamicShapes,
    kind: Some(DynamicShape),
    why: "A size depends on the values, so the CPU must read it before it can allocate.",
    ..Pattern::BASE
};

pub(super) const PATTERNS: &[Pattern] = &[
    BASE.entry("B16", "sparse tensors: coalesce(), to_sparse(), SparseAdam")
        .triggers(&["x.coalesce()", "x.to_sparse()", "torch.optim.SparseAdam(params)"])
        .op("aten::_coalesce, aten::_to_sparse")
        .trace("thrust kernels with bare cudaStreamSynchronize calls, and the count of nonzero")
        .why("The number of stored elements depends on the values.")
        .fix(Offload, "coalesce once and keep it; gradients: make them dense")
        .before("emb = nn.Embedding(n, d, sparse=True).to('cuda')  # once\nopt = torch.optim.SparseAdam(emb.parameters())  # once\nemb(idx).sum().backward()\nopt.step()")
        .after("emb = nn.Embedding(n, d).to('cuda')  # once\nopt = torch.optim.AdamW(emb.parameters(), fused=True)  # once\nemb(idx).sum().backward()\nopt.step()")
        .mind("Dense gradients of a large table take memory and time. AdamW moves every row in each step, SparseAdam those of the batch only.")
        .sources("PyTorch SparseCUDATensor.cu"),
    BASE.entry("B17", "torch.sparse_coo_tensor() without a size")
        .triggers(&["torch.sparse_coo_tensor(i, v)"])
        .op("aten::sparse_coo_tensor")
        .trace("two pageable copies of 8 bytes per dimension, each with cudaStreamSynchronize")
        .by_use()
        .why("The size is taken from the largest indices, or the indices are checked against the size.")
        .fix(SyncFreeApi, "give size= and check_invariants=False")
        .before("s = torch.sparse_coo_tensor(i, v)")
        .after("s = torch.sparse_coo_tensor(i, v, size=(n, m), check_invariants=False)")
        .mind("Indices out of range are no longer found.")
        .sources("PyTorch SparseTensor.cpp"),
    BASE.entry("B18", "sparse CSR construction and arithmetic")
        .triggers(&["torch.sparse_csr_tensor(crow, col, v)", "x.to_sparse_csr()"])
        .op("aten::sparse_csr_tensor")
        .trace("copies of 4 or 8 bytes to pinned host memory, each with cudaStreamSynchronize")
        .why("The last row pointer, the number of elements, is read from the GPU.")
        .fix(Delay, "build the matrix once, outside the loop")
        .before("for x in batches:\n    y = dense.to_sparse_csr() @ x")
        .after("a = dense.to_sparse_csr()\nfor x in batches:\n    y = a @ x")
        .mind("Only if the matrix does not change.")
        .sources("PyTorch SparseCsrTensorMath.cu"),
    BASE.entry("B19", "nested and jagged tensors")
        .triggers(&[
            "torch.nested.nested_tensor(tensors)",
            "torch.nested.nested_tensor_from_jagged(v, offsets)",
        ])
        .op("aten::_nested_*")
        .trace("many copies of 8 bytes to pinned host memory, each with cudaStreamSynchronize")
        .why("Offsets and the longest sequence are read to the CPU to choose kernels and sizes.")
        .fix(SyncFreeApi, "pass min_seqlen and max_seqlen")
        .before("nt = torch.nested.nested_tensor_from_jagged(v, offsets)")
        .after("nt = torch.nested.nested_tensor_from_jagged(v, offsets, min_seqlen=1, max_seqlen=longest)")
        .mind("The values must be true bounds of the batch.")
        .sources("PyTorch NestedTensorTransformerFunctions.cpp"),
    BASE.entry("B20", "pack_padded_sequence()")
        .category(DeviceMovement)
        .triggers(&["pack_padded_sequence(x, lengths)"])
        .op("torch.nn.utils.rnn.pack_padded_sequence")
        .trace("an upload of 8 bytes per sequence from pageable memory with cudaStreamSynchronize (enforce_sorted=False)")
        .kind(Upload)
        .why("Lengths must lie on the CPU; with enforce_sorted=False their order is uploaded with a wait. \
              A `.cpu()` of the lengths on your own line is a wait of its own.")
        .fix(SyncFreeApi, "keep lengths on the CPU, sorted by the data loader")
        .before("packed = pack_padded_sequence(x, lengths.cpu(), enforce_sorted=False)")
        .after("packed = pack_padded_sequence(x, lengths_cpu)  # sorted by the collate function")
        .mind("Sorting changes the order of the batch.")
        .sources("torch/nn/utils/rnn.py")
        .torch(&[("torch/nn/utils/rnn.py", "pack_padded_sequence")]),
    BASE.entry("B28", "pad_packed_sequence()")
        .category(DeviceMovement)
        .triggers(&["pad_packed_sequence(packed)"])
        .op("torch.nn.utils.rnn.pad_packed_sequence")
        .trace("a copy of 8 bytes per sequence to pageable host memory, then cudaStreamSynchronize (enforce_sorted=False)")
        .kind(HostKnown)
        .why("pack_padded_sequence made the order of the sequences on the CPU and uploaded it; here it comes back, to sort the lengths, which never left the CPU.")
        .fix(SyncFreeApi, "sort the batch in the data loader")
        .before("packed = pack_padded_sequence(x, lengths, enforce_sorted=False)\nout, _ = pad_packed_sequence(rnn(packed)[0])")
        .after("# the collate function sorts the batch by length\npacked = pack_padded_sequence(x, lengths)\nout, _ = pad_packed_sequence(rnn(packed)[0])")
        .mind("Sorting changes the order of the batch.")
        .sources("torch/nn/utils/rnn.py; seen in captures")
        .torch(&[("torch/nn/utils/rnn.py", "pad_packed_sequence")]),
    BASE.entry("B21", "F.ctc_loss() with CUDA lengths")
        .category(DeviceMovement)
        .triggers(&["F.ctc_loss(log_probs, targets, input_lengths, target_lengths)"])
        .op("aten::_ctc_loss")
        .trace("two pageable copies of the lengths to the host and three uploads, each with cudaStreamSynchronize")
        .kind(RoundTrip)
        .why("The implementation loops over the lengths on the CPU and uploads what it derives from them.")
        .fix(SyncFreeApi, "pass the lengths as CPU tensors")
        .before("loss = F.ctc_loss(lp, targets, in_len.cuda(), tgt_len.cuda())")
        .after("loss = F.ctc_loss(lp, targets, in_len, tgt_len)  # lengths on the CPU")
        .mind("The small uploads stay.")
        .sources("PyTorch LossCTC.cpp, LossCTC.cu"),
    BASE.entry("B22", "cuDNN's eligibility check for ctc_loss")
        .category(Category::ErrorCheck)
        .triggers(&["F.ctc_loss(log_probs, int32_targets, in_len, tgt_len, blank=0)"])
        .op("aten::_use_cudnn_ctc_loss")
        .trace("up to two pageable copies of the lengths per sample, inside a loop")
        .kind(Kind::ErrorCheck)
        .why("Whether cuDNN can be used depends on the lengths, and both tensors are copied again for each sample.")
        .fix(SyncFreeApi, "pass the lengths as CPU tensors")
        .before("loss = F.ctc_loss(lp, targets.int(), in_len.cuda(), tgt_len.cuda())")
        .after("loss = F.ctc_loss(lp, targets.int(), in_len, tgt_len)  # from the data loader")
        .mind("Lengths that are on the GPU already need .cpu(), which waits as well.")
        .sources("PyTorch cudnn LossCTC.cpp"),
    BASE.entry("B23", "torch.matrix_exp()")
        .category(DataDependentControlFlow)
        .triggers(&["torch.matrix_exp(a)", "torch.linalg.matrix_exp(a)"])
        .op("aten::linalg_matrix_exp")
        .trace("a pageable copy of the norms, then cudaStreamSynchronize")
        .kind(ControlFlow)
        .why("The norm of each matrix selects the degree of the approximation on the CPU.")
        .fix(SyncFreeApi, "write a series of fixed degree")
        .before("y = torch.matrix_exp(a)")
        .after("eye = torch.eye(n, device='cuda')  # once\ny = eye + a @ (eye + a @ (eye + a / 3) / 2)")
        .mind("A fixed degree is only right for matrices of small norm.")
        .or(&["compute it less often"])
        .sources("PyTorch LinearAlgebra.cpp"),
    BASE.entry("B24", "split by lengths that lie on the GPU")
        .triggers(&["torch.split(x, lengths.tolist())", "torch.tensor_split(x, cuda_idx)"])
        .op("aten::split_with_sizes after tolist")
        .trace("a pageable copy of 8 bytes per length, then cudaStreamSynchronize")
        .why("Each piece is a tensor of its own, so its size must be a Python int.")
        .fix(SyncFreeApi, "carry the lengths as Python ints from the loader")
        .before("parts = torch.split(x, lengths.tolist())")
        .after("parts = torch.split(x, batch.lengths)  # a list of ints")
        .sources("PyTorch tensor_list.cpp"),
    BASE.entry("B25", "torch.mode() over long rows")
        .triggers(&["torch.mode(x)", "x.mode()"])
        .op("aten::mode")
        .trace("per row: thrust kernels with cudaStreamSynchronize, and two small uploads with cudaStreamSynchronize")
        .kind(CpuCompute)
        .why("Each row is reduced by thrust and its result assembled on the CPU.")
        .fix(SyncFreeApi, "count with scatter_add_ and take argmax")
        .before("m = x.mode(dim=1).values")
        .after("counts = torch.zeros(len(x), C, device='cuda')\nm = counts.scatter_add_(1, x, torch.ones_like(x, dtype=counts.dtype)).argmax(1)")
        .mind("For integer values in 0..C-1; ties may go to another value.")
        .sources("PyTorch TensorModeKernel.cu"),
    BASE.entry("B26", "torch.segment_reduce()")
        .category(Category::ErrorCheck)
        .triggers(&["torch.segment_reduce(x, 'sum', lengths=lengths)"])
        .op("aten::segment_reduce")
        .trace("copies of 8 bytes and 1 byte to pinned host memory, each with cudaStreamSynchronize")
        .kind(Kind::ErrorCheck)
        .why("The lengths are checked: their sum and their sign.")
        .fix(Remove, "pass unsafe=True")
        .before("y = torch.segment_reduce(x, 'sum', lengths=lengths)")
        .after("y = torch.segment_reduce(x, 'sum', lengths=lengths, unsafe=True)")
        .mind("Wrong lengths then read outside the tensor.")
        .sources("PyTorch SegmentReduce.cpp"),
    BASE.entry("B27", "backward of nn.Embedding with many indices")
        .category(EmbeddingBackward)
        .triggers(&["nn.Embedding(n, d)(idx).sum().backward()"])
        .op("aten::embedding_dense_backward")
        .trace("thrust unique_by_key on an autograd thread with two bare cudaStreamSynchronize calls")
        .why("With more than 3072 indices and an old CUB, thrust counts the distinct indices and waits for the count.")
        .fix(SyncFreeApi, "use a PyTorch built with CUB 1.16 or later")
        .before("# PyTorch built with CUDA 11.5 or older\nout = nn.Embedding(n, d).cuda()(idx)")
        .after("# PyTorch built with CUDA 11.6 or later\nout = nn.Embedding(n, d).cuda()(idx)")
        .versions("builds with CUB before 1.16 only")
        .sources("PyTorch EmbeddingBackwardKernel.cu; NVIDIA sync-free guide, category 8"),
    BASE.entry("B29", "nn.AdaptiveLogSoftmaxWithLoss")
        .triggers(&["nn.AdaptiveLogSoftmaxWithLoss(d, n, cutoffs)(x, y)", "adaptive.predict(x)"])
        .op("torch.nn.AdaptiveLogSoftmaxWithLoss.forward -> aten::nonzero")
        .trace("for each cluster nonzero's kernels, a copy of its count to pinned host memory and cudaStreamSynchronize")
        .why("Each cluster of classes takes its own rows of the batch, so the CPU reads their number twice a cluster.")
        .fix(SyncFreeApi, "take the loss from log_prob(), where memory allows")
        .before("loss = adaptive(x, y).loss")
        .after("loss = F.nll_loss(adaptive.log_prob(x), y)")
        .mind("log_prob() computes all n classes for every row, which the module is there to avoid: measure it. For predict(x), adaptive.log_prob(x).argmax(1) gives the same classes.")
        .sources("torch/nn/modules/adaptive.py of 2.11: 6 waits with two cutoffs, none by log_prob(), equal loss and gradient")
        .torch(&[("torch/nn/modules/adaptive.py", "forward predict")]),
];
