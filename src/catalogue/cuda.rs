//! K01 to K09: the same waits in programs that are not PyTorch's, with fixes in CUDA's terms.

use super::{CTX_SYNC, Case, Category::*, EVENT_SYNC, Pattern, Strategy::*};
use crate::vocabulary::Change;
use crate::vocabulary::Kind::{self, *};
use crate::vocabulary::PatternId::{self, *};

const BASE: Pattern =
    Pattern::BASE.kind(Explicit).sources("CUDA C++ Programming Guide 13, chapter on asynchronous execution");

/// What the CPU may still need such a wait for.
const NEEDED: &str = "Needed before a clock of the CPU, before the CPU reads managed or mapped memory or the target of an asynchronous copy, or writes to the source of one, and before MPI or another library uses a buffer of the device.";

pub(super) const PATTERNS: &[Pattern] = &[
    BASE.entry(K01, "cudaDeviceSynchronize()")
        .instead(&[OF_THRUST, OF_TENSORRT])
        .triggers(&["cudaDeviceSynchronize()", "cuCtxSynchronize()", "acc wait", "CUDA.synchronize()"])
        .op("cudaDeviceSynchronize")
        .trace("cudaDeviceSynchronize without a copy before it")
        .why("The CPU waits for all streams of the device, but receives nothing.")
        .fix(Remove, "let the GPU wait: cudaStreamWaitEvent")
        .simulated(Change::GpuWait)
        .before("produce<<<grid, block, 0, a>>>(x);\ncudaDeviceSynchronize();\nconsume<<<grid, block, 0, b>>>(x);")
        .after("produce<<<grid, block, 0, a>>>(x);\ncudaEventRecord(done, a);\ncudaStreamWaitEvent(b, done);  // the GPU waits, the CPU goes on\nconsume<<<grid, block, 0, b>>>(x);")
        .mind(NEEDED)
        .or(&["the CPU needs one result: cudaEventSynchronize for that one", "nothing needs it: delete it", "several threads: cudaStreamSynchronize waits for one's own stream only, and breaks no graph that another thread captures"])
        .driver_api(CTX_SYNC),
    BASE.entry(K02, "cudaStreamSynchronize()")
        .instead(&[OF_THRUST, OF_TENSORRT])
        .triggers(&["cudaStreamSynchronize(stream)", "cuStreamSynchronize(stream)"])
        .op("cudaStreamSynchronize")
        .trace("cudaStreamSynchronize without a copy before it")
        .why("The CPU waits for one stream, but receives nothing.")
        .fix(Remove, "let the GPU wait: cudaStreamWaitEvent")
        .simulated(Change::GpuWait)
        .before("cudaStreamSynchronize(a);\nconsume<<<grid, block, 0, b>>>(x);")
        .after("cudaEventRecord(done, a);\ncudaStreamWaitEvent(b, done);\nconsume<<<grid, block, 0, b>>>(x);")
        .mind(NEEDED),
    BASE.entry(K03, "cudaEventSynchronize()")
        .triggers(&["cudaEventSynchronize(event)", "cuEventSynchronize(event)"])
        .op("cudaEventSynchronize")
        .trace("cudaEventSynchronize without a copy before it")
        .why("The CPU waits until the GPU has passed the event, but receives nothing.")
        .fix(Remove, "let the GPU wait: cudaStreamWaitEvent(stream, event)")
        .simulated(Change::GpuWait)
        .before("cudaEventSynchronize(done);\nconsume<<<grid, block, 0, b>>>(x);")
        .after("cudaStreamWaitEvent(b, done);\nconsume<<<grid, block, 0, b>>>(x);")
        .mind(NEEDED)
        .driver_api(EVENT_SYNC),
    BASE.of_kind(K04, "blocking copy to the GPU", Upload)
        .of_pinned("cudaMemcpyAsync: the memory is pinned already")
        .category(DeviceMovement)
        .triggers(&["cudaMemcpy(dst, src, n, cudaMemcpyHostToDevice)", "#pragma acc update device(x)"])
        .op("cudaMemcpy")
        .trace("a copy from pageable memory to the GPU that the call, or a synchronisation after it, waits for")
        .why("From pageable memory the driver copies through a buffer of its own, and the call returns when the source is read.")
        .fix(NonBlocking, "cudaMemcpyAsync from pinned memory (cudaMallocHost)")
        .before("float *x = (float *)malloc(n);\nfill(x);\ncudaMemcpy(d, x, n, cudaMemcpyHostToDevice);")
        .after("float *x;\ncudaMallocHost(&x, n);  // once\ncudaEventSynchronize(copied);  // the copy before has read x\nfill(x);\ncudaMemcpyAsync(d, x, n, cudaMemcpyHostToDevice, stream);\ncudaEventRecord(copied, stream);")
        .mind("A pinned buffer that is written before its copy has run sends the new data: two buffers in turn wait less.")
        .driver_api("cuMemcpyHtoD"),
    BASE.entry(K05, "blocking copy to the host")
        .category(DeviceMovement)
        .triggers(&["cudaMemcpy(dst, src, n, cudaMemcpyDeviceToHost)", "#pragma acc update self(x)"])
        .op("cudaMemcpy")
        .trace("a copy to the host that the call, or a synchronisation after it, waits for")
        .by_use()
        .why("The CPU stops until the value is there, and the GPU runs dry meanwhile.")
        .fix(Delay, "cudaMemcpyAsync to pinned memory, read a step late")
        .before("cudaMemcpy(&err, d_err, sizeof err, cudaMemcpyDeviceToHost);\nif (err < tol) break;")
        .after("cudaMemcpyAsync(h_err, d_err, sizeof *h_err, cudaMemcpyDeviceToHost, stream);\ncudaEventRecord(copied, stream);\nlaunch_next_step(stream);\ncudaEventSynchronize(copied);\nif (*h_err < tol) break;  // one step late")
        .mind("What depends on the value happens one step later. h_err is from cudaMallocHost. A copy to pageable memory also holds up launches of other threads.")
        .driver_api("cuMemcpyDtoH"),
    BASE.of_kind(K06, "cuDNN: timing of algorithms", Timing)
        .category(super::Category::ErrorCheck)
        .category(super::Category::ErrorCheck)
        .triggers(&["cudnnFindConvolutionForwardAlgorithmEx(…)"])
        .op("cudnnFind…")
        .trace("kernels of one convolution in a burst, each with cudaEventSynchronize")
        .intended()
        .why("Each algorithm is run and timed for the shape at hand.")
        .fix(SyncFreeApi, "ask cudnnGet…_v7: a heuristic, no run")
        .before("cudnnFindConvolutionForwardAlgorithm(h, x, w, conv, y, 8, &n, perf);  // in every call")
        .after("cudnnGetConvolutionForwardAlgorithm_v7(h, x, w, conv, y, 8, &n, perf);  // a heuristic, no run")
        .mind("The heuristic may choose a slower algorithm.")
        .or(&["time each shape once and keep the answer"])
        .driver_api(EVENT_SYNC)
        .sources("cuDNN documentation"),
    BASE.of_kind(K07, "synchronisation for a clock of the CPU", Kind::Timing)
        .triggers(&["cudaDeviceSynchronize(); gettimeofday(&t, 0)"])
        .op("cudaDeviceSynchronize")
        .trace("a synchronisation without a copy, and a clock read next to it")
        .why("The CPU waits so that its clock measures GPU work.")
        .fix(SyncFreeApi, "time with cudaEventRecord and cudaEventElapsedTime")
        .before("double t0 = seconds();\nstep<<<grid, block>>>(x);\ncudaDeviceSynchronize();\ndouble s = seconds() - t0;")
        .after("cudaEventRecord(start);\nstep<<<grid, block>>>(x);\ncudaEventRecord(stop);\n// after the loop: cudaEventSynchronize(stop); cudaEventElapsedTime(&ms, start, stop);")
        .driver_api(CTX_SYNC),
    BASE.of_kind(K08, "thrust: an algorithm waits at its end", Explicit)
        .triggers(&["thrust::sort(policy, first, last)", "cupy.sort(a)", "cupy.argsort(a)"])
        .op("thrust::cuda_cub::synchronize")
        .trace("cudaStreamSynchronize right after the kernels of a sort, scan or reduction")
        .intended()
        .why("thrust's algorithms wait for their stream before they return, also those that return nothing.")
        .fix(SyncFreeApi, "thrust::cuda::par_nosync; of CuPy, a newer version")
        .before("thrust::sort(thrust::cuda::par.on(stream), first, last);")
        .after("thrust::sort(thrust::cuda::par_nosync.on(stream), first, last);")
        .mind("The CPU must wait itself before it reads the result. Algorithms that return a number wait all the same. CuPy's sorts no longer wait since cupy#9497.")
        .versions("par_nosync: thrust 1.16 and later")
        .sources("cupy#9126, cupy#9497, thrust's documentation"),
    BASE.of_kind(K09, "TensorRT: the end of an inference", Explicit)
        .triggers(&["context.execute_v2(bindings)", "context->executeV2(bindings)", "context->enqueueV3(0)"])
        .op("nvinfer1::IExecutionContext")
        .trace("cudaStreamSynchronize that lasts as long as the engine's kernels")
        .intended()
        .why("executeV2 returns when the inference is done: the wait is the inference. enqueueV3 on the default stream waits for order.")
        .fix(SyncFreeApi, "enqueueV3 on a stream of one's own")
        .before("context->executeV2(bindings);")
        .after("context->enqueueV3(stream);  // not the default stream\nprepare_next();\ncudaStreamSynchronize(stream);")
        .mind("The time of the inference itself stays. The results are there after the wait.")
        .or(&["Torch-TensorRT uses a stream of its own since pytorch/TensorRT#3191: upgrade"])
        .sources("TensorRT#1493, pytorch/TensorRT#3190"),
];

/// Waits that a library makes for its callers, by what its functions are called.
pub(super) const OF_THRUST: (Case, PatternId) = (Case::Native("thrust::"), K08);
pub(super) const OF_TENSORRT: (Case, PatternId) = (Case::Native("nvinfer1::"), K09);

/// The entry that says the same as `pattern` in CUDA's terms; the same where that is in nobody's terms but the driver's.
pub fn in_cuda_terms(pattern: PatternId, kind: Kind) -> PatternId {
    match (pattern.letter(), pattern, kind) {
        ('F', _, Timing) => K07,
        (_, F02, _) => K02,
        (_, F03, _) => K03,
        (_, E07, _) => K06,
        ('L', ..) | (_, E13 | H13 | G07 | G08, _) => pattern,
        ('C', ..) => K04,
        ('G', _, Kind::Allocator) => G07,
        ('F', ..) | ('H', _, Explicit | Redundant | Idle | Barrier) => K01,
        _ => K05,
    }
}
