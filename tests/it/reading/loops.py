# Values that a loop collects: what is shown after the loop can be read there, and so can a sum that decides there.

# --- shown
def f(loader, best):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: logging; silent only once after the loop
    avg = total / len(loader)
    print(avg)

# --- best
def f(loader, best):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: logging; rule S05; says read once
    avg = total / len(loader)
    print(avg)
    if avg < best:
        save()

# --- rate
def f(loader, best):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: logging; rule S05; says read once
    avg = total / len(loader)
    print(avg)
    scheduler.step(avg)

# --- guard
def f(loader, best):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: logging; rule S05; says read once
    avg = total / len(loader)
    print(avg)
    if math.isnan(avg):
        raise ValueError

# --- list
def f(loader, best):
    losses = []
    for x in loader:
        losses.append(loss_of(x).item())  #! item: logging; silent only once after the loop
    avg = sum(losses) / len(loader)
    print(avg)

# --- list, best
def f(loader, best):
    losses = []
    for x in loader:
        losses.append(loss_of(x).item())  #! item: logging; rule S05; says read once
    avg = sum(losses) / len(loader)
    print(avg)
    if avg < best:
        save()

# --- slept
def f(loader, best):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: logging; rule S05; says read once
    avg = total / len(loader)
    print(avg)
    time.sleep(avg)

# --- returned to a log
def evaluate(loader):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: logging; silent only once after the loop
    return total / len(loader)

def fit(loader, best):
    val = evaluate(loader)  #< evaluate
    print(val)

# --- returned to a branch
def evaluate(loader):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: logging; rule S05; says read once
    return total / len(loader)

def fit(loader, best):
    val = evaluate(loader)  #< evaluate
    print(val)
    if val < best:
        save()

# --- returned to a scheduler
def evaluate(loader):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: logging; rule S05; says read once
    return total / len(loader)

def fit(loader, best):
    val = evaluate(loader)  #< evaluate
    scheduler.step(val)

# --- returned to nobody known
def evaluate(loader):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: logging; silent only once after the loop
    return total / len(loader)

# --- inside the loop nothing can wait
def f(loader, best):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: control-flow; silent only once
        avg = total / len(loader)
        if avg > best:
            break

# --- list whose elements decide
def f(loader, best):
    losses = []
    for x in loader:
        losses.append(loss_of(x).item())  #! item: control-flow; says only once after the loop
    first, second = losses
    if first < second:
        save()

# --- scores
def f(loader, labels):
    scores = []
    for x in loader:
        scores.append(model(x).cpu())  #! cpu: logging
    return roc_auc_score(labels, torch.cat(scores).numpy())

# --- numbers that are looked at every so many steps
def train(loader, model, writer, every):
    costs, best = [], 1e9
    for step, x in enumerate(loader):
        cost = model(x).mean().item()  #! item: logging; says every so many turns
        costs.append([cost, step])
        writer.add_scalar('cost', costs[-1][0], step)
        if step % every == 0:
            if np.asarray(costs).mean(0)[0] < best:
                save(model)
            costs = []

# --- one number, looked at every so many steps
def train(loader, model, every):
    for step, x in enumerate(loader):
        cost = model(x).mean().item()  #! item: logging; says every so many turns
        if step % every == 0:
            if cost > 9:
                restart(model)

# --- in every step, on one rank
def train(loader, model, rank):
    for step, x in enumerate(loader):
        cost = model(x).mean().item()  #! item: control-flow
        if rank == 0:
            if cost > 9:
                save(model)

# --- losses that are drawn after the loop
def train(loader, model):
    loss_hist = np.array([])
    for x in loader:
        loss = model(x)
        loss_hist = np.append(loss_hist, loss.detach().cpu().numpy())  #! read cpu 4: logging
    plt.plot(loss_hist)
