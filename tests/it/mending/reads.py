# Values that are read to be shown.

# --- three on a line
import torch
def step(loss, acc, norm, i):
    print(f"step {i} loss {loss.item():.4f} acc {acc.item():.3f} norm {norm.item():.3f}")  #! item; burst 3
# file: after
import torch
def step(loss, acc, norm, i):
    loss_value, acc_value, norm_value = torch.stack([v.reshape(()) for v in (loss, acc, norm)]).tolist()
    print(f"step {i} loss {loss_value:.4f} acc {acc_value:.3f} norm {norm_value:.3f}")

# --- on lines of their own
import torch
def step(writer, loss, acc, i):
    writer.add_scalar("loss", loss.item(), i)  #! item; burst 1
    writer.add_scalar("acc", acc.item(), i)  #! item; burst 1
    opt.step()
# file: after
import torch
def step(writer, loss, acc, i):
    loss_value, acc_value = torch.stack([v.reshape(()) for v in (loss, acc)]).tolist()
    writer.add_scalar("loss", loss_value, i)
    writer.add_scalar("acc", acc_value, i)
    opt.step()

# --- one of them not on the GPU
import torch
def step(loss, acc):
    print(loss.item(), acc.item())  #! item; burst 1; refused reads

# --- of a model on several GPUs
import torch
def step(loss, acc):
    print(loss.item(), acc.item())  #! item; burst 2; devices; refused devices

# --- in no order that tells
import torch
def step(loss, acc):
    print(loss.item(), acc.item())  #! item; refused reads

# --- perhaps integers
import torch
def step(loss, seen):
    print(loss.item(), seen.item())  #! read item 8; burst 2; refused numbers

# --- integers of four bytes
import torch
def step(loss, pred):
    seen = pred.to(torch.int32).max()
    print(loss.item(), seen.item())  #! item; burst 2; refused numbers

# --- a call between that may change them
import torch
def step(loss, acc):
    print(loss.item(), refresh(), acc.item())  #! item; burst 2; refused form

# --- the name is taken
import torch
def step(loss, acc):
    loss_value = 3
    print(loss.item(), acc.item(), loss_value)  #! item; burst 2; refused form

# --- torch under another name
import torch as th
def step(loss, acc):
    print(loss.item(), acc.item())  #! item; burst 2; refused form

# --- a single one
import torch
def step(loss):
    print(loss.item())  #! item; burst 1; refused no-edit

# --- added up, shown behind the loop
def epoch(xs):
    total = 0
    for x in xs:
        total += loss(x).item()  #! item
    print(total / len(xs))
# file: after
def epoch(xs):
    total = 0
    for x in xs:
        total += loss(x).detach().double()
    total = float(total)
    print(total / len(xs))

# --- added up by weight, divided in place
def epoch(xs):
    total = 0.0
    with torch.no_grad():
        for x in xs:
            total += len(x) * loss(x).item()  #! item
    total /= len(xs)
    print(total)
# file: after
def epoch(xs):
    total = 0.0
    with torch.no_grad():
        for x in xs:
            total += len(x) * loss(x).detach().double()
        total = float(total)
    total /= len(xs)
    print(total)

# --- shown now and then, and begun anew
def epoch(xs):
    total = 0.0
    for i, x in enumerate(xs):
        total += loss(x).item()  #! item
        if i % 100 == 0:
            print(f"{total / 100:.3f}")
            total = 0.0
# file: after
def epoch(xs):
    total = 0.0
    for i, x in enumerate(xs):
        total += loss(x).detach().double()
        if i % 100 == 0:
            print(f"{float(total) / 100:.3f}")
            total = 0.0

# --- in a loop of loops
def epoch(parts):
    total = 0.0
    for part in parts:
        for x in part:
            total += loss(x).item()  #! item
    print(total)
# file: after
def epoch(parts):
    total = 0.0
    for part in parts:
        for x in part:
            total += loss(x).detach().double()
    total = float(total)
    print(total)

# --- where there may be no float64
def epoch(xs):
    device = torch.device("mps" if torch.backends.mps.is_available() else "cuda")
    total = 0
    for x in xs:
        total += loss(x).item()  #! item; unsafe float64
    print(total)
# file: after
def epoch(xs):
    device = torch.device("mps" if torch.backends.mps.is_available() else "cuda")
    total = 0
    for x in xs:
        total += loss(x).detach().double()
    total = float(total)
    print(total)

# --- divided on the way, which rounds otherwise
def epoch(xs):
    total = 0.0
    for x in xs:
        total += loss(x).item() / len(xs)  #! item; refused no-edit
    print(total)

# --- of integers, perhaps
def epoch(xs):
    total = 0
    for x in xs:
        total += right(x).item()  #! read item 8; refused numbers
    print(total)

# --- begun elsewhere
def epoch(xs, total):
    for x in xs:
        total += loss(x).item()  #! item; refused form
    print(total)

# --- added to in another place too
def epoch(xs):
    total = 0.0
    for x in xs:
        total += loss(x).item()  #! item; refused form
        total += penalty
    print(total)

