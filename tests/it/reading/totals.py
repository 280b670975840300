# Selections of which only totals are used, and indices that could stay on the device.

# --- how many are right
def f(pred, gold, mask):
    hits = torch.sum(pred.masked_select(mask) == gold.masked_select(mask))  #! count masked_select: round-trip; rules S11 S11; pattern B02
    return hits

# --- compared before they are selected
def f(pred, gold, mask):
    return pred.eq(gold).masked_select(mask).sum()  #! count masked_select: round-trip

# --- by names
def f(pred, gold, mask):
    a = pred[mask]  #! get-mask: round-trip
    b = gold[mask]  #! get-mask: round-trip
    hits = a.eq(b)
    return hits.float().mean()

# --- any of them
def f(x, mask):
    return x[mask].isnan().any()  #! get-mask: round-trip

# --- read at once, and shown
def f(pred, gold, mask):
    hits = (pred[mask] == gold[mask]).sum().item()  #! get-mask: round-trip
    print(hits)

# --- read at once, and needed
def f(pred, gold, mask):
    if int((pred[mask] == gold[mask]).sum()) > 3:  #! get-mask: dynamic-shape
        save()

# --- numbers
def f(loss, mask):
    return loss[mask].mean()  #! get-mask: round-trip

# --- numbers by a mask that is broadcast
def f(loss, mask):
    return loss.masked_select(mask).mean()  #! count masked_select: round-trip

# --- a loss of distances, of what is given another form
def f(pred, gold, mask):
    a = pred[mask].view(-1, 4)  #! get-mask: round-trip
    gold = gold[mask].view(-1, 4)  #! get-mask: round-trip
    return F.smooth_l1_loss(a, gold, reduction='sum')

# --- the mean of distances
def f(pred, gold, mask):
    return F.mse_loss(pred[mask], gold[mask])  #! get-mask: round-trip

# --- of what a mask selects that is broadcast
def f(pred, gold, mask):
    return F.l1_loss(pred.masked_select(mask), gold.masked_select(mask))  #! count masked_select: round-trip

# --- no such loss
def f(pred, gold, mask):
    return F.l1_loss(pred[mask], gold[mask], reduction='any')  #! get-mask: dynamic-shape

# --- a loss for each; a loss of another mask; weights; rows of another form are counted
def f(pred, gold, mask, keep):
    each = F.l1_loss(pred[mask], gold[mask], reduction='none')  #! get-mask: dynamic-shape
    other = F.l1_loss(pred[mask], gold[keep])  #! get-mask: dynamic-shape
    weighed = F.huber_loss(pred[mask], gold[mask], weight=w)  #! get-mask: dynamic-shape
    rows = pred[mask].view(-1, 4)  #! get-mask: dynamic-shape
    print(rows.size(0), rows.sum())
    return each, other, weighed

# --- selected by another mask
def f(pred, gold, mask, keep):
    return (pred[mask] == gold[keep]).sum()  #! get-mask: dynamic-shape

# --- an operand that is not told
def f(pred, gold, mask):
    return (pred[mask] == gold).sum()  #! get-mask: dynamic-shape

# --- used besides
def f(pred, mask):
    kept = pred[mask] > 0  #! get-mask: dynamic-shape
    return kept.sum(), kept

# --- along a dimension
def f(pred, mask):
    return (pred[mask] > 0).sum(0)  #! get-mask: dynamic-shape

# --- a name given anew in a loop
def f(pred, mask):
    kept = pred[mask]  #! get-mask: dynamic-shape
    while busy():
        kept = kept.abs()
    return kept

# --- how many decide
def f(x, mask):
    rows = x[mask]  #! get-mask: dynamic-shape
    if rows.shape[0] > 4:
        split()

# --- an index that writes
def f(overlaps, i):
    overlaps[:, i] = -1  #! read setitem 8: round-trip; pattern A09

# --- an index of indices that writes
def f(best, of, n):
    for j in range(n):
        best[of[j]] = j  #! read setitem 8: round-trip

# --- bounds of what is written
def f(x, n):
    x[:, :n] = 0  #! read setitem 8: dynamic-shape

# --- a tensor that is stored on the host
def f(parts, n):
    host = torch.zeros(n, 4)
    for i, part in enumerate(parts):
        host[i] = part  #! copy setitem: logging
    print(host)

# --- a cache on the host
def f(cache, new, query, n):
    keys = cache.data[:n]
    keys[n - 1:n] = new  #! copy setitem: cpu-compute
    return torch.bmm(query, keys).cuda()

# --- another mask of that name; a mask that has changed
def f(x, y, mask):
    mask = y > 1
    a = x[mask]  #! get-mask: dynamic-shape
    mask = y < 1
    return (a == x[mask]).sum()  #! get-mask: dynamic-shape

def g(x, y):
    mask = y > 1
    a = x[mask]  #! get-mask: dynamic-shape
    mask &= y < 3
    return (a == x[mask]).sum()  #! get-mask: dynamic-shape
