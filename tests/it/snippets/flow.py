# --- name_reused (hard)
def step(loss, acc):
    value = loss.item()  #! item: false logging
    print("loss", value)
    value = acc.item()  #! item: true control-flow
    if value > 0.9:
        return True
    return False

# --- name_reused_in_branch (hard)
def step(loss, verbose, limit):
    v = 0.0
    if verbose:
        v = loss.item()  #! item: false logging
        logger.info("loss %f", v)
    v = limit
    if v > 3:
        return None
    return loss

# --- tuple_targets (hard)
def step(loss, norm):
    shown, decisive = loss.item(), norm.max()
    print(shown, decisive)  #! print: false debug-print

# --- tuple_of_items (hard)
def read(pair):
    a, b = pair.tolist()  #! tolist: true control-flow
    print("a", a)
    if b > 0:
        return a
    return None

# --- swap (hard)
def two(x, y):
    first, second = x.item(), y.mean().item()  #! item: false logging; x 2
    first, second = second, first
    logger.info("%s %s", first, second)

# --- unpack_return (hard)
def losses(out):
    return out.ce.item(), out.kl  #! item: false logging


def train(model, batches, optimizer):
    for batch in batches:
        ce, kl = losses(model(batch))  #< losses
        (kl * 0.1).backward()
        optimizer.step()
        print(f"ce {ce:.3f}")

# --- branch_two_callers_up (hard)
def norm_of(p):
    return p.grad.norm().item()  #! item: true control-flow


def biggest(params):
    return max(norm_of(p) for p in params)  #< norm_of


def train_step(model, optimizer):
    if biggest(model.parameters()) < 1e3:  #< biggest
        optimizer.step()

# --- nested_function (hard)
def train(model, batches):
    seen = []

    def note(loss):
        seen.append(loss.item())  #! item: false logging

    for batch in batches:
        note(model(batch))  #< note
    print("mean", sum(seen) / len(seen))

# --- nested_closure_branch (hard)
def minimize(f, x, optimizer):
    def closure():
        optimizer.zero_grad()
        loss = f(x)
        loss.backward()
        return loss

    for _ in range(100):
        loss = optimizer.step(closure)
        if loss.item() < 1e-9:  #! item: true control-flow
            break
    return x

# --- augmented_in_dict (hard)
def epoch(model, loader):
    totals = {"loss": 0.0, "n": 0}
    for batch in loader:
        loss = model(batch)
        totals["loss"] += loss.item() * len(batch)  #! item: false logging
        totals["n"] += len(batch)
    print("epoch loss", totals["loss"] / totals["n"])

# --- accumulator_breaks (hard)
def search(model, loader, budget):
    spent = 0.0
    for batch in loader:
        spent += model(batch).cost.item()  #! item: true control-flow
        if spent > budget:
            break
    return spent

# --- container_then_branch (hard)
def step(out):
    flags = [f.item() for f in out.flags]  #! item1: true control-flow
    if any(flags):
        return None
    return out

# --- container_len_only (hard)
def step(out, step):
    vals = [v.item() for v in out.parts]  #! item: false logging
    print(len(vals), "parts", vals)

# --- match_statement (hard)
def dispatch(action, env):
    match action.item():  #! item8: true control-flow
        case 0:
            return env.left()
        case 1:
            return env.right()
        case _:
            return env.stay()

# --- try_except_log (hard)
def step(model, batch):
    try:
        loss = model(batch)
        loss.backward()
    except RuntimeError:
        logger.exception("failed at %s", loss.item())  #! item: false logging
        raise

# --- try_guard (hard)
def sample(probs):
    try:
        value = probs.sum().item()  #! item: true control-flow
        if abs(value - 1) > 1e-3:
            raise ValueError(f"probabilities sum to {value}")
    finally:
        cleanup()

# --- async_generation (hard)
async def stream(model, prompt, queue, eos):
    tokens = prompt
    while True:
        token = model.next(tokens)
        word = token.item()  #! item8: true control-flow
        if word == eos:
            break
        await queue.put(word)
        tokens = torch.cat([tokens, token])

# --- async_log (hard)
async def report(loss, session):
    await session.log({"loss": loss.item()})  #! item: false logging

# --- with_block (hard)
def step(model, batch):
    with torch.no_grad(), record_function("eval"):
        loss = model(batch)
        current = loss.item()  #! item: false logging
    print("eval", current)

# --- numpy_and_tensor_item (hard)
def summarize(scores, losses):
    best = np.argmax(scores).item(); worst = losses.max().item()  #! item: false logging
    print("worst", worst)
    return scores[best]

# --- numpy_decides_tensor_logged (hard)
def choose(host_scores, loss):
    pick = host_scores.argmax().item()
    logger.info("loss %.3f", loss.item())  #! item: false logging
    if pick > 3:
        return None
    return pick

# --- global_keyword (hard)
_best = 1e9


def track(loss):
    global _best
    value = loss.item()  #! item: true control-flow
    if value < _best:
        _best = value
        return True
    return False

# --- default_then_branch (hard)
def step(loss, limit):
    value = loss.item()  #! item: true control-flow
    label = "high" if value > limit else "low"
    if label == "high":
        return None
    return loss

# --- conditional_label_printed (hard)
def step(loss, limit):
    value = loss.item()  #! item: false logging
    print("loss", value, "(high)" if value > limit else "")

# --- generator_yields (hard)
def stream(model, batches):
    for batch in batches:
        yield model(batch).loss.item()  #! item: false logging


def show(model, batches):
    for value in stream(model, batches):  #< stream
        print(value)

# --- early_return_value (hard)
def objective(params, model, data):
    model.load(params)
    return model(data).item()  #! item: true cpu-compute; src: unknown value-read


def tune(space, model, data):
    return scipy.optimize.minimize(objective, space, args=(model, data))

# --- dropped_value (hard)
def warm_up(model, batch):
    model(batch).sum().item()  #! item: false explicit

# --- sleep_on_value (hard)
def throttle(usage):
    time.sleep(usage.item() * 0.01)  #! item: true cpu-compute

# --- modulo_print (hard)
def tick(step, loss):
    if step % 20 == 0 and rank == 0:
        now = loss.item()  #! item: false logging
        print("step %d loss %.3f" % (step, now))

# --- max_of_python_numbers (hard)
def record(loss, peak):
    peak = max(peak, loss.item())  #! item: false logging
    print("peak", peak)

# --- rl_step (hard)
def play(policy, env, state):
    logits = policy(state)
    action = torch.distributions.Categorical(logits=logits).sample()
    state, reward, done, _ = env.step(action.item())  #! item8: true cpu-compute
    return state, reward, done

# --- beam_dict_key (hard)
def group(ids, beams):
    buckets = {}
    for i, beam in zip(ids, beams):
        buckets.setdefault(i.item(), []).append(beam)  #! item8: true cpu-compute
    return buckets

# --- json_line (hard)
def emit(path, step, loss):
    with open(path, "a") as f:
        f.write(json.dumps({"step": step, "loss": loss.item()}) + "\n")  #! item: false logging

# --- redundant_read (hard)
def step(loss, meter):
    meter.update(loss.item(), 1)  #! item: false logging
    print("loss", loss.item())  #! item: false logging

# --- assert_with_and (hard)
def step(model, batch, strict):
    loss = model(batch)
    assert loss.item() < 1e4 and strict, "diverged"  #! item: true control-flow
    return loss

# --- assert_logged_value (hard)
def step(model, batch):
    loss = model(batch)
    value = loss.item()  #! item: true control-flow
    print(value)
    assert value == value, "not a number"
    return loss
