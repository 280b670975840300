"""A small training loop with the sync mistakes that reviews find, one a line."""
import argparse
import torch
import torch.nn as nn

ap = argparse.ArgumentParser()
ap.add_argument("--steps", type=int, default=60)
ap.add_argument("--nvtx-shapes", action="store_true")
a = ap.parse_args()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 10)).cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
lossf = nn.CrossEntropyLoss()
data = [(torch.randn(256, 512).pin_memory(), torch.randint(0, 10, (256,)).pin_memory()) for _ in range(8)]


def step(x, t, i):
    x = x.to("cuda", non_blocking=True)
    t = t.cuda(non_blocking=True)
    out = model(x)
    loss = lossf(out, t)
    if loss.item() > 1e4:
        raise RuntimeError("diverged")
    opt.zero_grad(set_to_none=True)
    loss.backward()
    gnorm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    acc = (out.argmax(1) == t).float().mean()
    if i % 100 == 99:
        print(f"step {i} loss {loss.item():.4f} acc {acc.item():.3f} gnorm {gnorm.item():.3f}")


def main():
    for i in range(5):
        step(*data[i % 8], i)
    torch.cuda.profiler.start()
    with torch.autograd.profiler.emit_nvtx(enabled=a.nvtx_shapes, record_shapes=True):
        for i in range(a.steps):
            torch.cuda.nvtx.range_push(f"iteration {i}")
            step(*data[i % 8], i)
            torch.cuda.nvtx.range_pop()
    torch.cuda.profiler.stop()


if __name__ == "__main__":
    main()
