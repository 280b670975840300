//! C01 to C22: data on its way to the GPU. The CPU receives nothing, so none of these waits is needed as such.

use super::{Case, Category::*, Pattern, PatternId::*, Strategy::*};
use crate::vocabulary::Kind::*;

const BASE: Pattern = Pattern::BASE
    .kind(Upload)
    .category(DeviceMovement)
    .op("aten::copy_")
    .trace("a copy from pageable host memory to the GPU, then cudaStreamSynchronize")
    .why("The copy is followed by an unconditional wait for the stream, and with it for all work queued before.");

/// What is left to do about what takes that argument.
const PINNED: &str = "pass non_blocking=True: the memory is pinned already";

pub(super) const PATTERNS: &[Pattern] = &[
    BASE.entry(C01, "a tensor made from Python or NumPy data on the GPU")
        .instead(&[(Case::Staged, C15)])
        .category(TensorCreation)
        .triggers(&[
            "torch.tensor(obj, device='cuda')",
            "torch.as_tensor(arr, device='cuda')",
            "x.new_tensor(obj)",
            "torch.cuda.FloatTensor(list)",
            "torch.cuda.BoolTensor(list)",
            "torch.from_numpy(a).cuda()",
        ])
        .op("torch.tensor -> aten::to")
        .why("The tensor is built on the CPU and then uploaded with a blocking copy.")
        .fix(NonBlocking, "build on the CPU, then .to('cuda', non_blocking=True)")
        .before("idx = torch.tensor(ids, device='cuda')")
        .after("idx = torch.tensor(ids).to('cuda', non_blocking=True)")
        .mind("A list costs the CPU 0.2 µs an element, with or without the wait. FloatTensor, BoolTensor and new_tensor set the dtype: pass it. requires_grad_() comes after the move.")
        .or(&["a constant: make it once, before the loop, and keep it"])
        .sources("PyTorch tensor_new.cpp; pytorch#120996, sglang#35106; seen in captures"),
    BASE.entry(C02, "a tensor of one constant, made on the CPU")
        .category(TensorCreation)
        .triggers(&[
            "torch.tensor(3.14, device='cuda')",
            "torch.tensor(0, device='cuda')",
            "torch.tensor(0).to('cuda')",
            "torch.FloatTensor([0.3]).cuda()",
        ])
        .op("torch.tensor -> aten::to")
        .trace("an H2D copy of 4 or 8 bytes from pageable memory, then cudaStreamSynchronize")
        .fix(Fill, "fill on the GPU: torch.full((), value, device='cuda')")
        .before("scale = torch.tensor(3.14, device='cuda')")
        .after("scale = torch.full((), 3.14, device='cuda')")
        .mind("Give dtype= where the default for the number is not the one you want: torch.FloatTensor([1]) is torch.full((1,), 1, dtype=torch.float32).")
        .or(&["x * 3.14: beside a tensor a Python number does", "make it once and keep it, in a module as a buffer: register_buffer()"])
        .sources("pytorch#120996"),
    BASE.entry(C03, ".cuda(), .to('cuda') of a CPU tensor")
        .of_pinned(PINNED)
        .instead(&[(Case::TakenOver, C20)])
        .triggers(&[".cuda()", ".to('cuda')", ".to(device)"])
        .op("aten::to, aten::_to_copy")
        .trace("a copy from pageable (or pinned) host memory to the GPU, then cudaStreamSynchronize")
        .fix(NonBlocking, "copy with non_blocking=True from pinned memory")
        .before("loader = DataLoader(ds, batch_size=64)\nfor x, y in loader:\n    x, y = x.cuda(), y.cuda()")
        .after("loader = DataLoader(ds, batch_size=64, pin_memory=True)\nfor x, y in loader:\n    x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)")
        .mind("Do not overwrite the CPU tensor before the copy has run. Pin in the loader: x.pin_memory() in the hot loop can cost more than it saves.")
        .sources("PyTorch Copy.cu; seen in captures"),
    BASE.entry(C15, "a CPU tensor moved where no data loader pins it")
        .of_pinned(PINNED)
        .instead(&[(Case::TakenOver, C20)])
        .triggers(&["x_cpu.to('cuda')", "pad(mel).to(device)"])
        .op("aten::to, aten::_to_copy")
        .trace("a copy from pageable host memory to the GPU, then cudaStreamSynchronize")
        .fix(NonBlocking, "copy with non_blocking=True from pinned memory")
        .before("x = x_cpu.to('cuda')")
        .after("x = x_cpu.pin_memory().to('cuda', non_blocking=True)")
        .mind("pin_memory() copies on the CPU, which the saving counts: below a few hundred KiB it costs more than the wait. Do not overwrite pinned memory before the copy out of it has run.")
        .or(&["the same data in each call: move it once and keep it", "data from a DataLoader: let that pin it, pin_memory=True"])
        .pins()
        .sources("PyTorch Copy.cu; seen in captures"),
    BASE.entry(C20, "a small CPU tensor moved to the GPU")
        .triggers(&["x_cpu.to('cuda')", "torch.tensor(ids, device='cuda')"])
        .op("aten::to, aten::_to_copy")
        .trace("a copy of at most 64 KiB from pageable host memory to the GPU, then cudaStreamSynchronize")
        .fix(NonBlocking, "pass non_blocking=True: small copies need no pinning")
        .before("x = x_cpu.to('cuda')")
        .after("x = x_cpu.to('cuda', non_blocking=True)")
        .mind("Up to 64 KiB the driver takes the data over before the call returns, from pageable memory too. pin_memory() costs the CPU more than such a wait.")
        .or(&["the same data in each call: move it once and keep it"])
        .sources("CUDA API synchronisation behaviour; measured"),
    BASE.entry(C19, "a field of a module, moved in each call")
        .triggers(&["self.table.to(x.device)", "self.table.expand(b, -1).type_as(x)"])
        .op("aten::to, aten::_to_copy")
        .trace("the same copy from host memory to the GPU in each call, then cudaStreamSynchronize")
        .why("A tensor that is a plain field stays on the CPU when its module goes to the GPU, so each call uploads it anew.")
        .fix(SyncFreeApi, "keep it on the GPU: register_buffer()")
        .before("self.table = table  # once\ny = x + self.table.to(x.device)")
        .after("self.register_buffer('table', table.to(device), persistent=False)  # once\ny = x + self.table")
        .mind("In place of the assignment, after super().__init__(), without .to(device): model.to(device) moves it. type_as(x) stays as .to(x.dtype). An expand() then gives a view, not to be written to. DDP sends buffers round in each forward pass: broadcast_buffers=False.")
        .or(&["an object that is no module: self.table = table.to(device), once"])
        .sources("torch.nn.Module.register_buffer; seen in captures"),
    BASE.entry(C16, "torch.load() onto the GPU")
        .triggers(&["torch.load(path)", "torch.load(path, map_location='cuda')"])
        .op("torch.serialization._load")
        .trace("an H2D copy from pageable memory for each storage of the file, each with cudaStreamSynchronize")
        .why("Each storage is read from the file and uploaded with its own blocking copy.")
        .fix(Leave, "nothing to do: once for a checkpoint")
        .sources("torch/serialization.py; seen in captures")
        .at(
            "torch/serialization.py",
            "load _load _legacy_load load_tensor persistent_load default_restore_location restore_location _deserialize",
        ),
    BASE.entry(C21, "the gradient of what the forward pass copied to the CPU")
        .triggers(&["features = model(x).cpu()"])
        .op("ToCopyBackward0")
        .trace("inside backward(), an H2D copy from pageable host memory, then cudaStreamSynchronize")
        .why("The forward pass goes on with a copy on the CPU; backward() sends the gradient of the copy back to the GPU.")
        .fix(SyncFreeApi, "stay on the GPU: no .cpu() in the forward pass")
        .before("loss = F.mse_loss(model(x).cpu(), y_cpu)\nloss.backward()")
        .after("loss = F.mse_loss(model(x), y)\nloss.backward()")
        .mind("Targets and indices must be on the GPU too.")
        .sources("PyTorch derivatives.yaml (_to_copy); seen in captures")
        .at("torch/autograd/graph.py", "_engine_run_backward")
        .at("torch/autograd/__init__.py", "backward grad"),
    BASE.entry(C22, "what PyTorch's own C++ code uploads")
        .triggers(&["F.ctc_loss(log_probs, targets, input_lengths, target_lengths)"])
        .op("at::tensor")
        .trace("H2D copies of some bytes from pageable memory, each with cudaStreamSynchronize, inside an operator or its backward")
        .why("The operator makes a GPU tensor of values that it computed on the CPU. No argument of it says how that is copied.")
        .fix(Leave, "nothing to do: PyTorch's own code uploads")
        .sources("PyTorch ATen/native, TensorFactories; seen in captures"),
    BASE.entry(C04, "gpu.copy_(cpu), load_state_dict()")
        .of_pinned(PINNED)
        .triggers(&["gpu.copy_(cpu)", "module.load_state_dict(state)"])
        .trace("a copy from host memory to the GPU, then cudaStreamSynchronize, per tensor")
        .fix(NonBlocking, "non_blocking=True from a batch that the loader pinned")
        .before("static_x.copy_(x_cpu)")
        .after("static_x.copy_(x_cpu, non_blocking=True)  # x_cpu: from DataLoader(pin_memory=True)")
        .mind("Only where the source is not written again before the copy has run: a buffer of your own needs an event recorded after the copy, and waited for before the next write. Loading a checkpoint once needs no fix.")
        .sources("PyTorch Copy.cu"),
    BASE.entry(C05, "x[idx] = number with an index tensor or list")
        .category(Indexing)
        .triggers(&["x[idx] = 0", "x[[0, 2]] = 1.0"])
        .op("aten::index_put_")
        .trace("an H2D copy of one value from pageable memory and cudaStreamSynchronize, then the index kernel")
        .why("The number is made a CPU tensor and uploaded with a blocking copy.")
        .fix(SyncFreeApi, "index_fill_(dim, idx, value); of a mask masked_fill_")
        .before("x[:, [0, 2]] = 0")
        .after("idx = torch.tensor([0, 2], device='cuda')  # once\nx.index_fill_(1, idx, 0)")
        .mind("Only for a number and one indexed dimension, with the index or mask on the GPU. index_fill_ takes no mask. x[idx].fill_(0) writes into a copy, and nothing into x.")
        .or(&["another value: keep index and value on the GPU, x[idx] = t"])
        .versions("up to 2.12; gone in 2.15")
        .sources("PyTorch TensorAdvancedIndexing.cpp; pytorch#188330"),
    BASE.entry(C06, "x[3] = number, where one element is addressed")
        .category(Indexing)
        .triggers(&["x[3] = 1.0", "x[0, 0] = 1.5"])
        .op("aten::copy_ in TensorIndexing")
        .trace("an H2D copy of one value from pageable memory, then cudaStreamSynchronize; no kernel")
        .why("A destination without dimensions is written by a blocking copy from a CPU scalar, not by a fill kernel.")
        .fix(Fill, "use fill_: x[3].fill_(value)")
        .before("x[3] = 1.0")
        .after("x[3].fill_(1.0)")
        .mind("Only where each dimension is addressed by a number: a mask, a list or an index tensor makes a copy, and fill_ then writes nothing into x.")
        .versions("up to 2.12; gone in 2.15")
        .sources("PyTorch TensorIndexing.h; pytorch#186482, pytorch#188267; seen in captures"),
    BASE.entry(C07, "indexing a CUDA tensor with a list or CPU tensor")
        .category(Indexing)
        .triggers(&["x[idx_cpu]", "x[idx_list]", "x[[0, 2, 5]]"])
        .op("aten::index")
        .trace("an H2D copy of 8 bytes per index from pageable memory and cudaStreamSynchronize, then the index kernel")
        .why("The index is uploaded with a blocking copy first.")
        .fix(SyncFreeApi, "keep the index on the GPU")
        .before("y = x[[0, 2, 5]]")
        .after("idx = torch.tensor([0, 2, 5], device='cuda')  # once\ny = x[idx]")
        .or(&["a constant range needs no index: a slice is free", "another index each time: .to('cuda', non_blocking=True) of a pinned one"])
        .sources("PyTorch TensorAdvancedIndexingUtils.h; test_sync_warning"),
    BASE.entry(C17, "x[idx] = t with a list or CPU tensor as index or value")
        .case_of(&[C05, C06])
        .category(Indexing)
        .triggers(&["x[idx_cpu] = t", "x[rows, columns] = t"])
        .op("aten::index_put_")
        .trace("an H2D copy of 8 bytes per index, or of the value, from pageable memory and cudaStreamSynchronize, then the index kernel")
        .why("What is not on the GPU yet, index or value, is uploaded with a blocking copy first.")
        .fix(SyncFreeApi, "keep index and value on the GPU")
        .before("x[[0, 2, 5]] = t")
        .after("idx = torch.tensor([0, 2, 5], device='cuda')  # once\nx[idx] = t")
        .or(&["another index each time: .to('cuda', non_blocking=True) of a pinned one"])
        .sources("PyTorch TensorAdvancedIndexing.cpp"),
    BASE.entry(C18, "an index list that is a range: x[:, [0]]")
        .case_of(&[C07])
        .category(Indexing)
        .triggers(&["x[:, [0]]", "x[..., [2, 3]]"])
        .op("aten::index")
        .trace("an H2D copy of 8 bytes per index from pageable memory and cudaStreamSynchronize, then the index kernel")
        .why("The list is made a tensor and uploaded with a blocking copy first.")
        .fix(SyncFreeApi, "a slice needs no index: x[:, 0:1]")
        .before("y = x[:, [0, 1]]")
        .after("y = x[:, 0:2]")
        .mind("A slice is a view: what is then written into it in place is written into x.")
        .sources("PyTorch TensorAdvancedIndexingUtils.h; seen in captures"),
    BASE.entry(C08, "indexing a CUDA tensor with a CPU mask")
        .category(Indexing)
        .triggers(&["x[mask_cpu]"])
        .op("aten::index")
        .trace("an H2D copy of 8 bytes per true element from pageable memory and cudaStreamSynchronize; since 2.10 from pinned memory without a wait")
        .why("The mask is listed on the CPU and the list uploaded with a blocking copy.")
        .fix(NonBlocking, "upload mask.nonzero() pinned, with non_blocking=True")
        .before("y = x[mask_cpu]")
        .after("idx = mask_cpu.nonzero().squeeze(1).pin_memory()\ny = x[idx.to('cuda', non_blocking=True)]")
        .mind("For a one-dimensional mask. PyTorch 2.10 does it by itself.")
        .versions("up to 2.8; gone in 2.10")
        .sources("pytorch#156384"),
    BASE.entry(C09, "torch.where() with a CPU scalar tensor")
        .triggers(&["torch.where(cond, x, cpu_scalar)"])
        .op("aten::where")
        .trace("an H2D copy of one value from pageable memory, then cudaStreamSynchronize")
        .why("A CPU tensor as a branch is moved to the GPU with a blocking copy.")
        .fix(SyncFreeApi, "pass a Python number instead of a CPU tensor")
        .before("y = torch.where(m, x, torch.tensor(0.0))")
        .after("y = torch.where(m, x, 0.0)")
        .sources("PyTorch TensorCompare.cpp"),
    BASE.entry(C10, "collectives of Python objects")
        .category(Distributed)
        .triggers(&[
            "dist.broadcast_object_list(objs)",
            "dist.all_gather_object(out, obj)",
            "dist.gather_object(obj)",
        ])
        .op("torch.distributed object collectives")
        .trace("H2D copies of the pickled bytes and their length, an NCCL kernel, then copies of sizes and bytes back, each with cudaStreamSynchronize")
        .kind(CpuCompute)
        .why("Objects are pickled into GPU tensors, sent by NCCL, read back and unpickled on the CPU.")
        .fix(Offload, "send objects over a gloo group")
        .before("dist.all_gather_object(out, stats)")
        .after("cpu_group = dist.new_group(backend='gloo')  # once\ndist.all_gather_object(out, stats, group=cpu_group)")
        .mind("Every rank must create the group.")
        .or(&["begin with init_process_group('cpu:gloo,cuda:nccl'): objects then go by gloo", "send tensors"])
        .versions("where the group has NCCL alone")
        .sources("torch/distributed/distributed_c10d.py")
        .at(
            "torch/distributed/distributed_c10d.py",
            "_object_to_tensor _tensor_to_object all_gather_object gather_object broadcast_object_list scatter_object_list send_object_list recv_object_list",
        ),
    BASE.entry(C11, "moving a model to the GPU")
        .triggers(&["model.to('cuda')", "model.cuda()"])
        .trace("hundreds of H2D copies from pageable memory, each with cudaStreamSynchronize, at start-up")
        .why("Each parameter is uploaded with its own blocking copy, once.")
        .fix(Leave, "nothing to do: once at start-up")
        .before("model = Net().to('cuda')")
        .after("with torch.device('cuda'):\n    model = Net()  # parameters are made on the GPU")
        .mind("Random initialisation draws other numbers on the GPU.")
        .sources("seen in captures"),
    BASE.entry(C14, "a tensor filled on the CPU, then moved")
        .category(TensorCreation)
        .triggers(&["torch.randn(64, 20).to(device)", "torch.zeros(n).cuda()"])
        .op("aten::to, aten::_to_copy")
        .why("The CPU fills the tensor, and a blocking copy sends what the GPU could have filled itself.")
        .fix(Fill, "make it on the GPU: pass device=")
        .before("noise = torch.randn(64, 20).to(device)")
        .after("noise = torch.randn(64, 20, device=device)")
        .mind("The GPU draws other random numbers from the same seed. np.zeros() is float64, and type_as() gives the type too: pass dtype=. What is the same in each call is better made once and kept.")
        .or(&[
            "x.new_zeros(64, 20): with the type and on the device of x",
            "torch.FloatTensor(64, 20).zero_(), np.zeros((64, 20)): torch.zeros(64, 20, device=device)",
            "torch.LongTensor(range(n)): torch.arange(n, device=device)",
        ])
        .sources("NVIDIA sync-free guide"),
    BASE.entry(C12, "pinning in the data loader's thread")
        .category(NotAWait)
        .triggers(&["DataLoader(ds, pin_memory=True)", "x.pin_memory()"])
        .op("aten::_pin_memory")
        .trace("cudaHostAlloc and cudaEventQuery on the pinning thread; no synchronisation")
        .by_use()
        .why("A background thread pins memory; the main thread does not wait for it in CUDA.")
        .fix(Leave, "nothing to do: a background thread")
        .driver_api("cuMemHostAlloc, off the main thread")
        .sources("torch/utils/data/_utils/pin_memory.py"),
    BASE.entry(C13, "non_blocking H2D copy from pageable memory")
        .of_pinned(PINNED)
        .triggers(&[".to('cuda', non_blocking=True)"])
        .trace("a copy from pageable host memory without cudaStreamSynchronize; a large one spends its time inside cudaMemcpyAsync")
        .why("The driver stages pageable memory itself: small copies return at once, large ones block inside the call.")
        .fix(NonBlocking, "pin the source of large copies in the data loader")
        .before("loader = DataLoader(ds, batch_size=64)\nfor x in loader:\n    x = x.to('cuda', non_blocking=True)")
        .after("loader = DataLoader(ds, batch_size=64, pin_memory=True)\nfor x in loader:\n    x = x.to('cuda', non_blocking=True)")
        .mind("Pinning costs a copy: in the hot thread it can be slower than the pageable upload.")
        .driver_api("cuMemcpyHtoDAsync")
        .sources("CUDA API synchronisation behaviour; seen in captures"),
];
