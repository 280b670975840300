"""Every synchronising pattern of PyTorch worth knowing, one function each, with GEMMs pending.

`--oracle FILE` runs the same patterns under torch.cuda.set_sync_debug_mode('warn') and writes which
source lines PyTorch itself reports as synchronising: an oracle that no profiler is involved in.
"""
import argparse, json, sys, warnings
import torch

N = 1024
dev = torch.device("cuda:0")


def work(x, w):
    for _ in range(4):
        x = x @ w
    return x


def p_item(y):
    return y[0, 0].item()

def p_print(y):
    print(y[0, 0], file=sys.stderr)

def p_cpu(y):
    return y.cpu()

def p_cpu_nonblocking_pinned(y, buf):
    buf.copy_(y, non_blocking=True)

def p_to_cuda_pageable(h):
    return h.to("cuda")

def p_to_cuda_pinned_nonblocking(hp):
    return hp.to("cuda", non_blocking=True)

def p_tensor_from_list():
    return torch.tensor([1.0, 2.0, 3.0], device="cuda")

def p_zeros_on_device():
    return torch.zeros(3, device="cuda")

def p_if_any(y):
    if (y > 1e30).any():
        return y * 2
    return y

def p_where(y):
    return torch.where(y > 0, y, -y)

def p_mask_index(y):
    return y[y > 0]

def p_nonzero(y):
    return y.nonzero()

def p_masked_select(y):
    return torch.masked_select(y, y > 0)

def p_unique(y):
    return torch.unique((y[0] > 0).int())

def p_repeat_interleave(y, r):
    return torch.repeat_interleave(y[0, :8], r)

def p_repeat_interleave_sized(y, r):
    return torch.repeat_interleave(y[0, :8], r, output_size=16)

def p_index_cpu(y):
    idx = torch.tensor([0, 1, 2])
    return y[idx]

def p_index_put_bool(y):
    z = y.clone()
    z[z > 0] = 0.0
    return z

def p_scalar_assign(y, s):
    y[0, 0] = 1.5
    return y

def p_slice_cuda_bounds(y, i, j):
    return y[i:j]

def p_tolist(y):
    return y[0, :4].tolist()

def p_numpy(y):
    return y[0].cpu().numpy()

def p_device_synchronize(y):
    torch.cuda.synchronize()

def p_device_synchronize_twice(y):
    torch.cuda.synchronize()
    torch.cuda.synchronize()

def p_stream_synchronize(y):
    torch.cuda.current_stream().synchronize()

def p_event_synchronize(y):
    e = torch.cuda.Event()
    e.record()
    e.synchronize()

def p_event_query_spin(y):
    e = torch.cuda.Event()
    e.record()
    while not e.query():
        pass

def p_equal(y):
    return torch.equal(y, y + 1)

def p_python_max(y):
    return max(y[0, 0], y[0, 1])

def p_clip_grad(params):
    return torch.nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)

def p_clip_grad_ok(params):
    return torch.nn.utils.clip_grad_norm_(params, 1.0)

def p_multinomial(y):
    return torch.multinomial(torch.softmax(y[0].float(), 0), 1)

def p_bincount(y):
    return torch.bincount((y[0] > 0).int())

def p_format(y):
    return f"{y[0, 0]:.3f}"

def p_allclose(y):
    return torch.allclose(y, y)

def p_inv(y):
    return torch.linalg.inv(torch.eye(64, device="cuda") + 0.01 * y[:64, :64].float())


def patterns():
    h = torch.randn(N, N)
    hp = h.pin_memory()
    buf = torch.empty(N, N, dtype=torch.float16).pin_memory()
    r = torch.full((8,), 2, device=dev, dtype=torch.long)
    i, j = torch.tensor(1, device=dev), torch.tensor(5, device=dev)
    params = [torch.nn.Parameter(torch.randn(256, 256, device=dev)) for _ in range(4)]
    for p in params:
        p.grad = torch.randn_like(p)
    one = lambda f, *a: (f.__name__, (lambda y: f(y, *a)))
    none = lambda f, *a: (f.__name__, (lambda y: f(*a)))
    return [
        one(p_item), one(p_print), one(p_cpu), one(p_cpu_nonblocking_pinned, buf), none(p_to_cuda_pageable, h),
        none(p_to_cuda_pinned_nonblocking, hp), none(p_tensor_from_list), none(p_zeros_on_device), one(p_if_any),
        one(p_where), one(p_mask_index), one(p_nonzero), one(p_masked_select), one(p_unique),
        one(p_repeat_interleave, r), one(p_repeat_interleave_sized, r), one(p_index_cpu), one(p_index_put_bool),
        one(p_scalar_assign, 1.5), one(p_slice_cuda_bounds, i, j), one(p_tolist), one(p_numpy),
        one(p_device_synchronize), one(p_device_synchronize_twice), one(p_stream_synchronize),
        one(p_event_synchronize), one(p_event_query_spin), one(p_equal), one(p_python_max), none(p_clip_grad, params),
        none(p_clip_grad_ok, params), one(p_multinomial), one(p_bincount), one(p_format), one(p_allclose), one(p_inv),
    ]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--oracle")
    ap.add_argument("--iters", type=int, default=5)
    a = ap.parse_args()
    x = torch.randn(N, N, device=dev, dtype=torch.float16) * 0.01
    w = torch.randn(N, N, device=dev, dtype=torch.float16) * 0.01
    pats = patterns()
    for _, f in pats:  # warm up: module loads, allocator growth
        f(work(x, w))
    torch.cuda.synchronize()
    if a.oracle:
        out = {}
        for name, f in pats:
            y = work(x, w)
            with warnings.catch_warnings(record=True) as ws:
                warnings.simplefilter("always")
                torch.cuda.set_sync_debug_mode("warn")
                f(y)
                torch.cuda.set_sync_debug_mode(0)
            out[name] = [{"file": m.filename.split("/")[-1], "line": m.lineno} for m in ws if "synchroniz" in str(m.message)]
        json.dump(out, open(a.oracle, "w"), indent=1)
        return
    torch.cuda.profiler.start()
    for name, f in pats:
        torch.cuda.nvtx.range_push(name)
        for _ in range(a.iters):
            f(work(x, w))
        torch.cuda.nvtx.range_pop()
    torch.cuda.profiler.stop()


if __name__ == "__main__":
    main()
