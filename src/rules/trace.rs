//! Rules of the trace, in order of precedence: the first that applies decides.

use super::{Role, Rule, To, Yields};
use crate::vocabulary::{Kind, RuleId};

const fn rule(id: RuleId, yields: Yields) -> Rule {
    Rule::of(id, Role::Trace(yields))
}

pub(super) const RULES: &[Rule] = &[
    rule(RuleId::R23, Yields::NOTHING)
        .looks_at("Functions of cuDNN, TensorRT, NCCL and the driver in the native chain, or in the name of an NVTX range around the wait.")
        .proves("Algorithms are timed for a new shape, or a context or a communicator is made or taken down. The line is innocent.")
        .example("\
train.py:41  y = conv(x)                              <- the first time with this shape
  cudnnFindConvolutionForwardAlgorithmEx
    cudaEventSynchronize"),
    rule(RuleId::R13, Yields::NOTHING)
        .looks_at("The call itself (cudaFree, cudaFreeHost, cudaHostAlloc, …), and PyTorch's allocators in the native chain.")
        .proves("The wait is the allocator's: the driver drains the device before it frees. The Python line is innocent.")
        .example("\
host      [launch] [cudaFree=============]
stream 7      [gemm~~~~~~~~~~~~~~~~~~]"),
    rule(RuleId::R22, Yields::NOTHING)
        .looks_at("c10d::Logger in the native chain of a wait for an event.")
        .proves("DistributedDataParallel times its forward and backward pass by events. The Python line, the model's call, is innocent.")
        .example("\
train.py:41  loss = model(x)
  c10d::Logger::set_runtime_stats_and_log            <- in 10 iterations, then one in 100
    cudaEventSynchronize"),
    rule(RuleId::R17, Yields::NEEDED)
        .looks_at("The innermost frames inside a library, its file, function and line, held against the catalogue's library entries. Where the trace leaves the wait open, a line that calls clip_grad_norm_, or a call of the line and the frame below it, of a logger, profiler or torch.distributions.")
        .proves("What the catalogue says of that place: why the library waits is known.")
        .example("\
train.py:41 main
  torch/nn/utils/clip_grad.py:108 clip_grad_norm_   <- A19
    cudaStreamSynchronize"),
    rule(RuleId::R18, Yields::NEEDED)
        .looks_at("at::_ops:: functions and the Python method of the native chain, or that autograd's engine reads itself; without a chain, PyTorch's NVTX ranges. Of counts, and of numbers as indices and bounds, also the sizes of what the GPU is given next.")
        .proves("The kind of that operator: nonzero needs its output's size, a factorisation checks itself. A size that is the same every time the host may know: that is left open.")
        .example("\
NVTX      [aten::nonzero                        ]
host      [launch] [D2H 4 B] [synchronize==]
stream 7     [reduce~~~~~~~~~] [copy]        [select~]"),
    rule(RuleId::R19, Yields::to(To::Decided))
        .looks_at("As R18: is_nonzero, which Python calls for a tensor's truth, and operators that branch by themselves.")
        .proves("The CPU has a truth value. What the program does with it the source tells better, if it can tell.")
        .example("\
NVTX      [aten::is_nonzero                ]
host      [launch] [D2H 1 B] [synchronize==]  [launch of one branch]
stream 7     [compare~~~~~~~~] [copy]"),
    rule(RuleId::R12, Yields::unless(&[(Kind::HostKnown, &[Kind::ControlFlow])]))
        .looks_at("A copy of 4 bytes after the unscale kernel or before the scale's update, without chain or range. Where the trace leaves the read open, a line that calls a GradScaler's `step`.")
        .proves("The value decides whether the optimizer steps.")
        .example("\
host      [unscale] [D2H 4 B] [synchronize==] [step]
stream 7     [non_finite_check~] [copy]         [adam~~] [amp_update_scale]"),
    rule(RuleId::R11, Yields::NOTHING)
        .looks_at("A copy of 1 byte shortly after kernels of getrf, potrf, syevd, …, without chain or range. Where the trace leaves the read open, a line that calls an operator which raises if it failed: `torch.linalg.inv`.")
        .proves("PyTorch checks that the factorisation succeeded, or that its input is valid; the program uses the result on the GPU.")
        .example("\
host      [launch] [D2H 1 B] [synchronize==]
stream 7     [getrf~~~] [reduce] [copy]"),
    rule(
        RuleId::R16,
        // The kernels show that a tensor became text; only the source can know where the text goes. Where the
        // source does not know either, the text was most likely printed.
        Yields::to(To::Decided),
    )
    .looks_at("Selections of finite nonzero elements and extremes in double precision around a copy, without chain or range.")
    .proves("PyTorch turns a tensor into text, as print() does.")
    .example("\
host      [launch…]              [D2H 4 B] [synchronize==]
stream 7     [abs] [and] [reduce~] [copy]                 [min double] [max double]"),
    rule(RuleId::R08, Yields::SIZE)
        .looks_at("A copy of 4 bytes between a reduction and a selection, without chain or range.")
        .proves("A count was read, because the next output has that size: nonzero or an index with a mask.")
        .example("\
host      [launch] [D2H 4 B] [synchronize==] [launch]
stream 7     [DeviceReduce~~~] [copy]           [DeviceSelect~]"),
    rule(RuleId::R09, Yields::SIZE)
        .looks_at("A copy of 8 bytes after a sort and a selection, without chain or range.")
        .proves("The number of distinct values was read, because the output has that size.")
        .example("\
host      [launch…]                    [D2H 8 B] [synchronize==]
stream 7     [RadixSort~] [DeviceSelect~] [copy]"),
    rule(RuleId::R10, Yields::to(To::Anything))
        .looks_at("A copy of 1 or 8 bytes between a scan and repeat_interleave's own kernel, without chain or range.")
        .proves("The sum of the repeats was read, because the output has that size.")
        .example("\
host      [launch] [D2H 8 B] [synchronize==] [launch]
stream 7     [DeviceScan~~~~~] [copy]           [compute_cuda_kernel]"),
    rule(RuleId::R24, Yields::unless(&[(Kind::HostKnown, &[Kind::CpuCompute])]))
        .looks_at("As R15, where the histogram kernel counts floating-point values in their own type.")
        .proves("The smallest and the largest value were read, because no range of the bins was given.")
        .example("\
host      [launch] [D2H 4 B] [synchronize==] [launch]
stream 7     [min~~~~~~~~~~~~] [copy]           [kernelHistogram1D<float, float>]"),
    rule(RuleId::R15, Yields::SIZE)
        .looks_at("A copy between a minimum or maximum and a histogram kernel, without chain or range.")
        .proves("The number of bins was read, because the output has that size.")
        .example("\
host      [launch] [D2H 8 B] [synchronize==] [launch]
stream 7     [max~~~~~~~~~~~~] [copy]           [kernelHistogram1D]"),
    rule(RuleId::R14, Yields::NOTHING)
        .looks_at("A synchronisation without a copy that waits for an all-reduce of a tensor just filled with a constant. Where the trace does not tell what was awaited, a line that calls `barrier`.")
        .proves("It is dist.barrier(): no value is read.")
        .example("\
host      [fill] [all_reduce] [synchronize=========]
stream 7     [fill~] [ncclDevKernel_AllReduce~~~~]"),
    rule(RuleId::R01, Yields::to(To::SameKind))
        .looks_at("The direction of the copy that the wait completes; with it, a call of the line whose argument is what is copied.")
        .proves("No value reaches the CPU: the wait only protects the memory that is copied from.")
        .example("\
host      [H2D 4 MiB pageable] [synchronize==]
stream 7                [copy~~~~~~~~~~~~~~~]"),
    rule(
        RuleId::R26,
        // The source looks for the buffer in one function: seeing none there proves nothing.
        Yields::except(To::Decided, Kind::Explicit),
    )
    .looks_at("Copies between pinned memory and the GPU: the event recorded next on the copy's stream, or else the thread's first wait that covers the copy.")
    .proves("Only this wait tells the host that it may write, or read, that memory. That nothing was pending proves nothing: another time the GPU is late.")
    .example("\
host      [sync e][write a][H2D a][record e] … [sync e][write a][H2D a][record e]
stream 13                    [a~~~]                              [a~~~]"),
    rule(RuleId::R04, Yields::MEASURED)
        .looks_at("A synchronisation without a copy, and what its thread submitted since an earlier one of the same work.")
        .proves("Nothing was submitted in between: the second wait can find nothing.")
        .example("\
host      [launch] [synchronize==] [synchronize]
stream 7     [gemm~~~~~~~~~~~]                       <- nothing in between"),
    rule(
        RuleId::R05,
        // Any D2H copy that the wait covers would make it R03's: there was none to make readable.
        Yields::except(To::Decided, Kind::Barrier),
    )
    .looks_at("A synchronisation of a stream or device without a copy, and the GPU work of what it covers.")
    .proves("All of it had ended before the wait began: it cost only the call.")
    .example("\
host      [launch] ……………… [synchronize]
stream 7     [gemm~~]     |                          <- idle when it begins"),
    rule(RuleId::R06, Yields::to(To::Decided))
        .looks_at("A synchronisation with an event, and the work before the event's record.")
        .proves("All of it had ended before the wait began: it cost only the call.")
        .example("\
host      [launch] [record] ……………… [event.synchronize]
stream 7     [gemm~~] |            [gemm~~~~~~~~~]       <- later work does not count"),
    rule(
        RuleId::R03,
        // The copy that the trace saw was started where the source does not look.
        Yields::except(To::Anything, Kind::Explicit),
    )
    .looks_at("Copies to the host that no wait had completed when this synchronisation began.")
    .proves("A buffer on the host is valid after it. What reads the buffer, only the source shows.")
    .example("\
host      [D2H non_blocking] [launch] [synchronize==] reads the buffer?
stream 7         [copy~~~~~~~]  [gemm~~~~~~]"),
    rule(RuleId::Collective, Yields::NOTHING)
        .looks_at("A synchronisation without a copy, half of whose time passed while a kernel of NCCL ran last. As a remark: such a kernel ran last, or a tenth and more of the time passed behind such kernels.")
        .proves("Ranks wait for each other there: without this wait the GPU would have waited all the same. Which rank came late, and for how long, is said where the capture holds it.")
        .example("\
host      [all_reduce] [synchronize====================]
stream 7        [ncclDevKernel_AllReduce~~~~~~~~~~~~]
peer            ………………………… late …………………………[ncclDevKernel~]"),
    rule(RuleId::R25, Yields::to(To::Anything))
        .strays()
        .looks_at("As R02, R04, R05 and R06; with it the names of the user's functions and NVTX ranges around: words such as timer, bench, warm-up; whether it is the last call of most ranges of one name, and no second wait there; two events around the work, of which nothing waits for the first; clock_gettime within a millisecond, in captures with operating-system calls.")
        .proves("The program measures time there: the range or the clock would miss what the GPU still does.")
        .example("\
NVTX      [benchmark                                   ]
host      [launch] [synchronize==] [clock_gettime]
stream 7     [gemm~~~~~~~~~~~]"),
    rule(RuleId::R02, Yields::to(To::Decided))
        .looks_at("Copies at the wait and unawaited ones before it: there are none.")
        .proves("The CPU receives nothing. Whether it measures time, or is a barrier that another line needs, the source may show.")
        .example("\
host      [launch] [synchronize==]
stream 7     [gemm~~~~~~~~~~~]                       <- no copy to the host"),
    rule(RuleId::R20, Yields::to(To::Anything))
        .looks_at("A copy to the host that the wait completes, and the Python method that made it, where one is named.")
        .proves("The CPU has a value. Whether the program needs it there, only its use tells: unknown, unless the source decides.")
        .example("\
host      [launch] [D2H 4 B] [synchronize==]
stream 7     [gemm~~~~~~~~~~~~] [copy]               <- 4 B reach the CPU"),
    rule(RuleId::R21, Yields::to(To::Anything))
        .looks_at("What is left: no copy, frame, chain or range, or an export that lacks the work awaited.")
        .proves("Nothing.")
        .example("\
host      [synchronize==========]
stream 7  ?"),
];
