"""Waits whose operand is on the device, or that say so themselves."""
import math

import torch
import torch.nn.functional as F

device = torch.device("cuda")
weight = torch.randn(8, 8, device=device)


def step(x, limit):
    loss = F.mse_loss(weight @ x.cuda(), weight)  # waits: probable avoidable C15
    loss.backward()
    if loss > limit:  # waits: certain needed
        return None
    if (loss != loss).any():  # waits: certain avoidable A35
        print("diverged")
    total = float(loss) * 2  # waits: certain
    root = math.sqrt(loss)  # waits: certain
    print(loss)  # waits: certain avoidable A16
    print(f"loss {loss:.3f}, lr {0.1}")  # waits: certain avoidable A15
    text = "%.3f" % loss  # waits: certain
    raise ValueError(f"loss {loss}") if limit is None else StopIteration(total, root, text)


def select(rows):
    mask = weight > 0
    kept = weight[mask]  # waits: certain needed
    weight[mask] = 0
    picked = weight[[0, 2]]  # waits: certain avoidable C07
    where = torch.nonzero(weight)  # waits: certain needed B01
    values = torch.unique(weight)  # waits: certain needed B07
    same = weight.repeat_interleave(2)
    hot = F.one_hot(weight.long(), 8)
    return kept, picked, where, values, same, hot, weight[0], weight[:, 1:3], rows


def upload(rows):
    a = torch.tensor(rows, device=device)  # waits: probable avoidable C01
    b = torch.tensor([1.0, 2.0], device="cuda")  # waits: certain avoidable C01
    c = torch.zeros(3).to(device)  # waits: certain avoidable C14
    d = torch.from_numpy(rows).cuda()  # waits: certain avoidable
    e = torch.zeros(3, device=device)
    f = torch.ones(3).to(device, non_blocking=True)
    return a, b, c, d, e, f


def explicit(event, group):
    torch.cuda.synchronize()  # waits: certain avoidable F01
    torch.cuda.current_stream().synchronize()  # waits: certain
    event.synchronize()  # waits: certain
    torch.cuda.empty_cache()  # waits: certain avoidable G01
    torch.distributed.barrier()  # waits: probable avoidable H03


def read():
    host = weight.cpu()  # waits: certain
    rows = weight.sum(0).tolist()  # waits: certain
    late = weight.to("cpu", non_blocking=True)
    return host.tolist(), rows, host.numpy(), host.sum().item(), late
