//! A01 to A14: reads of single values that the user's own line asks for.

use super::shape::OVER_EXPERTS;
use super::{Case, Category::*, Pattern, PatternId::*, Reads, Strategy::*};
use crate::vocabulary::Kind::*;

const READ: &str = "copy of one value (1 to 16 bytes) to pinned host memory, then cudaStreamSynchronize; no kernel of its own";
const BASE: Pattern = Pattern::BASE
    .reads(Reads::Number)
    .op("aten::_local_scalar_dense")
    .trace(READ)
    .versions("the host side of the copy is pageable memory before PyTorch 2.3");

pub(super) const PATTERNS: &[Pattern] = &[
    BASE.entry(A01, "Tensor.item()")
        .triggers(&[".item()"])
        .op("aten::item, aten::_local_scalar_dense")
        .why("One value goes to the CPU, which waits until the GPU has computed it. Whether that is needed depends on \
              what happens to the value.")
        .fix(Delay, "keep the scalar on the GPU; read it when you log")
        .before("loss_sum += loss.item()")
        .after("loss_sum = torch.zeros((), device='cuda')  # once\nloss_sum += loss.detach()\nif step % 100 == 0:\n    print(loss_sum.item() / 100)\n    loss_sum.zero_()")
        .mind("A value that steers the program (if, size, learning rate) cannot be read late. What is kept and changed in place later (an element of a running sum) needs .clone().")
        .or(&[
            "the mean of an epoch: leave zero_() out, and count on",
            "a metric gathered over ranks: append the tensor, gather once where it is logged",
        ])
        .sources("PyTorch CUDAScalar.cu; pytorch#119202; seen in captures"),
    BASE.entry(A02, "float(), int(), complex() of a tensor")
        .triggers(&["float(t)", "int(t)", "complex(t)"])
        .why("Python's conversion functions call item(): the same wait under another name.")
        .fix(Delay, "collect tensors; make numbers of them after the loop")
        .before("history.append(float(loss))")
        .after("history.append(loss.detach())\n# after the loop: one wait for all\nvalues = torch.stack(history).tolist()")
        .mind("Until then history holds GPU tensors, which NumPy does not take. clone() what is written again in place, such as the output of a CUDA graph.")
        .or(&["a running sum: total += loss.detach() adds it up on the GPU; read total once"])
        .sources("PyTorch python_variable_methods.cpp"),
    BASE.of_kind(A03, "truth value of a tensor (if, while, not, and, assert)", ControlFlow)
        .instead(&[OVER_EXPERTS, (Case::Is(RoundTrip), A37)])
        .triggers(&["if t:", "while t:", "not t", "t and u", "assert t", "bool(t)", "a < t < b"])
        .op("aten::is_nonzero")
        .trace("a comparison kernel, a copy of 1 byte to pinned host memory (the value's size if nothing is compared), then cudaStreamSynchronize")
        .why("Python takes a branch, so it must know the value before it can go on.")
        .fix(SyncFreeApi, "torch.where, if the branch only chooses between tensors")
        .before("if (x > limit).any():\n    x = x.clamp(max=limit)")
        .after("x = torch.where(x > limit, limit, x)")
        .mind("Both sides are computed. What the branch does beside (a file, a break, a flag) still needs the answer.")
        .or(&["else, or where one side costs much: ask every N steps", "whether it was given at all: `is not None` asks nothing of the GPU"])
        .sources("PyTorch test_sync_warning"),
    BASE.of_kind(A04, "torch.is_nonzero()", ControlFlow)
        .instead(&[OVER_EXPERTS, (Case::Is(RoundTrip), A37)])
        .triggers(&["torch.is_nonzero(t)"])
        .op("aten::is_nonzero")
        .why("The answer is a Python bool, so the CPU waits for it.")
        .fix(SyncFreeApi, "compare on the GPU and select with torch.where")
        .before("y = a if torch.is_nonzero(flag) else b")
        .after("y = torch.where(flag != 0, a, b)")
        .mind("Both a and b are computed, and must have shapes that broadcast.")
        .sources("PyTorch native_functions"),
    BASE.of_kind(A05, "Python builtins over tensors (max, min, sorted, math.*)", ControlFlow)
        .triggers(&["max(a, b)", "min(a, b)", "sorted(tensors)", "math.sqrt(t)"])
        .op("aten::is_nonzero or aten::item")
        .trace("a comparison kernel, a copy of 1 byte to pinned host memory and cudaStreamSynchronize for each comparison")
        .why("Python orders the tensors itself and asks the GPU for the outcome of every comparison.")
        .fix(SyncFreeApi, "torch's own: t.max(), torch.maximum, torch.sqrt")
        .before("worst = max(loss_a, loss_b)\nnorm = math.sqrt(total)")
        .after("worst = torch.maximum(loss_a, loss_b)\nnorm = torch.sqrt(total)")
        .mind("The results are tensors, not Python numbers, and both operands must be. NaN stays NaN, and the root of a negative number is NaN, no error.")
        .or(&["the elements of one tensor: t.max(), one operation in place of a wait for each", "many tensors: torch.stack(ts).max()"])
        .sources("NVIDIA sync-free guide, category 4"),
    BASE.of_kind(A06, "value in tensor", ControlFlow)
        .triggers(&["x in t"])
        .op("Tensor.__contains__")
        .trace("an equality kernel and a reduction, a copy of 1 byte to pinned host memory, then cudaStreamSynchronize")
        .why("`in` must answer with a Python bool.")
        .fix(SyncFreeApi, "keep the answer as a GPU mask: (t == x).any()")
        .before("done = eos_id in tokens")
        .after("done = (tokens == eos_id).any()  # stays on the GPU")
        .mind("A Python branch on the mask waits again.")
        .sources("torch/_tensor.py")
        .at("torch/_tensor.py", "__contains__"),
    BASE.of_kind(A07, "a CUDA tensor used as a size, a range or a list index", DynamicShape)
        .triggers(&["range(t)", "lst[t]", "torch.zeros(t)", "torch.arange(t)", "x.view(t, -1)", "x.repeat(t)"])
        .op("Tensor.__index__")
        .trace("a copy of 8 bytes to pinned host memory, then cudaStreamSynchronize")
        .why("Sizes and loop bounds are Python ints: the CPU cannot allocate or launch without them.")
        .fix(SyncFreeApi, "keep sizes as Python ints")
        .before("n = lengths.max()\nbuf = torch.zeros(n, device='cuda')")
        .after("n = max(host_lengths)  # the data loader knows them\nbuf = torch.zeros(n, device='cuda')")
        .or(&["pad to a fixed maximum"])
        .sources("PyTorch python_arg_parser.h"),
    BASE.of_kind(A08, "slice with CUDA tensors as bounds", DynamicShape)
        .category(Slicing)
        .triggers(&["x[i:j]"])
        .op("Tensor.__index__")
        .trace("a copy of 8 bytes to pinned host memory and cudaStreamSynchronize for each bound: two for x[i:j], four for x[i:j, i:j]")
        .why("A slice needs its bounds as Python ints, and each one is read from the GPU by itself.")
        .fix(SyncFreeApi, "index_select(arange(n) + i)")
        .before("window = x[i:j]")
        .after("idx = torch.arange(n, device='cuda') + i\nwindow = x.index_select(0, idx)")
        .mind("n = j - i must be known on the host, i not negative, and i + n must not pass the end. The result is a copy, not a view. \
             torch.arange(i, j) with CUDA bounds would wait as well.")
        .or(&["carry the bounds as Python ints: then the slice is a view and costs nothing"])
        .sources("PyTorch python_variable_indexing.h; NVIDIA sync-free guide, category 6"),
    BASE.of_kind(A45, "x[i:] = v with CUDA tensors as bounds", DynamicShape)
        .case_of(&[A08])
        .category(Slicing)
        .triggers(&["x[i:] = v", "x[i:j] = v"])
        .op("Tensor.__index__")
        .trace("a copy of 8 bytes to pinned host memory and cudaStreamSynchronize for each bound")
        .why("A slice needs its bounds as Python ints, and each one is read from the GPU by itself.")
        .fix(SyncFreeApi, "fill by a mask: compare positions with the bound on the GPU")
        .before("x[i:] = 0")
        .after("x.masked_fill_((torch.arange(len(x), device='cuda') >= i)[:, None], 0)")
        .mind("The mask stands for the dimension that is sliced: here the first of two. Of x[i:j] it is (p >= i) & (p < j), with p the arange; bounds must not be negative. For another value than a number: x = torch.where(mask, v, x).")
        .or(&["carry the bounds as Python ints: then the slice costs nothing"])
        .sources("PyTorch python_variable_indexing.h; seen in captures"),
    BASE.of_kind(A09, "x[i] with an integer CUDA scalar", RoundTrip)
        .category(Indexing)
        .triggers(&["x[i]", "x[i] = value"])
        .op("aten::select after aten::item")
        .trace("a copy of 8 bytes to pinned host memory, then cudaStreamSynchronize; no kernel follows, the result is a view")
        .why("Plain indexing makes a view at an offset that the CPU computes, so the index travels to the CPU first.")
        .fix(SyncFreeApi, "index_select with the index on the GPU")
        .before("row = x[best]")
        .after("row = x.index_select(0, best.view(1)).squeeze(0)")
        .mind("The result is a copy: writing to it does not change x. best is an int64 or int32 index, not negative.")
        .or(&["an index for each row: gather", "writing: index_fill_ or index_copy_"])
        .versions("assignment x[i] = t keeps the index on the GPU since 2.15; reading still waits")
        .sources("PyTorch TensorIndexing.h"),
    BASE.of_kind(A10, "x[flag] with a boolean CUDA scalar", DynamicShape)
        .triggers(&["x[flag]"])
        .op("aten::item in TensorIndexing")
        .trace("a copy of 1 byte to pinned host memory, then cudaStreamSynchronize")
        .why("The flag decides whether the new leading dimension has size 0 or 1.")
        .fix(SyncFreeApi, "use torch.where(flag, x, other)")
        .before("y = x[flag]")
        .after("y = torch.where(flag, x, torch.zeros_like(x))")
        .mind("The shape no longer depends on the flag: what follows must accept zeros instead of nothing, and a dimension less: y[None] has it.")
        .sources("PyTorch TensorIndexing.h"),
    BASE.of_kind(A11, "a CUDA scalar tensor where an op takes a number", RoundTrip)
        .triggers(&[
            "torch.add(x, y, alpha=t)",
            "torch.full(size, t)",
            "torch.linspace(t0, t1, n)",
            "x.narrow(0, t, n)",
        ])
        .op("aten::_local_scalar_dense in the argument parser")
        .trace("a copy of one value to pinned host memory and cudaStreamSynchronize directly before the op's own kernel")
        .why("The argument is a C++ number, so the value is read to the CPU only to be sent back as a kernel argument.")
        .fix(SyncFreeApi, "use the tensor form: x + t * y")
        .before("out = torch.add(x, y, alpha=t)")
        .after("out = x + t * y")
        .mind("A dtype wider than x in t may promote the result.")
        .or(&["a limit: x.clamp(min=t) takes a tensor", "torch.full(size, t): t.expand(size)", "torch.linspace(a, b, n): a + (b - a) * torch.linspace(0, 1, n)", "x.narrow(0, t, n): x.index_select(0, torch.arange(n) + t)"])
        .sources("PyTorch python_arg_parser.cpp; Koratahiu/Advanced_Optimizers#5"),
    BASE.of_kind(A37, "a value that is read and given back to the GPU", RoundTrip)
        .triggers(&["y = y / x.norm().item()", "total_gpu += loss.item()"])
        .op("aten::_local_scalar_dense")
        .trace("a copy of one value to pinned host memory and cudaStreamSynchronize, then a kernel with the value as its argument")
        .why("The CPU only carries the number: tensors combine with the tensor that held it.")
        .fix(Remove, "leave the read out: combine the tensors")
        .before("scale = x.norm().item()\ny = y / scale")
        .after("scale = x.norm().detach()\ny = y / scale")
        .mind("detach() because the number took no part in autograd; clone() what is changed in place afterwards.")
        .or(&["a test: hand on the comparison itself, without bool() or .item()"])
        .sources("torchtitan#206, DeepSpeed#5115"),
    BASE.of_kind(A38, "a value read to decide when a loop ends", ControlFlow)
        .triggers(&["if loss.item() < target: break", "while gap.item() > tol:"])
        .op("aten::_local_scalar_dense")
        .trace("a copy of one value to pinned host memory, then cudaStreamSynchronize; what follows may differ")
        .why("Python ends the loop by the number, so the CPU waits for it in every iteration.")
        .fix(Delay, "keep it, or look every N steps if stopping late is fine")
        .before("if loss.item() < target:\n    break")
        .after("if step % 10 == 0 and loss.item() < target:\n    break")
        .mind("The program may go a few steps further than before.")
        .or(&[
            "one step late: copy to pinned memory, wait for its event in the next step",
            "where both sides can run: torch.where needs no answer",
        ])
        .sources("NVIDIA sync-free guide, step 4"),
    BASE.of_kind(A42, "a value that a branch needs", ControlFlow)
        .instead(&[OVER_EXPERTS])
        .triggers(&["if acc > best: save(model)", "sorted(scores, key=scores.get)"])
        .op("aten::_local_scalar_dense, aten::is_nonzero")
        .trace("a copy of one value to pinned host memory, then cudaStreamSynchronize; what follows may differ")
        .why("Python takes a branch by the value, so it must know it before it can go on.")
        .fix(Coalesce, "the branch needs it: read it once, with other values")
        .before("if loss_a.item() > limit and loss_b.item() > limit:\n    best = step")
        .after("values = torch.stack([loss_a, loss_b]).tolist()  # one wait for both\nif all(value > limit for value in values):\n    best = step")
        .mind("The tensors must share dtype, shape and device.")
        .or(&[
            "where the branch only computes tensors: torch.where needs no answer",
            "GPU work that does not depend on the answer: launch it before the read",
        ])
        .sources("NVIDIA sync-free guide, step 5"),
    BASE.of_kind(A43, "a value that the CPU computes with", CpuCompute)
        .triggers(&["counts[label.item()] += 1", "f.write(f'{score.item()}')", "group['lr'] = rate.item()"])
        .why("Code on the CPU takes the number, so it must have come from the GPU by then.")
        .fix(Delay, "the CPU needs it: launch other GPU work before the read")
        .before("counts[t.item()] = step\nlaunch_next_step()")
        .after("host = t.to('cpu', non_blocking=True)\ndone = torch.cuda.Event()\ndone.record()\nlaunch_next_step()\ndone.synchronize()\ncounts[host.item()] = step")
        .mind("Only work that does not depend on the number may come before it. Reading host before the event is done gives garbage.")
        .or(&[
            "several values: one torch.stack(...).tolist() for all",
            "needed only after the loop: collect tensors, read them once there",
        ])
        .sources("vllm#22760"),
    BASE.of_kind(A44, "a value that is read now and then already", Logging)
        .triggers(&["if step % 100 == 0: print(loss.item())"])
        .why("The condition around it lets the CPU wait in few turns of the loop: it costs little, unless the interval is short.")
        .fix(Delay, "raise the interval at which it is read, if it costs")
        .before("if step % 10 == 0:\n    log(loss.item())")
        .after("if step % 100 == 0:\n    log(loss.item())")
        .mind("The log has fewer lines.")
        .sources("seen in captures"),
    BASE.of_kind(A12, "masked_fill or index_fill with a CUDA scalar", RoundTrip)
        .triggers(&["x.masked_fill(mask, t)", "x.index_fill_(0, idx, t)"])
        .op("aten::masked_fill_, aten::index_fill_")
        .trace("a copy of one value to pinned host memory and cudaStreamSynchronize, then the fill kernel")
        .why("The fill value is read to the CPU although only the GPU uses it.")
        .fix(SyncFreeApi, "use torch.where(mask, t, x)")
        .before("x = x.masked_fill(mask, t)")
        .after("x = torch.where(mask, t, x)")
        .mind("torch.where promotes dtypes, masked_fill keeps that of x: cast t first. It makes a new tensor: other names of x keep the old one.")
        .or(&["index_fill_: x.index_copy_(0, idx, t.expand(len(idx), *x.shape[1:]))"])
        .sources("PyTorch Indexing.cu"),
    BASE.of_kind(A13, "torch.tensor() of CUDA scalars", RoundTrip)
        .category(TensorCreation)
        .triggers(&["torch.tensor([t, u])", "torch.tensor(t)", "np.array([t, u])"])
        .op("aten::item per element")
        .trace("one scalar copy and cudaStreamSynchronize per element, then an H2D copy from pageable memory if the result is on the GPU")
        .why("Each element is read to the CPU, then the list is uploaded again.")
        .fix(SyncFreeApi, "use torch.stack on the GPU")
        .before("losses = torch.tensor([loss_a, loss_b], device='cuda')")
        .after("losses = torch.stack([loss_a, loss_b])")
        .mind("torch.stack keeps the autograd graph; call detach() where torch.tensor cut it. The elements must share dtype and shape.")
        .or(&["of one tensor: t.detach().clone()", "wanted on the CPU: torch.stack([t, u]).cpu(), one wait"])
        .sources("PyTorch tensor_new.cpp"),
    BASE.entry(A14, "item() in a loop over tensors")
        .instead(&[]) // one read for many values helps whatever they are for
        .triggers(&["[x.item() for x in tensors]", "for v in t: float(v)"])
        .op("aten::item per element")
        .trace("many equal scalar copies with cudaStreamSynchronize and no kernels between them")
        .why("N values are read one by one: N waits where one would do.")
        .fix(Coalesce, "read all at once: one .tolist(), before or after the loop")
        .before("values = [x.item() for x in losses]")
        .after("values = torch.stack(losses).tolist()")
        .mind("The tensors must share dtype, shape and device, and there must be one; those of shape (1,) give lists.")
        .or(&["elements of one tensor: values = t.tolist() before the loop, then values[i]"])
        .sources("NVIDIA sync-free guide, step 5"),
];
