# Indices that the host makes: sent without blocking, before they are used.

# --- rows in a shuffled order
import numpy as np
import torch
def epoch(obs, returns, size):
    rows = np.arange(4096)
    np.random.shuffle(rows)
    for start in range(0, 4096, size):
        part = rows[start:start + size]
        loss = model(obs[part]) - returns[part]  #! upload getitem 1024
        loss.mean().backward()
# file: after
import numpy as np
import torch
def epoch(obs, returns, size):
    rows = np.arange(4096)
    np.random.shuffle(rows)
    for start in range(0, 4096, size):
        part = rows[start:start + size]
        loss = model(obs[torch.as_tensor(part).to(obs.device, non_blocking=True)]) - returns[torch.as_tensor(part).to(returns.device, non_blocking=True)]
        loss.mean().backward()

# --- one index beside a slice, of a tensor of the host; a number is stored there
import torch
def mark(self, x, at):
    y = x[:, at.long()]  #! upload getitem 512
    rows = at.long()
    self.seen[rows] = 1.0  #! upload setitem 512
    return y
# file: after
import torch
def mark(self, x, at):
    y = x[:, torch.as_tensor(at.long()).to(x.device, non_blocking=True)]
    rows = at.long()
    self.seen[torch.as_tensor(rows).to(self.seen.device, non_blocking=True)] = 1.0
    return y

# --- more than the driver takes over at once
import numpy as np
import torch
def pick(x, n):
    return x[np.random.permutation(n)]  #! upload getitem 1048576; refused pageable

# --- a list may be empty, a tuple is an index for each dimension, what is computed is not asked twice, another value is stored
import numpy as np
import torch
def pick(x, places, of, values):
    rows = [place for place in places]
    a = x[rows]  #! upload getitem 512; refused no-edit
    b = x[places]  #! upload getitem 512; refused no-edit
    c = f(x)[np.arange(9)]  #! upload getitem 512; refused no-edit
    x[np.arange(9)] = values  #! upload setitem 512; refused no-edit
    return a, b, c

# --- without torch by its name
import numpy as np
from torch import nn
def pick(x):
    return x[np.arange(9)]  #! upload getitem 512; refused no-edit
