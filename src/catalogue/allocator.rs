//! G01 to G08: waits of the memory allocator, on whatever line needs memory, and of memory that the program frees itself.

use super::{Category, Pattern, Strategy::*};
use crate::vocabulary::Kind;

const BASE: Pattern = Pattern::BASE.kind(Kind::Allocator).op("CUDACachingAllocator").driver_api("cuMemFree");

pub(super) const PATTERNS: &[Pattern] = &[
    BASE.entry("G01", "torch.cuda.empty_cache()")
        .triggers(&["torch.cuda.empty_cache()"])
        .op("torch.cuda.empty_cache")
        .trace("cudaEventSynchronize per outstanding event, then many cudaFree, later cudaMalloc again")
        .why("Memory is handed back to the driver, which waits until the GPU no longer uses it; soon it is asked for again.")
        .fix(Remove, "remove it")
        .before("for x in loader:\n    train_step(x)\n    torch.cuda.empty_cache()")
        .after("# PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\nfor x in loader:\n    train_step(x)")
        .mind("Keep it where another process on the GPU needs the memory.")
        .or(&["fragmented memory: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"])
        .sources("PyTorch CUDACachingAllocator.cpp")
        .site(&[("torch/cuda/memory.py", "empty_cache"), ("torch/accelerator/memory.py", "empty_cache")]),
    BASE.entry("G02", "retry after running out of memory")
        .triggers(&["any op that allocates"])
        .trace("a failing cudaMalloc, a burst of cudaEventSynchronize and cudaFree, then cudaMalloc again; any line can be the leaf")
        .why("Memory ran out, so the allocator frees its cache, which waits for the GPU, and tries again.")
        .fix(Delay, "lower peak memory")
        .before("loader = DataLoader(ds, batch_size=64)")
        .after("# PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,garbage_collection_threshold:0.8\nloader = DataLoader(ds, batch_size=48)")
        .mind("Another batch size changes training.")
        .or(&["fragmented memory: expandable segments alone"])
        .sources("PyTorch CUDACachingAllocator.cpp"),
    BASE.entry("G03", "unmapping of expandable segments")
        .triggers(&["torch.cuda.empty_cache()"])
        .trace("a bare cudaStreamSynchronize or cudaDeviceSynchronize, then cuMemUnmap and cuMemRelease")
        .why("Before memory is unmapped the stream must be drained.")
        .fix(Remove, "avoid empty_cache() and running out of memory")
        .before("torch.cuda.empty_cache()\ny = model(x)")
        .after("y = model(x)")
        .driver_api("cuStreamSynchronize or cuCtxSynchronize")
        .sources("PyTorch CUDACachingAllocator.cpp"),
    BASE.entry("G04", "cudaMalloc in the steady state")
        .triggers(&["inputs of changing shape"])
        .trace("cudaMalloc in iterations after the first ones")
        .why("New sizes do not fit the cached blocks. The call takes a driver lock and can wait for other work.")
        .fix(SyncFreeApi, "pad to a few lengths")
        .before("x = torch.nn.utils.rnn.pad_sequence(seqs, batch_first=True).to('cuda')")
        .after("x = torch.nn.utils.rnn.pad_sequence(seqs, batch_first=True)\nx = F.pad(x, (0, -x.size(1) % 64)).to('cuda')  # few distinct lengths")
        .mind("Padding must be masked out. For (batch, time, features) F.pad takes (0, 0, 0, k).")
        .or(&["allocate the largest once and use a part of it"])
        .driver_api("cuMemAlloc")
        .sources("seen in captures"),
    BASE.entry("G05", "PYTORCH_NO_CUDA_MEMORY_CACHING=1")
        .triggers(&["os.environ['PYTORCH_NO_CUDA_MEMORY_CACHING'] = '1'"])
        .trace("cudaMalloc and cudaFree for every tensor")
        .intended()
        .why("A debugging switch turns the cache off, so each freed tensor waits for the GPU.")
        .fix(Remove, "unset PYTORCH_NO_CUDA_MEMORY_CACHING")
        .before("os.environ['PYTORCH_NO_CUDA_MEMORY_CACHING'] = '1'")
        .after("os.environ.pop('PYTORCH_NO_CUDA_MEMORY_CACHING', None)")
        .mind("Set it for memory checkers only.")
        .sources("PyTorch CUDACachingAllocator.cpp"),
    BASE.entry("G06", "polling by the pinned-memory cache")
        .category(Category::NotAWait)
        .triggers(&["x.pin_memory()"])
        .op("CachingHostAllocator")
        .trace("cudaEventQuery only")
        .by_use()
        .why("Finished events are looked up, none is waited for.")
        .fix(Leave, "nothing to do: does not wait")
        .driver_api("cuEventQuery")
        .sources("PyTorch CachingHostAllocator.cpp"),
    BASE.entry("G07", "cudaFree / cudaFreeHost in the program")
        .triggers(&["cudaFree(p)", "cudaFreeHost(p)", "cuMemFree(p)", "cudaHostUnregister(p)"])
        .op("cudaFree, cudaFreeHost")
        .trace("cudaFree or cudaFreeHost that lasts until the GPU is idle, without PyTorch's allocator in the native chain")
        .why("The driver drains the device before it frees, because queued work may still use the memory.")
        .fix(Remove, "free in stream order: cudaFreeAsync")
        .before("cudaMalloc(&buf, bytes);\nrun(buf, stream);\ncudaFree(buf);")
        .after("cudaMallocAsync(&buf, bytes, stream);\nrun(buf, stream);\ncudaFreeAsync(buf, stream);  // or keep buf for the next call")
        .mind("The pool returns memory at each synchronisation unless its release threshold is raised. cudaFreeHost has no such \
             form: keep the buffer.")
        .or(&["allocate once and reuse"])
        .versions("cudaFreeAsync: CUDA 11.2 and later")
        .driver_api("cuMemFree or cuMemFreeHost")
        .sources("CUDA runtime documentation"),
    BASE.entry("G08", "a context or communicator is made or taken down")
        .triggers(&["cudaFree(0)", "cudaDeviceReset()", "dist.destroy_process_group()", "the program's end"])
        .op("cuDevicePrimaryCtxRetain, cudaDeviceReset, ncclCommDestroy")
        .trace("frees and device synchronisations before the first kernel or after the last")
        .intended()
        .why("The driver sets up or frees all that belongs to the context.")
        .fix(Leave, "nothing to do: once per process")
        .driver_api("cuMemFree or cuCtxSynchronize")
        .sources("CUDA runtime documentation, NCCL documentation"),
];
