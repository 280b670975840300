"""More programs in two variants, built as those of programs.py. None of the tool's figures was chosen with their
measurements in sight: what is predicted for them says how well it predicts programs that it has not seen.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda"


def convnet():
    """GPU-bound training of a small convolution network; loss and hits are read every step for a log."""
    def block(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU())

    model = nn.Sequential(block(3, 64), block(64, 64), block(64, 128), nn.MaxPool2d(2), block(128, 128),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100)).cuda().to(memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True)
    x = torch.randn(64, 3, 96, 96, device=DEVICE).to(memory_format=torch.channels_last)
    t = torch.randint(0, 100, (64,), device=DEVICE)
    log = [None]

    def step(read):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            y = model(x)
        loss = F.cross_entropy(y.float(), t)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        hits = (y.argmax(1) == t).sum()
        log[0] = (loss.item(), hits.item()) if read else (loss.detach(), hits)
    return (lambda _: step(True)), (lambda _: step(False)), {"read": "drop"}


def nan_checks():
    """Ten layers, after each of which the host asks whether anything became NaN; or once on the GPU, for nobody."""
    layers = nn.ModuleList([nn.Linear(2048, 2048) for _ in range(10)]).cuda().half()
    x = torch.randn(512, 2048, device=DEVICE, dtype=torch.half)

    @torch.no_grad()
    def step(read):
        y = x
        for layer in layers:
            y = F.relu(layer(y))
            bad = torch.isnan(y).any()
            if read:
                assert not bad.item()
        return y
    return (lambda _: step(True)), (lambda _: step(False)), {"read": "drop"}


def token_loop():
    """Host-bound: twelve tokens, each read on the host to be stored; or left on the GPU."""
    embed, cell, head = nn.Embedding(1000, 256).cuda(), nn.GRUCell(256, 256).cuda(), nn.Linear(256, 1000).cuda()
    log = [None]

    @torch.no_grad()
    def step(read):
        h = torch.zeros(4, 256, device=DEVICE)
        token = torch.zeros(4, dtype=torch.long, device=DEVICE)
        for _ in range(12):
            h = cell(embed(token), h)
            token = head(h).argmax(1)
            log[0] = token[0].item() if read else token[0]
    return (lambda _: step(True)), (lambda _: step(False)), {"read": "drop"}


def small_uploads():
    """Six small pageable uploads before an embedding and a small network."""
    model = nn.Sequential(nn.Linear(6 * 64, 512), nn.ReLU(), nn.Linear(512, 64)).cuda()
    embed = nn.Embedding(10_000, 64).cuda()
    ids = [[torch.randint(0, 10_000, (256,)) for _ in range(6)] for _ in range(4)]
    pinned = [[t.pin_memory() for t in row] for row in ids]

    @torch.no_grad()
    def step(row, non_blocking):
        on_gpu = [t.to(DEVICE, non_blocking=non_blocking) for t in row]
        return model(torch.cat([embed(t) for t in on_gpu], dim=1))
    return (lambda i: step(ids[i % 4], False)), (lambda i: step(pinned[i % 4], True)), {"upload": "pinned"}


def event_timing():
    """GPU-bound: events time each step, and the host waits for the second to print how long it took."""
    x, w = (torch.randn(4096, 4096, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    first, second = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def step(wait):
        first.record()
        y = x
        for _ in range(4):
            y = y @ w
        second.record()
        if wait:
            second.synchronize()
    return (lambda _: step(True)), (lambda _: step(False)), {"explicit": "delete"}


def memory_bound():
    """GPU-bound by memory: passes over 256 MiB, the stream synchronised after every fourth."""
    x, y = (torch.randn(64 << 20, device=DEVICE) for _ in range(2))

    def step(wait):
        for k in range(8):
            torch.add(x, y, alpha=0.5, out=x) if k % 2 else torch.mul(y, 0.999, out=y)
            if wait and k % 4 == 3:
                torch.cuda.current_stream().synchronize()
    return (lambda _: step(True)), (lambda _: step(False)), {"explicit": "delete"}


def attention():
    """GPU-bound attention, forward and backward; the gradient's norm is read every step."""
    q, k, v = (torch.randn(4, 16, 2048, 64, device=DEVICE, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    log = [None]

    def step(read):
        F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
        norm = q.grad.float().norm()
        q.grad = k.grad = v.grad = None
        log[0] = norm.item() if read else norm
    return (lambda _: step(True)), (lambda _: step(False)), {"read": "drop"}


def bulk_read():
    """Sixteen MiB of results go to pageable memory each step; or to pinned memory, and the host goes on."""
    x, w = (torch.randn(2048, 2048, device=DEVICE) for _ in range(2))
    buffers = [torch.empty(2048, 2048).pin_memory() for _ in range(4)]
    pageable = [torch.empty(2048, 2048) for _ in range(4)]

    def step(i, into, non_blocking):
        y = x
        for _ in range(4):
            y = y @ w
        into[i % 4].copy_(y, non_blocking=non_blocking)
    return (lambda i: step(i, pageable, False)), (lambda i: step(i, buffers, True)), {"read": "pinned"}


def evaluation():
    """Balanced: an evaluation that adds up its hits on the host, batch by batch, or on the GPU."""
    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 100)).cuda().half()
    data = [(torch.randn(512, 1024).half().pin_memory(), torch.randint(0, 100, (512,)).pin_memory()) for _ in range(4)]
    hits = [0]
    on_gpu = torch.zeros((), dtype=torch.long, device=DEVICE)

    @torch.no_grad()
    def step(i, read):
        x, t = (z.to(DEVICE, non_blocking=True) for z in data[i % 4])
        right = (model(x).argmax(1) == t).sum()
        if read:
            hits[0] += right.item()
        else:
            on_gpu.add_(right)
    return (lambda i: step(i, True)), (lambda i: step(i, False)), {"read": "drop"}


def layer_syncs():
    """A synchronisation after each of eight layers, left over from timing them."""
    layers = nn.ModuleList([nn.Linear(4096, 4096) for _ in range(8)]).cuda().half()
    x = torch.randn(1024, 4096, device=DEVICE, dtype=torch.half)

    @torch.no_grad()
    def step(wait):
        y = x
        for layer in layers:
            y = torch.tanh(layer(y))
            if wait:
                torch.cuda.synchronize()
    return (lambda _: step(True)), (lambda _: step(False)), {"explicit": "delete"}


def fine_tuning():
    """A training step with a pageable batch of 8 MiB and a loss that is read for the progress bar."""
    model = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 100)).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    data = [torch.randn(512, 4096) for _ in range(4)]
    pinned = [x.pin_memory() for x in data]
    t = torch.randint(0, 100, (512,), device=DEVICE)
    log = [None]

    def step(x, non_blocking):
        loss = F.cross_entropy(model(x.to(DEVICE, non_blocking=non_blocking)), t)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        log[0] = loss.detach() if non_blocking else loss.item()
    return (lambda i: step(data[i % 4], False)), (lambda i: step(pinned[i % 4], True)), {"upload": "pinned", "read": "drop"}


CASES = {
    "convnet": convnet,
    "nan_checks": nan_checks,
    "token_loop": token_loop,
    "small_uploads": small_uploads,
    "event_timing": event_timing,
    "memory_bound": memory_bound,
    "attention": attention,
    "bulk_read": bulk_read,
    "evaluation": evaluation,
    "layer_syncs": layer_syncs,
    "fine_tuning": fine_tuning,
}
