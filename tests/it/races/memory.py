import torch
def pinned(n):
    return torch.empty(n, pin_memory=True)
def plain(n):
    return torch.empty(n)
def either(n):
    if n:
        return torch.empty(n).pin_memory()
    return plain(n)
class Staging:
    def __init__(self, n):
        self.buffer = pinned(n)
        self.other = plain(n)
shared = pinned(64)
given = pinned(64)
given = pinned(128)
