import torch
buffer = torch.empty(9).pin_memory()
def step(batches):
    for x in batches:
        y = model(x)
        torch.cuda.synchronize()  # guards the buffer: two of them in turn, no edit
        buffer.copy_(x)
        z = buffer.to("cuda", non_blocking=True)
