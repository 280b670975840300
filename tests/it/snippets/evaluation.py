# --- accuracy
@torch.no_grad()
def evaluate(model, loader):
    correct = total = 0
    for x, y in loader:
        pred = model(x).argmax(dim=1)
        correct += (pred == y).sum().item()  #! item8: false logging
        total += y.numel()
    return correct / total

# --- epoch_report
def report(model, loader):
    loss, acc = evaluate(model, loader)
    print("loss {:.4f} acc {:.2%}".format(loss.item(), acc.item()))  #! item: false logging; x 2

# --- sklearn_auc
def auc(model, loader):
    scores, labels = [], []
    for x, y in loader:
        scores.append(torch.sigmoid(model(x)))
        labels.append(y)
    return roc_auc_score(torch.cat(labels).cpu().numpy(), torch.cat(scores).cpu().numpy())  #! cpu: true cpu-compute; x 2

# --- hungarian
def match(cost, sizes):
    cost = cost.cpu()  #! cpu: true cpu-compute
    return [linear_sum_assignment(c[i]) for i, c in enumerate(cost.split(sizes, -1))]

# --- image_dump
def dump(frames, folder):
    for i, frame in enumerate(frames):
        image = (frame.clamp(0, 1) * 255).byte().permute(1, 2, 0).cpu().numpy()  #! cpu: true cpu-compute
        cv2.imwrite(f"{folder}/{i:05d}.png", image)

# --- history_list (hard)
def validate(model, loader, history):
    losses = []
    for batch in loader:
        losses.append(model(batch).item())  #! item: false logging
    history["val_loss"].append(sum(losses) / len(losses))
    print("val", history["val_loss"][-1])

# --- top_k_text
def show_predictions(logits, names):
    values, indices = logits.softmax(-1).topk(5)
    for name in [names[i] for i in indices.tolist()]:  #! tolist: true cpu-compute
        print(name)

# --- perplexity (hard)
def perplexity(model, loader):
    nll, n = 0.0, 0
    for batch in loader:
        out = model(batch)
        nll += float(out.loss) * batch.numel()  #! float: false logging
        n += batch.numel()
    ppl = math.exp(nll / n)
    logger.info(f"perplexity {ppl:.2f}")
    return ppl

# --- metrics_dict_caller (hard)
def validate(model, batch):
    out = model(batch)
    return {"loss": out.loss.item(), "size": len(batch)}  #! item via fit: true control-flow | item via smoke: false logging


def fit(model, batches):
    for batch in batches:
        m = validate(model, batch)  #< validate
        if m["loss"] > 10:
            raise RuntimeError("diverged")


def smoke(model, batch):
    print(validate(model, batch)["loss"])  #< validate

# --- other_key_decides (hard)
def stats(out):
    return {"loss": out.loss.item(), "stop": out.stop}  #! item: false logging


def run(model, batches):
    for batch in batches:
        s = stats(model(batch))  #< stats
        if s["stop"]:
            break
        logger.info("loss %.3f", s["loss"])

# --- confusion_matrix
def confusion(pred, target, classes):
    hist = torch.bincount(target * classes + pred, minlength=classes ** 2)  #! bincount: true dynamic-shape; nosrc: true dynamic-shape
    return hist.view(classes, classes)

# --- compare_outputs
def same(a, b):
    if not torch.allclose(a, b, atol=1e-5):  #! allclose: true control-flow
        return (a - b).abs().max()
    return None

# --- regression_assert
def check(fast, slow, x):
    assert torch.equal(fast(x), slow(x)), "kernels disagree"  #! equal: true control-flow

# --- matplotlib (hard)
def plot(losses):
    ys = [l.item() for l in losses]  #! item: false logging
    plt.plot(ys)
    plt.savefig("loss.png")

# --- csv_row (hard)
def record(path, epoch, loss, acc):
    with open(path, "a", newline="") as f:
        csv.writer(f).writerow([epoch, loss.item(), acc.item()])  #! item: false logging; x 2

# --- early_exit_layers (hard)
def forward(layers, head, x, threshold):
    for layer in layers:
        x = layer(x)
        confidence = head(x).softmax(-1).amax()
        if confidence.item() > threshold:  #! item: true control-flow
            break
    return x

# --- average_decides_after_loop (hard)
def fit(model, loader, best):
    losses = []
    for batch in loader:
        losses.append(model(batch).item())  #! item: false logging
    avg = sum(losses) / len(losses)
    print(f"val {avg:.4f}")
    if avg < best:
        torch.save(model.state_dict(), "best.pt")  #! save: true cpu-compute
    return avg

# --- returned_average_decides (hard)
def evaluate(model, loader):
    total = 0.0
    for batch in loader:
        total += model(batch).loss.item()  #! item: false logging
    return total / len(loader)


def fit(model, train, valid, epochs):
    best = float("inf")
    for epoch in range(epochs):
        val = evaluate(model, valid)  #< evaluate
        print(epoch, val)
        if val < best:
            best = val

# --- returned_average_is_shown (hard)
def evaluate(model, loader):
    total = 0.0
    for batch in loader:
        total += model(batch).loss.item()  #! item: false logging
    return total / len(loader)


def fit(model, valid, epochs):
    for epoch in range(epochs):
        logger.info("%d %.3f", epoch, evaluate(model, valid))  #< evaluate

# --- plateau_of_running_sum (hard)
def epoch(model, loader, scheduler):
    running = 0.0
    for batch in loader:
        loss = model(batch)
        loss.backward()
        running += loss.item()  #! item: false logging
    scheduler.step(running / len(loader))
