//! D01 to D09: whole tensors on their way to the CPU.

use super::{Case, Category::*, EVENT_SYNC, OF_MOVED, Pattern, PatternId::*, Reads, Strategy::*};
use crate::vocabulary::Kind::*;

const BASE: Pattern = Pattern::BASE
    .reads(Reads::Tensors)
    .category(DeviceMovement)
    .op("aten::copy_")
    .trace("a copy from the GPU to pageable host memory, then cudaStreamSynchronize");

pub(super) const PATTERNS: &[Pattern] = &[
    BASE.entry(D01, ".cpu(), .to('cpu'), .numpy() of a CUDA tensor")
        .instead(OF_MOVED)
        .triggers(&[".cpu()", ".to('cpu')", ".cpu().numpy()"])
        .op("aten::to, aten::_to_copy")
        .why("The CPU receives the data and waits until it is there. Whether it needs it now depends on what follows.")
        .fix(NonBlocking, "copy with non_blocking=True; wait on an event before use")
        .before("y = x.cpu()\nsave(y)")
        .after("y = x.to('cpu', non_blocking=True)  # into pinned memory\ndone = torch.cuda.Event()\ndone.record()\nprepare_next_batch()\ndone.synchronize()\nsave(y)")
        .mind("Reading y before the event is done gives garbage without any error.")
        .or(&["many results: collect them on the GPU, copy once after the loop"])
        .sources("PyTorch Copy.cu, TensorConversions.cpp"),
    BASE.entry(D02, "Tensor.tolist()")
        .instead(OF_MOVED)
        .triggers(&[".tolist()"])
        .op("Tensor.tolist")
        .why("All values go to the CPU in one copy. One tolist() for many values is better than many item() calls.")
        .fix(NonBlocking, "copy early, tolist() after an event")
        .before("ids = next_tokens.tolist()")
        .after("host = next_tokens.to('cpu', non_blocking=True)\ndone = torch.cuda.Event()\ndone.record()\nlaunch_next_step(next_tokens)\ndone.synchronize()\nids = host.tolist()")
        .mind("Do not read host before the event is done.")
        .sources("PyTorch tensor_list.cpp; vllm#22760"),
    BASE.of_kind(D03, ".type(torch.LongTensor)", RoundTrip)
        .triggers(&[".type(torch.LongTensor)", ".type('torch.FloatTensor')"])
        .op("aten::to")
        .why("torch.LongTensor names a CPU tensor type: a cast was meant, but the data moves to the CPU.")
        .fix(Remove, "cast with .to(torch.long): the data stays on the GPU")
        .before("idx = idx.type(torch.LongTensor).cuda()")
        .after("idx = idx.to(torch.long)")
        .mind("Where the CPU goes on with it (.numpy(), a library), the copy is needed.")
        .sources("NVIDIA sync-free guide, category 2"),
    BASE.entry(D04, "copy_(gpu, non_blocking=True) into pageable memory")
        .instead(OF_MOVED)
        .triggers(&["cpu.copy_(gpu, non_blocking=True)"])
        .trace("a copy to pageable host memory without cudaStreamSynchronize; the call itself blocks")
        .why("A copy to pageable memory is staged by the driver, so non_blocking has no effect.")
        .fix(NonBlocking, "a pinned destination; read it after an event")
        .before("host = torch.empty(n)  # once\nhost.copy_(x, non_blocking=True)\nprepare_next_batch()\nuse(host)")
        .after("host, done = torch.empty(n, pin_memory=True), torch.cuda.Event()  # once\nhost.copy_(x, non_blocking=True)\ndone.record()\nprepare_next_batch()\ndone.synchronize()  # before the CPU reads host\nuse(host)")
        .mind("With a pinned destination the copy really is asynchronous: what reads host before the event reads garbage.")
        .driver_api("cuMemcpyDtoHAsync")
        .sources("CUDA API synchronisation behaviour"),
    BASE.of_kind(D05, "pinned copy, then event.synchronize() before reading", Barrier)
        .triggers(&["pinned.copy_(gpu, non_blocking=True)"])
        .trace("a copy to pinned host memory, work in between, then cudaEventSynchronize")
        .why("The wait guards the CPU's read or write of the buffer. This is the right form; only its place can be better.")
        .fix(Delay, "wait later: after the next step is launched")
        .before("host.copy_(x, non_blocking=True)\nev.record()\nev.synchronize()\nuse(host)")
        .after("host.copy_(x, non_blocking=True)\nev.record()\nlaunch_next_step()\nev.synchronize()\nuse(host)")
        .mind("Do not remove the wait: the buffer would be read before it is filled, or written before it is sent. Nothing may write x or host between.")
        .or(&[
            "one step late, with two buffers and an event for each",
            "where it stays and another thread needs the core: torch.cuda.Event(blocking=True) sleeps instead of spinning",
        ])
        .driver_api(EVENT_SYNC)
        .sources("vllm#22760; Megatron-LM MoE dispatcher"),
    BASE.of_kind(D06, "a CPU function between two GPU steps", CpuCompute)
        .triggers(&["f(x.cpu()).to('cuda')", "torch.from_numpy(f(x.cpu().numpy())).cuda()"])
        .trace("a copy to pageable host memory and cudaStreamSynchronize, a gap on the CPU, then an H2D copy")
        .why("The middle step runs on the CPU, so the data goes there and back.")
        .fix(SyncFreeApi, "do the middle step on the GPU")
        .before("mask = torch.from_numpy(np.cumsum(x.cpu().numpy(), axis=0)).cuda()")
        .after("mask = torch.cumsum(x, dim=0)")
        .sources(""),
    BASE.of_kind(D07, "torch.save() of CUDA tensors, checkpoints", CpuCompute)
        .triggers(&["torch.save(state, path)", "dcp.save(state)"])
        .op("torch.serialization._save")
        .trace("a long row of large copies to pageable or pinned host memory, each with cudaStreamSynchronize")
        .why("The bytes are written to a file, so the CPU needs them.")
        .fix(Coalesce, "copy all tensors, wait once, then save")
        .before("torch.save(model.state_dict(), path)")
        .after("state = {k: v.to('cpu', non_blocking=True) for k, v in model.state_dict().items()}\ntorch.cuda.current_stream().synchronize()  # one wait for all, before any is read\ntorch.save(state, path)")
        .mind("Tensors that share memory (tied weights) are written twice; in nested states, as of optimizers, every level needs it.")
        .instead(super::library_options::SAVING_CASES)
        .or(&["dcp.async_save() writes the file on another thread: its copies to the host wait as before; another file format, one save at a time"])
        .sources("torch/serialization.py, torch/distributed/checkpoint")
        .at("torch/serialization.py", "save _save _legacy_save persistent_id")
        .at("torch/distributed/checkpoint/filesystem.py", "")
        .at("torch/distributed/checkpoint/staging.py", ""),
    BASE.of_kind(D08, "collecting predictions batch by batch", Logging)
        .instead(&[(Case::NumberIs(Logging), A01)])
        .triggers(&["preds.append(p.cpu())"])
        .op("aten::to")
        .why("The results are only used after the loop, yet every batch waits for its own.")
        .fix(Delay, "collect on the GPU; copy once after the loop")
        .before("for x in loader:\n    preds.append(model(x).cpu())")
        .after("for x in loader:\n    preds.append(model(x).detach())\npreds = torch.cat(preds).cpu()")
        .mind("All results must fit in GPU memory. clone() what is written again in place, as the output of a CUDA graph; single numbers take torch.stack.")
        .or(&["too large for the GPU: copy each with non_blocking=True into pinned memory of its own, and wait for one event after the last copy before any is read"])
        .sources(""),
    BASE.of_kind(D09, "torch.linalg.eig(), eigvals()", CpuCompute)
        .triggers(&["torch.linalg.eig(a)", "torch.linalg.eigvals(a)"])
        .op("aten::linalg_eig")
        .trace("a copy of 1 byte and one of the matrix to the host with cudaStreamSynchronize, work on the CPU, then an H2D copy")
        .why("There is no GPU routine for general matrices in this version, so LAPACK runs on the CPU.")
        .fix(SyncFreeApi, "use eigh where the matrix is symmetric")
        .before("w, v = torch.linalg.eig(a)")
        .after("w, v = torch.linalg.eigh(a)")
        .mind("Only for symmetric or Hermitian matrices; eigh still checks for errors.")
        .versions("seen in 2.6; newer builds can use cuSOLVER")
        .sources("PyTorch BatchLinearAlgebra.cpp"),
];
