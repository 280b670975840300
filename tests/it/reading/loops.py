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
        total += loss_of(x).item()  #! item: logging; rule S05; <= 0.8; says read once
    avg = total / len(loader)
    print(avg)
    if avg < best:
        save()

# --- rate
def f(loader, best):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: logging; rule S05; <= 0.8; says read once
    avg = total / len(loader)
    print(avg)
    scheduler.step(avg)

# --- guard
def f(loader, best):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: logging; rule S05; <= 0.8; says read once
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
        losses.append(loss_of(x).item())  #! item: logging; rule S05; <= 0.8; says read once
    avg = sum(losses) / len(loader)
    print(avg)
    if avg < best:
        save()

# --- slept
def f(loader, best):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  #! item: logging; rule S05; <= 0.8; says read once
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
        total += loss_of(x).item()  #! item: logging; rule S05; <= 0.8; says read once
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
        total += loss_of(x).item()  #! item: logging; rule S05; <= 0.8; says read once
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
        losses.append(loss_of(x).item())  #! item: control-flow; <= 0.8; says only once after the loop
    first, second = losses
    if first < second:
        save()

# --- scores
def f(loader, labels):
    scores = []
    for x in loader:
        scores.append(model(x).cpu())  #! cpu: logging
    return roc_auc_score(labels, torch.cat(scores).numpy())

# --- actions for each of several environments
def simulate(envs, agent, obs):
    action = agent(obs)
    action = [{k: np.array(action[k][i].detach().cpu()) for k in action} for i in range(len(envs))]  #! cpu: cpu-compute
    return [e.step(a) for e, a in zip(envs, action)]
