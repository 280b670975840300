//! F01 to F12: synchronisation that the code asks for by name.

use super::{CTX_SYNC, Category::*, EVENT_SYNC, Pattern, PatternId::*, Strategy::*};
use crate::vocabulary::Kind::*;

const BASE: Pattern =
    Pattern::BASE.kind(Explicit).driver_api(CTX_SYNC).trace("cudaDeviceSynchronize without a copy before it");

pub(super) const PATTERNS: &[Pattern] = &[
    BASE.entry(F01, "torch.cuda.synchronize()")
        .triggers(&["torch.cuda.synchronize()", "torch.accelerator.synchronize()"])
        .op("torch.cuda.synchronize")
        .why("The CPU waits for all streams of the device, but receives nothing.")
        .fix(Remove, "delete it where no code on the CPU needs the result")
        .before("t0 = time.perf_counter()\ny = model(x)\ntorch.cuda.synchronize()\nms = 1e3 * (time.perf_counter() - t0)")
        .after("start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))\nstart.record()\ny = model(x)\nend.record()\n# after the loop\nend.synchronize()\nms = start.elapsed_time(end)")
        .mind("Keep it before the CPU reads a buffer that a non_blocking copy fills or writes to one that it uploads, or before another process or a custom library uses the data.")
        .or(&["a clock: time with CUDA events, read after the loop", "an order between streams: wait_stream"])
        .sources("PyTorch cuda/Module.cpp; seen in captures")
        .at("torch/cuda/__init__.py", "synchronize")
        .at("torch/accelerator/__init__.py", "synchronize"),
    BASE.entry(F02, "stream.synchronize()")
        .triggers(&["stream.synchronize()", "torch.cuda.current_stream().synchronize()"])
        .op("torch.cuda.Stream.synchronize")
        .trace("cudaStreamSynchronize without a copy before it")
        .why("The CPU waits for one stream, but receives nothing.")
        .fix(Remove, "let the GPU wait: other.wait_stream(stream)")
        .before("side.synchronize()\ny = model(x)")
        .after("torch.cuda.current_stream().wait_stream(side)\nx.record_stream(torch.cuda.current_stream())  # x was made on side\ny = model(x)")
        .mind("Needed before the CPU reads a pinned buffer that a copy on this stream fills, or writes to one that it uploads. Without record_stream the memory of x may be given away while the other stream still reads it.")
        .or(&["delete it where nothing uses the result"])
        .driver_api(super::STREAM_SYNC)
        .sources("PyTorch CUDAStream.h; seen in captures")
        .at("torch/cuda/streams.py", "synchronize Stream.synchronize"),
    BASE.entry(F03, "event.synchronize()")
        .triggers(&["event.synchronize()", "ev.synchronize()"])
        .op("torch.cuda.Event.synchronize")
        .trace("cudaEventSynchronize without a copy before it")
        .why("The CPU waits until the GPU has passed the event, but receives nothing.")
        .fix(Remove, "let the GPU wait: stream.wait_event(event)")
        .before("event.synchronize()\ny = model(x)")
        .after("torch.cuda.current_stream().wait_event(event)\nx.record_stream(torch.cuda.current_stream())  # x was made on another stream\ny = model(x)")
        .mind("Needed before the CPU reads or writes a pinned buffer, and where it limits memory or the number of steps in flight.")
        .driver_api(EVENT_SYNC)
        .sources("PyTorch CUDAEvent.h; seen in captures")
        // Frames without the class name are those of F02: the driver call tells the two apart.
        .at("torch/cuda/streams.py", "Event.synchronize"),
    BASE.entry(F04, "polling with event.query() or stream.query()")
        .triggers(&["while not ev.query(): pass", "stream.query()"])
        .op("cudaEventQuery, cudaStreamQuery")
        .trace("many cudaEventQuery calls in a row on one thread; exports may label them as event synchronisation")
        .by_use()
        .intended()
        .why("Each call returns at once, but a loop of them keeps the CPU busy until the GPU is done.")
        .fix(Delay, "do other work first, then wait once")
        .before("while not ev.query():\n    pass")
        .after("prepare_next_batch()\nev.synchronize()")
        .mind("A loop that does useful work between the queries is fine.")
        .driver_api("cuEventQuery")
        .sources("seen in captures"),
    BASE.entry(F05, "wait_stream(), wait_event(), record_stream()")
        .category(NotAWait)
        .triggers(&[
            "event.wait()",
            "stream.wait_event(ev)",
            "stream.wait_stream(other)",
            "t.record_stream(s)",
        ])
        .op("cudaStreamWaitEvent")
        .trace("cudaStreamWaitEvent, back within a microsecond")
        .by_use()
        .why("Only the GPU's streams wait for each other; the CPU goes on.")
        .fix(Leave, "nothing to do: the CPU does not wait")
        .driver_api("cuStreamWaitEvent")
        .sources("seen in captures"),
    BASE.entry(F06, "start.elapsed_time(end)")
        .category(NotAWait)
        .triggers(&["start.elapsed_time(end)"])
        .op("cudaEventElapsedTime")
        .trace("no wait; an error if the events are not done")
        .by_use()
        .why("It reads two finished events. The synchronize() in front of it is what costs.")
        .fix(Delay, "keep the events; read them after the loop")
        .before("start.record()\ny = model(x)\nend.record()\nend.synchronize()\nms = start.elapsed_time(end)")
        .after("start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))\nstart.record()\ny = model(x)\nend.record()\npairs.append((start, end))\n# after the loop\nend.synchronize()\ntimes = [s.elapsed_time(e) for s, e in pairs]")
        .mind("Each step needs events of its own: one that is recorded again forgets its time.")
        .driver_api("cuEventElapsedTime")
        .sources("PyTorch CUDAEvent.h"),
    BASE.entry(F07, "entering torch.cuda.graph()")
        .triggers(&["torch.cuda.graph(g)", "torch.cuda.make_graphed_callables(model, args)"])
        .op("torch.cuda.graph.__enter__")
        .trace("cudaDeviceSynchronize and a row of cudaFree before the capture")
        .intended()
        .why("A capture starts from an idle device and an empty cache.")
        .fix(Leave, "nothing to do if captured once")
        .or(&["captured again and again: keep the graph"])
        .sources("torch/cuda/graphs.py")
        .at("torch/cuda/graphs.py", "__enter__ __exit__ capture_begin capture_end make_graphed_callables"),
    BASE.entry(F08, "CUDAGraph.replay() on an old driver")
        .triggers(&["graph.replay()"])
        .op("CUDAGraph::replay")
        .trace("cudaGraphLaunch followed by cudaDeviceSynchronize at each replay")
        .why("PyTorch works around a fault of drivers before CUDA 11.4.")
        .fix(Remove, "install a driver for CUDA 11.4 or later")
        .before("# driver older than CUDA 11.4\ngraph.replay()")
        .after("# newer driver: no wait\ngraph.replay()")
        .versions("drivers before CUDA 11.4")
        .sources("PyTorch CUDAGraph.cpp")
        .at("torch/cuda/graphs.py", "replay"),
    BASE.of_kind(F09, "starting and stopping a profiler", Timing)
        .triggers(&[
            "torch.profiler.profile()",
            "torch.autograd.profiler.emit_nvtx()",
            "torch.cuda.profiler.stop()",
        ])
        .op("torch.profiler, torch.autograd.profiler")
        .trace("cudaDeviceSynchronize or cudaEventSynchronize where ranges end")
        .intended()
        .why("The profiler waits so that its numbers are complete.")
        .fix(ExcludeFromCapture, "capture without the second profiler")
        .before("with torch.profiler.profile() as prof:\n    train_step()")
        .after("train_step()  # under nsys alone")
        .sources("torch/autograd/profiler.py")
        .at("torch/autograd/profiler.py", "")
        .at("torch/profiler/profiler.py", "")
        .at("torch/cuda/profiler.py", "start stop"),
    BASE.of_kind(F10, "benchmark helpers: benchmark.Timer, triton do_bench", Timing)
        .triggers(&["torch.utils.benchmark.Timer(stmt)", "triton.testing.do_bench(fn)"])
        .op("torch.utils.benchmark, triton.testing.do_bench")
        .trace("cudaDeviceSynchronize around each measured block")
        .intended()
        .why("A measurement has to wait for what it measures.")
        .fix(ExcludeFromCapture, "benchmark outside the captured region")
        .before("torch.cuda.profiler.start()\nms = triton.testing.do_bench(lambda: f(x))")
        .after("ms = triton.testing.do_bench(lambda: f(x))\ntorch.cuda.profiler.start()")
        .sources("triton/testing.py")
        .at("triton/testing.py", "do_bench do_bench_cudagraph")
        .at("torch/utils/benchmark/utils/timer.py", "")
        .package("torch"),
    BASE.entry(F11, "CUDA tensors through multiprocessing queues")
        .triggers(&["queue.put(cuda_tensor)"])
        .op("StorageSharing")
        .trace("cudaStreamSynchronize without a copy")
        .intended()
        .why("Another process will read the memory, so the sender waits until it is written.")
        .fix(Offload, "send CPU data between processes")
        .before("queue.put(batch.cuda())")
        .after("queue.put(batch)  # a CPU tensor; the receiver uploads it")
        .or(&["send indices, and load in the receiver"])
        .driver_api(super::STREAM_SYNC)
        .sources("PyTorch StorageSharing.cpp")
        .at("torch/multiprocessing/reductions.py", "reduce_tensor"),
    BASE.entry(F12, "numba, CuPy, PyCUDA: synchronize() and get()")
        .triggers(&["cupy.asnumpy(a)", "a.get()"])
        .op("library calls outside PyTorch")
        .trace("cudaStreamSynchronize, cudaDeviceSynchronize or cudaMemcpy without PyTorch frames")
        .by_use()
        .why("Another GPU library waits, or copies data to the CPU. Its use of the data decides.")
        .fix(SyncFreeApi, "exchange data by DLPack on one stream")
        .before("t = torch.from_numpy(a.get()).cuda()")
        .after("t = torch.from_dlpack(a)  # a is a CuPy array")
        .mind("Both sides must agree on the stream, and share the memory: clone() where one of them writes.")
        .sources("general knowledge"),
];
