# Sizes that the host knows.

# --- the repeats are a list of the host
import torch
def step(x, batch):
    counts = [len(s) for s in batch]
    repeats = torch.tensor(counts).cuda()
    return torch.repeat_interleave(x, repeats, dim=0)  #! repeat-interleave
# file: after
import torch
def step(x, batch):
    counts = [len(s) for s in batch]
    repeats = torch.tensor(counts).cuda()
    return torch.repeat_interleave(x, repeats, dim=0, output_size=sum(map(int, counts)) if len(counts) > 1 else None)

# --- sent in place
import torch
def step(x, batch):
    counts = [len(s) for s in batch]
    print(max(counts))
    return x.repeat_interleave(torch.tensor(counts, device="cuda"), dim=0)  #! repeat-interleave
# file: after
import torch
def step(x, batch):
    counts = [len(s) for s in batch]
    print(max(counts))
    return x.repeat_interleave(torch.tensor(counts, device="cuda"), dim=0, output_size=sum(map(int, counts)) if len(counts) > 1 else None)

# --- it is named already
import torch
def step(x, batch):
    counts = [len(s) for s in batch]
    repeats = torch.tensor(counts).cuda()
    return torch.repeat_interleave(x, repeats, output_size=sum(counts))  #! repeat-interleave; refused no-edit

# --- no list that has a name
import torch
def step(x, batch):
    repeats = torch.tensor([len(s) for s in batch]).cuda()
    return torch.repeat_interleave(x, repeats, dim=0)  #! repeat-interleave; refused sizes

# --- the list grows after
import torch
def step(x, batch):
    counts = [len(s) for s in batch]
    repeats = torch.tensor(counts).cuda()
    counts.append(1)
    return torch.repeat_interleave(x, repeats, dim=0)  #! repeat-interleave; refused sizes

# --- the list is written to
import torch
def step(x, batch):
    counts = [len(s) for s in batch]
    repeats = torch.tensor(counts).cuda()
    counts[0] = 0
    return torch.repeat_interleave(x, repeats, dim=0)  #! repeat-interleave; refused sizes

# --- the list has another name
import torch
def step(x, batch):
    counts = [len(s) for s in batch]
    self.counts = counts
    repeats = torch.tensor(counts).cuda()
    return torch.repeat_interleave(x, repeats, dim=0)  #! repeat-interleave; refused sizes

# --- the list is handed on
import torch
def step(x, batch):
    counts = [len(s) for s in batch]
    pad(counts)
    repeats = torch.tensor(counts).cuda()
    return torch.repeat_interleave(x, repeats, dim=0)  #! repeat-interleave; refused sizes

# --- the tensor is written to
import torch
def step(x, batch):
    counts = [len(s) for s in batch]
    repeats = torch.tensor(counts).cuda()
    repeats.clamp_(max=3)
    return torch.repeat_interleave(x, repeats, dim=0)  #! repeat-interleave; refused no-edit

# --- the tensor is another one for some
import torch
def step(x, batch):
    counts = [len(s) for s in batch]
    repeats = torch.tensor(counts).cuda()
    repeats = repeats * 2
    return torch.repeat_interleave(x, repeats, dim=0)  #! repeat-interleave; refused sizes

# --- the tensor may be of the round before
import torch
def steps(x, batches):
    for batch in batches:
        counts = [len(s) for s in batch]
        if fresh():
            repeats = torch.tensor(counts).cuda()
        x = torch.repeat_interleave(x, repeats, dim=0)  #! repeat-interleave; refused sizes
    return x

# --- counts of the GPU
import torch
def step(x, counts):
    return torch.repeat_interleave(x, counts.cuda(), dim=0)  #! repeat-interleave; refused no-edit
