# --- mask_index
def valid_only(logits, labels):
    keep = labels != -100
    return logits[keep]  #! get-mask: true dynamic-shape; nosrc: true dynamic-shape

# --- mask_store (hard)
def fill(x, mask, source):
    x[mask] = source  #! set-mask: true dynamic-shape; nosrc: true dynamic-shape
    return x

# --- nonzero_rows
def positives(scores, t):
    rows = (scores > t).nonzero()  #! nonzero: true dynamic-shape; nosrc: true dynamic-shape
    return scores[rows[:, 0]]

# --- where_one_argument
def peaks(x):
    idx, = torch.where(x > x.mean())  #! where1: true dynamic-shape; nosrc: true dynamic-shape
    return idx

# --- masked_select_sum
def masked_mean(x, m):
    return torch.masked_select(x, m).mean()  #! masked-select: false round-trip; nosrc: true dynamic-shape

# --- unique_ids
def clusters(ids):
    return torch.unique(ids, return_inverse=True)  #! unique: true dynamic-shape; nosrc: true dynamic-shape

# --- repeat_interleave
def expand(tokens, counts):
    return torch.repeat_interleave(tokens, counts, dim=0)  #! repeat-interleave: true dynamic-shape; nosrc: unknown value-read

# --- crop_to_longest
def crop(tokens, lengths):
    longest = lengths.max().item()  #! item8: true dynamic-shape
    return tokens[:, :longest]

# --- slice_by_tensor
def prefix(x, n):
    return x[:n.max()]  #! index: true dynamic-shape; nosrc: true dynamic-shape

# --- zeros_of_size (hard)
def scatter(values, index):
    out = torch.zeros(int(index.max()) + 1, values.size(1), device=values.device)  #! int: true dynamic-shape
    return out.index_add_(0, index, values)

# --- padding_amount (hard)
def pad_batch(x, lengths):
    target = lengths.max().item()  #! item8: true dynamic-shape
    missing = target - x.shape[1]
    return F.pad(x, (0, missing))

# --- expert_counts
def dispatch(tokens, expert_ids, experts):
    counts = torch.bincount(expert_ids, minlength=len(experts)).tolist()  #! tolist: true dynamic-shape
    chunks = tokens.split(counts)
    return [expert(chunk) for expert, chunk in zip(experts, chunks)]

# --- split_sizes (hard)
def all_to_all(x, send_counts, recv_counts, group):
    recv = recv_counts.tolist()  #! tolist: true dynamic-shape
    out = x.new_empty(sum(recv), x.size(1))
    dist.all_to_all_single(out, x, output_split_sizes=recv, group=group)
    return out

# --- loop_bound
def unroll(cell, x, steps):
    n = int(steps)  #! int: true control-flow
    for t in range(n):
        x = cell(x)
    return x

# --- host_lookup
def names_of(ids, vocabulary):
    index = ids[0].item()  #! item8: true cpu-compute
    return vocabulary[index]

# --- varlen_attention (hard)
def unpad(hidden, mask):
    lengths = mask.sum(-1, dtype=torch.int32)
    indices = torch.nonzero(mask.flatten(), as_tuple=False).flatten()  #! nonzero: true dynamic-shape; nosrc: true dynamic-shape
    max_len = lengths.max().item()  #! item: true dynamic-shape
    return hidden.view(-1, hidden.size(-1))[indices].unfold(0, max_len, 1)

# --- two_uses_size_and_log (hard)
def bucket(lengths, x):
    n = lengths.max().item()  #! item8: true dynamic-shape
    logger.debug("longest %d", n)
    return x.narrow(1, 0, n)

# --- sampled_shape_keyword (hard)
def queries(scores, budget):
    k = min(budget, (scores > 0).sum().item())  #! item8: true dynamic-shape
    return scores.topk(k=k, largest=True).indices

# --- nms_keep (hard)
def detect(boxes, scores):
    keep = scores > 0.05
    boxes, scores = boxes[keep], scores[keep]  #! get-mask: true dynamic-shape; x 2
    order = scores.argsort(descending=True)
    return boxes[order], scores[order]
