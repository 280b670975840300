# Copies, indices and operators: the operation decides, whatever becomes of its result.

# --- to
def f(h):
    return h.to('cuda')  #! to: upload

# --- to device
def f(x, y, device):
    x, y = x.to(device), y.to(device)  #! to: upload; nochain

# --- cuda
def f(t):
    t = t.cuda()  #! cuda: upload
    g(t)

# --- tensor
def f():
    return torch.tensor([1.0, 2.0], device='cuda')  #! tensor: upload

# --- tensor of tensors
def f(a, b):
    return torch.tensor([a, b], device='cuda')  #! read tensor 4: round-trip

# --- copy_
def f(buf, x):
    buf.copy_(x)  #! upload copy_: upload

# --- index list
def f(y):
    return y[[0, 2]]  #! get-list: upload

# --- index cpu
def f(y):
    idx = torch.tensor([0, 1])
    return y[idx]  #! get-list: upload

# --- store scalar
def f(y):
    y[0, 0] = 1.5  #! set-scalar: upload

# --- mask
def f(y):
    return y[y > 0]  #! get-mask: dynamic-shape

# --- mask store
def f(y, m, v):
    y[m > 0] = v  #! set-mask: dynamic-shape

# --- slice bounds
def f(y, i, j):
    return y[i:j]  #! index: dynamic-shape

# --- nonzero
def f(y):
    return y.nonzero()  #! count nonzero: dynamic-shape

# --- where
def f(y):
    return torch.where(y > 0)  #! count where: dynamic-shape

# --- one_hot
def f(y):
    return F.one_hot(y)  #! read one_hot 8: dynamic-shape

# --- type
def f(y):
    return y.type(torch.LongTensor)  #! copy type: round-trip

# --- back and forth
def f(x):
    y = x.cpu()  #! cpu: value-read
    z = g_cpu(y) if False else y
    return z.to('cuda')

# --- round trip
def f(x):
    y = x.cpu()  #! cpu: round-trip
    y = y.float()
    y.to('cuda')

# --- scalar back
def f(x, loss):
    s = loss.item()  #! item: round-trip
    y = x.cuda() * s
    return y

# --- fill
def f(x, t):
    x.fill_(t.item())  #! item: round-trip

# --- inverse
def f(a):
    return torch.linalg.inv(a)  #! inv: error-check; pattern E01

# --- decompositions
def f(a, b):
    u, s, v = torch.svd(a)  #! read svd 1: error-check; pattern E15
    w = torch.linalg.eigvalsh(a)  #! read linalg_eigvalsh 1: error-check; pattern E15
    return u, w, torch.linalg.lstsq(a, b)  #! read linalg_lstsq 1: error-check; pattern E15

# --- alpha
def f(x, t):
    t = t.cuda()
    return torch.add(x, t, alpha=t)  #! read add 4: round-trip

# --- empty_cache
def f():
    torch.cuda.empty_cache()  #! empty-cache: allocator

# --- allocator
def f(x):
    y = model(x)  #! realloc: allocator

# --- save
def f(m):
    torch.save(m.state_dict(), 'a.pt')  #! save: cpu-compute

# --- limits
def limits(x: torch.Tensor):
    return torch.tensor([x.min(), x.max()], device=x.device)  #! float: round-trip

# --- shown on the host
def limits(x):
    pair = torch.tensor([x.detach().min(), x.detach().max()])  #! float: logging
    print('range', pair)

# --- weights from counts
def weights(counts, device):
    return torch.as_tensor([1.0 / c for c in counts.tolist()], device=device)  #! tolist: round-trip

# --- numbers
def f(d):
    return torch.tensor([1.0, 2.0], device=d)  #! float: stale

# --- sizes
def f(x):
    return torch.tensor([x.shape[0], len(x)], device=x.device)  #! int: stale

# --- the read is the other one
def f(x, d):
    if float(x) > torch.tensor([1.0, 2.0], device=d).shape[0]:  #! float: control-flow
        g()

# --- decides on the host
def f(a, b):
    pair = torch.tensor([a.detach().norm(), b.detach().norm()])  #! float: control-flow
    if pair[0] > pair[1]:
        swap()

# --- normal
def f(m, s):
    return torch.normal(m, s.exp())  #! read normal 1: error-check

# --- cov
def f(x):
    return torch.cov(x.T)  #! read cov 1: error-check

# --- a number is checked on the host
def f(m, x):
    return torch.normal(m, 0.1) * float(x)  #! float: round-trip

# --- cov of NumPy
def f(x):
    return np.cov(x.cpu())  #! cpu: value-read

# --- item
def f(loss):
    print(loss.item())  #! item: logging; nochain

# --- item, old PyTorch
def f(loss):
    print(loss.item())  #! pageable-item: logging; nochain

# --- branch
def f(t):
    if t.any():  #! truth: control-flow; nochain
        g()

# --- cpu
def f(t):
    a = t.cpu()  #! cpu: cpu-compute; nochain
    cv2.imwrite('a', a)

# --- mask
def f(x, mask):
    y = x[mask]  #! item: dynamic-shape; nochain

# --- nvtx operator
def f(x, mask):
    y = x[mask].sum().item()  #! item: round-trip; only nonzero
    print(y)

# --- nvtx operator, item
def f(x, mask):
    y = x[mask].sum().item()  #! item: logging; only _local_scalar_dense
    print(y)

# --- host branch
def f(step):
    if step % 10 == 0: print(loss.item())  #! item: logging; nochain

# --- dict access
def f(cfg):
    x = cfg['a']['b']  #! item: stale; nochain

# --- no stream sync without reason
def f(x):
    x = x + 1  #! item: stale; nochain

# --- a number of the device picks a picture
def crop(pictures, owner, top, left):
    for k in range(len(owner)):
        part = pictures[owner[k], :, top[k]:, left[k]:]  #! read getitem 8: round-trip; pattern A09
        show(part)

# --- it picks a row
def best(rows, scores):
    return rows[scores.argmax()]  #! read getitem 8: round-trip; pattern A09

# --- it picks from what the host has
def best(scores):
    names = torch.arange(8)
    first = scores.argmax()
    return names[first]  #! read getitem 8: dynamic-shape; pattern A09

# --- the bounds of a slice, as an older PyTorch reads them
def head(rows, n):
    return rows[:, 1:n]  #! read getitem 8: dynamic-shape; pattern A08

# --- a flag as an index
def first(rows, flag):
    return rows[flag]  #! read getitem 1: dynamic-shape

# --- numbers of tensors, as a tensor of a type
def f(sizes, out):
    lengths = []
    for size in sizes.cuda():
        lengths.append(out - size)
    lengths = torch.LongTensor(lengths)  #! index: round-trip; pattern A13
    return lengths.cuda()

# --- a type of the CPU, and an array of it
def f(out):
    values = out.type(torch.FloatTensor).numpy()  #! copy type: control-flow; pattern D01
    if np.argmax(values) > 3:
        g()

# --- what is stored in one place
def f(out, part):
    out[0] = part  #! set-scalar: upload; pattern C17
    out[1] = 0.5  #! set-scalar: upload; pattern C06

# --- the largest of a list that is filled with tensors
def f(model, rows):
    found = []
    for x in rows:
        found.append(model(x).mean().detach())
    largest = max(found)  #! truth: control-flow; pattern A05
    return largest * 2

# --- a helper that partial makes
to_gpu = functools.partial(torch.as_tensor, device='cuda')
def f(samples):
    return torch.stack([to_gpu(s) for s in samples])  #! upload as_tensor 512: upload

# --- a method by a name of its own
def f(loss):
    read = loss.item
    print(read())  #! item: logging
