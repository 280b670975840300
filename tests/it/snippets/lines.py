# --- not_at_line_start (hard)
def step(model, batch, it):
    loss = model(batch); it % 50 or print(it, "loss", loss.item())  #! item: false logging

# --- multi_line_call (hard)
def log_step(writer, step, loss, lr):
    writer.add_scalars(
        "train",
        {
            "loss": loss.item(),  #! item: false logging
            "lr": lr,
        },
        global_step=step,
    )

# --- broken_chain (hard)
def accuracy(logits, target):
    hits = (
        logits.argmax(-1)
        .eq(target)
        .float()
        .mean()
        .item()  #! item: true control-flow
    )
    if hits > 0.99:
        return None
    return logits

# --- branch_over_lines (hard)
def check(grads, limit):
    if any(
        g.abs().max().item() > limit  #! item: true control-flow
        for g in grads
    ):
        return "clip"
    return "keep"

# --- two_fates_one_line (hard)
def step(loss, gate):
    print("loss", loss.item()); go = gate.item() > 0.5  #! item: true control-flow
    return loss if go else None

# --- two_operations_one_line (hard)
def route(x, mask, flag):
    picked, stop = x[mask], flag.item()  #! get-mask: true dynamic-shape | item1: true control-flow
    if stop:
        return None
    return picked

# --- mixed_methods_one_line (hard)
def fetch(loss, ids, tokenizer):
    print(loss.item(), tokenizer.decode(ids.tolist()))  #! item: false logging | tolist: true cpu-compute

# --- line_off_by_two (hard)
def step(model, batch):
    loss = model(batch)
    loss.backward()
    value = loss.item()  #! item: false logging; at +2; src: unknown value-read
    print(f"loss {value}")
    return loss

# --- line_off_into_other_function (hard)
def gate(x):
    if x.max().item() > 1:  #! item: true control-flow; at +4; src: unknown value-read
        return x / x.max()
    return x

def report(x):
    print(x.mean())

# --- line_off_upload (hard)
def load(batch):
    x = batch["x"].to("cuda")  #! to: false upload; at +1; nosrc: false upload
    return augment(x)

# --- line_off_mask (hard)
def pick(x, m):
    y = x[m]  #! get-mask: true dynamic-shape; at -1; nosrc: true dynamic-shape
    return y.sum()

# --- f_string_expression (hard)
def tick(step, t):
    msg = f"{step:06d} | lr {lr_of(step):.2e} | loss {t['loss'].detach().item():.4f}"  #! item: false logging
    tqdm.write(msg)

# --- walrus_in_if (hard)
def step(loss):
    if (value := loss.item()) > 100.0:  #! item: true control-flow
        raise FloatingPointError(f"loss {value}")
    return loss

# --- walrus_in_log (hard)
def step(loss, history):
    logger.info("loss %.4f", (value := loss.item()))  #! item: false logging
    logger.debug("rounded %.1f", round(value, 1))

# --- ternary_condition (hard)
def scale(x, m):
    return x / m if m.item() else x  #! item: true control-flow

# --- boolean_chain (hard)
def ready(step, loss, warm):
    if step > warm and loss < 0.1 and not torch.isinf(loss):  #! truth: true control-flow; x 2
        return True
    return False

# --- while_truth
def settle(x, step):
    while (x.abs() > 1).any():  #! truth: true control-flow; nosrc: unknown value-read
        x = step(x)
    return x

# --- builtin_max (hard)
def widest(a, b):
    return max(a.std(), b.std())  #! truth: true control-flow

# --- membership
def has_eos(tokens, eos):
    if eos in tokens:  #! contains: true control-flow
        return tokens[:-1]
    return tokens

# --- lambda_key (hard)
def rank(beams):
    beams.sort(key=lambda b: b.score.item(), reverse=True)  #! item: true control-flow; in <lambda>
    return beams[:4]

# --- lambda_hook (hard)
def watch(layer, name):
    layer.register_forward_hook(lambda m, i, o: print(name, o.abs().mean().item()))  #! item: false logging; in <lambda>

# --- comprehension_filter (hard)
def keep(boxes, scores):
    return [b for b, s in zip(boxes, scores) if s.item() > 0.5]  #! item: true control-flow; in <listcomp>

# --- comprehension_dict_log (hard)
def summarize(losses, step):
    wandb.log({f"loss/{k}": v.item() for k, v in losses.items()}, step=step)  #! item: false logging; x 3

# --- nochain_item (hard)
def step(model, batch):
    loss = model(batch)
    print("loss", loss.item())  #! item: false logging; nochain

# --- nochain_branch (hard)
def step(model, batch):
    out = model(batch)
    if out.stop.item():  #! item1: true control-flow; nochain
        return None
    return out

# --- nochain_upload
def step(model, batch):
    return model(batch.to("cuda"))  #! to: false upload; nochain; nosrc: false upload

# --- nochain_mask (hard)
def select(x, valid):
    return x[valid]  #! get-mask: true dynamic-shape; nochain; nosrc: true dynamic-shape

# --- subscript_of_item (hard)
def pick(table, i):
    return table[i.item()]  #! item8: true cpu-compute

# --- return_of_printed (hard)
def report(name, t):
    return print(name, round(t.mean().item(), 3))  #! item: false logging

# --- starred_print (hard)
def dump(*tensors):
    print(*(t.item() for t in tensors), sep=", ")  #! item: false logging; in <genexpr>