# --- seen by a function inside
def epoch(xs):
    total = 0.0
    for x in xs:
        total += loss(x).item()  #! item; refused form
    def show():
        print(total)
    show()

# --- caught on the way
def epoch(xs):
    total = 0.0
    try:
        for x in xs:
            total += loss(x).item()  #! item; refused form
    except KeyboardInterrupt:
        pass
    print(total)

# --- a list for NumPy
import torch
def epoch(xs):
    losses = []
    for x in xs:
        losses.append(loss(x).item())  #! item
        print(len(losses))
    print(np.mean(losses))
# file: after
import torch
def epoch(xs):
    losses = []
    for x in xs:
        losses.append(loss(x).detach().clone())
        print(len(losses))
    losses = torch.stack(losses).flatten().tolist() if losses else []
    print(np.mean(losses))

# --- a list that is added to, of integers
import torch
def epoch(xs):
    for part in xs:
        hits = []
        for x in part:
            hits += [right(x).sum().item()]  #! read item 8
        print(sum(hits) / len(hits))
# file: after
import torch
def epoch(xs):
    for part in xs:
        hits = []
        for x in part:
            hits += [right(x).sum().detach().clone()]
        hits = torch.stack(hits).flatten().tolist() if hits else []
        print(sum(hits) / len(hits))

# --- a list that is looked at in each turn
import torch
def epoch(xs):
    losses = []
    for x in xs:
        losses.append(loss(x).item())  #! item; refused on-cpu
        print(losses[-1])

# --- a list that others hold
import torch
def epoch(xs):
    losses = []
    history["loss"] = losses
    for x in xs:
        losses.append(loss(x).item())  #! item; refused form
    print(np.mean(losses))

# --- a list that has something in it
import torch
def epoch(xs):
    losses = [0.0]
    for x in xs:
        losses.append(loss(x).item())  #! item; refused form
    print(np.mean(losses))

# --- a list of an object
import torch
class Task:
    def epoch(self, xs):
        for x in xs:
            self.losses.append(loss(x).item())  #! item; refused no-edit
        print(np.mean(self.losses))

# --- one value twice
import torch
def step(bar, writer, loss, i):
    bar.set_postfix(loss=loss.item())  #! item; burst 1
    writer.add_scalar("loss", loss.item(), i)  #! item; burst 1
# file: after
import torch
def step(bar, writer, loss, i):
    loss_value = loss.item()
    bar.set_postfix(loss=loss_value)
    writer.add_scalar("loss", loss_value, i)

# --- told to meters of elsewhere
import torch
from utils import AverageMeter
losses, top1 = AverageMeter(), AverageMeter()
def step(x, y):
    loss, acc = model(x, y)
    losses.update(loss.item(), len(x))  #! item; burst 1
    top1.update(acc.item(), len(x))  #! item; burst 1
# file: after
import torch
from utils import AverageMeter
losses, top1 = AverageMeter(), AverageMeter()
def step(x, y):
    loss, acc = model(x, y)
    loss_value, acc_value = torch.stack([v.reshape(()) for v in (loss, acc)]).tolist()
    losses.update(loss_value, len(x))
    top1.update(acc_value, len(x))

# --- listed by a name, and read now and then
import torch
def train(steps):
    losses = []
    for i in range(steps):
        current = step(i).item()  #! item
        losses.append(current)
        if i % 100 == 0:
            print(np.mean(losses), losses[-1])
            losses.clear()
# file: after
import torch
def train(steps):
    losses = []
    for i in range(steps):
        current = step(i).detach().clone()
        losses.append(current)
        if i % 100 == 0:
            print(np.mean(torch.stack(losses).flatten().tolist() if losses else []), (torch.stack(losses).flatten().tolist() if losses else [])[-1])
            losses.clear()

# --- the name is read elsewhere too
import torch
def train(steps):
    losses = []
    for i in range(steps):
        current = step(i).item()  #! item; refused no-edit
        losses.append(current)
        if current > 3:
            break
    print(np.mean(losses))

# --- the list gets another name now and then
import torch
def train(steps):
    losses = []
    for i in range(steps):
        losses.append(step(i).item())  #! item; refused on-cpu
        if i % 100 == 0:
            seen = losses
    print(seen)

# --- a progress bar told now and then
def train(bar):
    for i, x in enumerate(bar):
        loss = step(x)
        if i % 50 == 0:
            bar.set_postfix(loss=loss.item())  #! item; refused no-edit

# --- a list that is read in every turn of an inner loop
import torch
def train(steps):
    losses = []
    for i in range(steps):
        losses.append(step(i).item())  #! item; refused on-cpu
        for writer in writers:
            writer.add_scalar("mean", np.mean(losses), i)

# --- a part of what was just told
import torch
def step(meter, loss):
    meter.update(loss.item(), 1)  #! item; burst 1; refused form
    print(meter.avg.item())  #! item; burst 1; refused form

# --- a collective in between writes to what is read behind it
import torch
def step(loss, norm):
    print(loss.item(), dist.scatter(norm), norm.item())  #! item; burst 2; refused form
