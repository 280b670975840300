"""Programs in two variants, with avoidable waits and without: the ground truth for what removing a wait is worth.

Each builder returns (bad, fixed, changes): two functions of the step number, and what `sync-report --fix` is told
about the waits of `bad`, by what they are: explicit, upload, read.
"""
import torch
import torch.nn as nn

DEVICE = "cuda"


def gemm(n, dtype):
    """Explicit device synchronisation after every GEMM: host-bound when small, GPU-bound when large."""
    x, w = (torch.randn(n, n, device=DEVICE, dtype=dtype) for _ in range(2))

    def bad(_):
        y = x @ w
        torch.cuda.synchronize()

    def fixed(_):
        y = x @ w
    return bad, fixed, {"explicit": "delete"}


def many_small():
    """Host-bound: forty tiny operations, an explicit synchronisation after every tenth."""
    x = torch.randn(64, 64, device=DEVICE)

    def step(wait):
        y = x
        for k in range(40):
            y = y + 1.0
            if wait and k % 10 == 9:
                torch.cuda.synchronize()
    return (lambda _: step(True)), (lambda _: step(False)), {"explicit": "delete"}


def chain_item():
    """Balanced: eight GEMMs, then a scalar read that nobody needs at once."""
    x, w = (torch.randn(1024, 1024, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    log = [None]  # the last value only: a slice keeps the whole product alive, whose memory would have to be found anew

    def chain():
        y = x
        for _ in range(8):
            y = y @ w
        return y[0, 0]

    def bad(_):
        log[0] = chain().item()

    def fixed(_):
        log[0] = chain().detach()
    return bad, fixed, {"read": "drop"}


def h2d_pageable():
    """Upload from pageable memory, 32 MiB, before seven GEMMs."""
    w = torch.randn(4096, 4096, device=DEVICE, dtype=torch.half)
    host = [torch.randn(4096, 4096).half() for _ in range(4)]
    pinned = [h.pin_memory() for h in host]

    def work(y):
        for _ in range(7):
            y = y @ w

    def bad(i):
        work(host[i % 4].to(DEVICE))

    def fixed(i):
        work(pinned[i % 4].to(DEVICE, non_blocking=True))
    return bad, fixed, {"upload": "pinned"}


def h2d_pinned():
    """Upload from pinned memory that still waits: only `non_blocking=True` is missing."""
    w = torch.randn(2048, 2048, device=DEVICE, dtype=torch.half)
    pinned = [torch.randn(2048, 2048).half().pin_memory() for _ in range(4)]

    def step(i, non_blocking):
        y = pinned[i % 4].to(DEVICE, non_blocking=non_blocking)
        for _ in range(6):
            y = y @ w
    return (lambda i: step(i, False)), (lambda i: step(i, True)), {"upload": "non-blocking"}


def inference_cpu():
    """Bulk read: a result goes to the CPU each step."""
    layers = [nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()) for _ in range(12)]
    model = nn.Sequential(*layers).cuda().half().eval()
    xs = [torch.randn(64, 1024, device=DEVICE, dtype=torch.half) for _ in range(8)]
    buffers = [torch.empty(64, 1024, dtype=torch.half).pin_memory() for _ in range(8)]
    out = []

    @torch.no_grad()
    def bad(i):
        out.append(model(xs[i % 8]).cpu())

    @torch.no_grad()
    def fixed(i):
        buffers[i % 8].copy_(model(xs[i % 8]), non_blocking=True)
    return bad, fixed, {"read": "pinned"}


def two_streams():
    """Two streams: the compute stream waits for the copy stream, on the host or on the GPU."""
    w = torch.randn(2048, 2048, device=DEVICE, dtype=torch.half)
    pinned = [torch.randn(2048, 2048).half().pin_memory() for _ in range(4)]
    buffers = [torch.empty(2048, 2048, device=DEVICE, dtype=torch.half) for _ in range(4)]
    side = torch.cuda.Stream()

    def step(i, on_host):
        with torch.cuda.stream(side):
            buffers[i % 4].copy_(pinned[i % 4], non_blocking=True)
        if on_host:
            side.synchronize()
        else:
            torch.cuda.current_stream().wait_stream(side)
        y = buffers[i % 4]
        for _ in range(6):
            y = y @ w
        side.wait_stream(torch.cuda.current_stream())
    return (lambda i: step(i, True)), (lambda i: step(i, False)), {"explicit": "gpu-wait", "upload": "non-blocking"}


def mlp():
    """A training step with uploads, a logged loss and a synchronisation; autograd runs the backward pass."""
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 10)).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
    loss_of = nn.CrossEntropyLoss()
    data = [(torch.randn(256, 512), torch.randint(0, 10, (256,))) for _ in range(8)]
    pinned = [(x.pin_memory(), t.pin_memory()) for x, t in data]
    log = []

    def train(x, t):
        loss = loss_of(model(x), t)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        return loss

    def bad(i):
        x, t = data[i % 8]
        loss = train(x.cuda(), t.cuda())
        log.append(loss.item())
        torch.cuda.synchronize()

    def fixed(i):
        x, t = pinned[i % 8]
        log.append(train(x.cuda(non_blocking=True), t.cuda(non_blocking=True)).detach())
    return bad, fixed, {"upload": "pinned", "read": "drop", "explicit": "delete"}


def backward_item():
    """A hook reads each gradient's norm: the wait is in the autograd thread, while the main thread stands still."""
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]).cuda()
    x = torch.randn(512, 1024, device=DEVICE)
    log, reading = [], [True]

    def hook(grad):
        norm = grad.norm()
        log.append(norm.item() if reading[0] else norm.detach())

    for layer in model:
        layer.weight.register_hook(hook)

    def step(read):
        reading[0] = read
        model(x).sum().backward()
        for p in model.parameters():
            p.grad = None
    return (lambda _: step(True)), (lambda _: step(False)), {"read": "drop"}


def transformer():
    """A training step of a small transformer that checks and logs its loss and gradient norm."""
    layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0, norm_first=True)
    model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda().to(torch.bfloat16)
    head = nn.Linear(512, 1000).cuda().to(torch.bfloat16)
    opt = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-4, foreach=True)
    x = torch.randn(8, 128, 512, device=DEVICE, dtype=torch.bfloat16)
    t = torch.randint(0, 1000, (1024,), device=DEVICE)
    log = []

    def step(wait):
        loss = nn.functional.cross_entropy(head(model(x)).view(-1, 1000).float(), t)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        log.append((loss.item(), norm.item()) if wait else (loss.detach(), norm.detach()))
    return (lambda _: step(True)), (lambda _: step(False)), {"read": "drop"}


CASES = {
    "gemm512": lambda: gemm(512, torch.float16),
    "gemm2048": lambda: gemm(2048, torch.bfloat16),
    "gemm8192": lambda: gemm(8192, torch.float16),
    "many_small": many_small,
    "chain_item": chain_item,
    "h2d_pageable": h2d_pageable,
    "h2d_pinned": h2d_pinned,
    "inference_cpu": inference_cpu,
    "two_streams": two_streams,
    "mlp": mlp,
    "backward_item": backward_item,
    "transformer": transformer,
}
