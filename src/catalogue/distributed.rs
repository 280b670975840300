//! H01 to H14: collectives, DDP, FSDP, pipelines.

use super::{Category::*, EVENT_SYNC, Pattern, Strategy::*};
use crate::vocabulary::Kind::{self, *};

const BASE: Pattern = Pattern::BASE.category(Distributed);

pub(super) const PATTERNS: &[Pattern] = &[
    BASE.entry("H01", "all_reduce(), work.wait() with NCCL")
        .category(NotAWait)
        .triggers(&["dist.all_reduce(t)", "work.wait()"])
        .op("ProcessGroupNCCL::WorkNCCL::wait")
        .trace("cudaEventRecord and cudaStreamWaitEvent; the host goes on")
        .why("The current stream waits for NCCL's stream, the CPU does not.")
        .fix(Leave, "nothing to do: the CPU does not wait")
        .driver_api("cuStreamWaitEvent")
        .sources("PyTorch ProcessGroupNCCL.cpp; seen in captures"),
    BASE.of_kind("H02", "blocking wait for NCCL", Explicit)
        .triggers(&["TORCH_NCCL_BLOCKING_WAIT=1", "work.wait(timeout)"])
        .op("ProcessGroupNCCL::WorkNCCL::synchronizeInternal")
        .trace("cudaEventQuery in a loop on the calling thread")
        .intended()
        .why("With this switch, or with a timeout argument, the CPU polls until the collective is done.")
        .fix(Remove, "wait() without timeout")
        .before("work.wait(timeout=timedelta(seconds=30))")
        .after("work.wait()")
        .mind("Timeouts are then raised by the watchdog, which ends the process.")
        .or(&["unset TORCH_NCCL_BLOCKING_WAIT"])
        .driver_api("cuEventQuery")
        .sources("PyTorch ProcessGroupNCCL.cpp"),
    BASE.of_kind("H03", "dist.barrier()", Explicit)
        .triggers(&["dist.barrier()", "torch.distributed.barrier()"])
        .op("c10d::barrier")
        .trace("a fill kernel, an NCCL all-reduce of one element, then cudaStreamSynchronize without a copy")
        .intended()
        .why("All ranks wait for each other on the CPU, and with it for all work queued before.")
        .fix(Remove, "remove it from the loop")
        .before("for x in loader:\n    train_step(x)\n    dist.barrier()")
        .after("for x in loader:\n    train_step(x)  # collectives order the ranks already")
        .mind("Keep it where ranks exchange files, for example around a checkpoint.")
        .or(&["needed there: a barrier of a gloo group waits for ranks, not for the GPU"])
        .versions("older PyTorch waits for the whole device")
        .sources("PyTorch ProcessGroupNCCL.cpp")
        .site(&[("torch/distributed/distributed_c10d.py", "barrier")]),
    BASE.entry("H04", "NCCL watchdog and heartbeat threads")
        .category(NotAWait)
        .triggers(&["dist.init_process_group('nccl')"])
        .op("ProcessGroupNCCL::watchdogHandler")
        .trace("cudaEventQuery on the threads pt_nccl_watchdg and pt_nccl_heartbt")
        .why("These threads poll; the main thread is not held up.")
        .fix(Leave, "nothing to do: another thread polls")
        .driver_api("cuEventQuery")
        .sources("PyTorch ProcessGroupNCCL.cpp; seen in captures"),
    BASE.of_kind("H05", "DDP's run-time statistics", Timing)
        .triggers(&["DistributedDataParallel(model)(x)"])
        .op("c10d::Logger::set_runtime_stats_and_log")
        .trace("a few cudaEventSynchronize at the start of forward, in iterations 1 to 10 and then every 100th")
        .intended()
        .why("DDP times its forward and backward pass in the first 10 iterations, and then in one of 100.")
        .fix(Leave, "nothing to do: from the 11th iteration on, one in 100")
        .before("ddp = DistributedDataParallel(model)")
        .after("ddp = DistributedDataParallel(model)\nddp._set_ddp_runtime_logging_sample_rate(10000)")
        .mind("A private method: it may change.")
        .versions("every iteration before 2.0")
        .driver_api(EVENT_SYNC)
        .sources("PyTorch reducer_cuda.cpp, reducer.cpp"),
    BASE.of_kind("H06", "DDP with find_unused_parameters=True", ControlFlow)
        .triggers(&["DistributedDataParallel(model, find_unused_parameters=True)"])
        .op("c10d::Reducer::finalize_backward")
        .trace("an NCCL all-reduce, then a pageable copy of 4 bytes per parameter with cudaStreamSynchronize, on an autograd thread")
        .why("If a parameter got no gradient, the CPU must learn whether any rank used it.")
        .fix(SyncFreeApi, "static_graph=True")
        .before("ddp = DDP(model, find_unused_parameters=True)")
        .after("ddp = DDP(model, static_graph=True)")
        .mind("static_graph needs the same parameters used in every iteration.")
        .or(&["use all parameters in each forward pass"])
        .sources("PyTorch reducer.cpp"),
    BASE.of_kind("H07", "DDP with uneven inputs (Join)", ControlFlow)
        .triggers(&["with ddp.join(): train(ddp)"])
        .op("DistributedDataParallel._find_common_rank, Join")
        .trace("a copy of 4 bytes to pinned host memory, then cudaStreamSynchronize")
        .why("Each iteration asks how many ranks still have data.")
        .fix(SyncFreeApi, "give all ranks equally many batches")
        .before("with ddp.join():\n    for x in loader:\n        train_step(ddp, x)")
        .after("sampler = DistributedSampler(ds, drop_last=True)\nfor x in DataLoader(ds, sampler=sampler):\n    train_step(ddp, x)")
        .mind("The last samples are dropped, or repeated with drop_last=False.")
        .sources("torch/nn/parallel/distributed.py")
        .site(&[
            (
                "torch/nn/parallel/distributed.py",
                "_find_common_rank _check_global_requires_backward_grad_sync",
            ),
            ("torch/distributed/algorithms/join.py", "_get_num_nonjoined_procs"),
        ]),
    BASE.of_kind("H08", "FSDP limit_all_gathers", Explicit)
        .triggers(&["FullyShardedDataParallel(model, limit_all_gathers=True)"])
        .op("FullyShardedDataParallel.rate_limiter")
        .trace("cudaEventSynchronize per all-gather once two are in flight")
        .intended()
        .why("The CPU is held back so that not too many gathered parameters occupy memory.")
        .fix(Remove, "limit_all_gathers=False")
        .before("model = FSDP(model)")
        .after("model = FSDP(model, limit_all_gathers=False)")
        .mind("Only where memory allows: peak memory rises, and running out of it costs far more than this wait.")
        .or(&["FSDP2 has no such wait"])
        .driver_api(EVENT_SYNC)
        .sources("torch/distributed/fsdp/_runtime_utils.py")
        .site(&[("torch/distributed/fsdp/_runtime_utils.py", "_unshard")]),
    BASE.of_kind("H09", "FSDP with CPU offload", CpuCompute)
        .triggers(&[
            "FullyShardedDataParallel(model, cpu_offload=CPUOffload(True))",
            "fully_shard(m, offload_policy=CPUOffloadPolicy())",
        ])
        .op("torch.distributed.fsdp")
        .trace("copies to pinned host memory, then cudaStreamSynchronize or cudaEventSynchronize after backward")
        .why("The optimizer runs on the CPU and needs the gradients there.")
        .fix(Offload, "train without CPU offload if memory allows")
        .before("fully_shard(model, offload_policy=CPUOffloadPolicy())")
        .after("fully_shard(model)")
        .mind("Needs room for parameters and optimizer state on the GPU.")
        .sources("torch/distributed/fsdp")
        .site(&[
            ("torch/distributed/fsdp/_runtime_utils.py", "_post_backward_final_callback"),
            ("torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py", "finalize_backward"),
        ]),
    BASE.of_kind("H10", "FSDP: ShardedGradScaler, state_dict, optimizer state", ControlFlow)
        .triggers(&["ShardedGradScaler().step(opt)", "FSDP.optim_state_dict(model, opt)"])
        .op("torch.distributed.fsdp")
        .trace("copies of 4 bytes with cudaStreamSynchronize; cudaDeviceSynchronize around state_dict")
        .why("The scaler asks whether a gradient overflowed; collecting states waits for the device.")
        .fix(SyncFreeApi, "train in bfloat16 without a scaler")
        .before("scaler = ShardedGradScaler()\nscaler.scale(loss).backward()")
        .after("model = FSDP(model, mixed_precision=MixedPrecision(param_dtype=torch.bfloat16))\nloss.backward()")
        .mind("bfloat16 has fewer digits than float16.")
        .or(&["state_dict and optimizer state: save more rarely"])
        .sources("torch/distributed/fsdp/sharded_grad_scaler.py")
        .site(&[
            ("torch/distributed/fsdp/sharded_grad_scaler.py", ""),
            ("torch/distributed/fsdp/_state_dict_utils.py", ""),
            ("torch/distributed/fsdp/_optim_utils.py", ""),
        ]),
    BASE.of_kind("H11", "nn.SyncBatchNorm in training", Kind::ErrorCheck)
        .category(Distributed)
        .triggers(&["nn.SyncBatchNorm(n)(x)", "nn.SyncBatchNorm.convert_sync_batchnorm(model)"])
        .op("torch.nn.modules._functions.SyncBatchNorm.forward")
        .trace("an NCCL all-gather, a comparison, then three mask selections with counts (4 bytes to the host): three waits per layer")
        .why("Ranks with an empty input are filtered out by a mask, although no rank normally has one.")
        .fix(SyncFreeApi, "use GroupNorm")
        .before("model = nn.SyncBatchNorm.convert_sync_batchnorm(model)")
        .after("norm = nn.GroupNorm(num_groups=32, num_channels=64)  # in place of BatchNorm2d(64)")
        .mind("Another normalisation changes the model.")
        .or(&["capture the step with CUDA graphs: the check is skipped then"])
        .sources("pytorch#78549, pytorch#78666")
        .site(&[("torch/nn/modules/_functions.py", "forward")]),
    BASE.of_kind("H12", "gloo collectives on CUDA tensors", CpuCompute)
        .triggers(&["dist.init_process_group('gloo')"])
        .op("ProcessGroupGloo")
        .trace("copies to and from pinned host memory with cudaStreamSynchronize or cudaEventSynchronize")
        .why("gloo works on the CPU, so the data is staged through host memory.")
        .fix(SyncFreeApi, "use NCCL for CUDA tensors")
        .before("dist.init_process_group('gloo')")
        .after("dist.init_process_group('cpu:gloo,cuda:nccl')")
        .sources("general knowledge"),
    BASE.of_kind("H13", "first collective on a new communicator", Barrier)
        .triggers(&["dist.new_group(ranks)", "dist.all_reduce(t)"])
        .op("ncclCommInitRank")
        .trace("cudaMalloc and synchronisation inside ncclCommInit, once per communicator")
        .why("NCCL sets up its buffers and connections at first use.")
        .fix(ExcludeFromCapture, "run one collective before the capture")
        .before("torch.cuda.profiler.start()\ndist.all_reduce(t)")
        .after("dist.all_reduce(torch.zeros(1, device='cuda'))\ntorch.cuda.profiler.start()\ndist.all_reduce(t)")
        .sources("general knowledge"),
    BASE.of_kind("H14", "shape exchange between pipeline stages", DynamicShape)
        .triggers(&["recv_prev_shape.tolist()"])
        .op("Tensor.tolist")
        .trace("a pageable copy of 24 bytes with cudaStreamSynchronize, and cudaDeviceSynchronize")
        .why("The next stage allocates its input by the shape that the previous one sends.")
        .fix(SyncFreeApi, "pad sequences to one length")
        .before("dist.recv(shape, src=prev)\nx = torch.empty(shape.tolist(), device='cuda')")
        .after("x = torch.empty((micro_batch, seq_len, hidden), device='cuda')")
        .mind("Padding costs computation. Leave send(shape) out on the other side, too.")
        .sources("Megatron-LM"),
];
