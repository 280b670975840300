# Meters that are told numbers of the GPU.

# --- shown now and then
class AverageMeter(object):
    """Average and last value."""
    def __init__(self, name):
        self.name = name
        self.reset()
    def reset(self):
        self.val = self.avg = self.sum = self.count = 0
    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count
    def __str__(self):
        return "{name} {val:.4f} ({avg:.4f})".format(**self.__dict__)
class Progress:
    def __init__(self, meters):
        self.meters = meters
    def show(self):
        print([str(meter) for meter in self.meters])
def epoch(xs):
    losses, seen = AverageMeter("loss"), AverageMeter("seen")
    times = AverageMeter("time")
    progress = Progress([losses, times])
    for i, x in enumerate(xs):
        losses.update(loss(x).item(), len(x))  #! item; unsafe rounding
        seen.update(len(x))
        if i % 100 == 0:
            progress.show()
    if seen.avg > 3:
        return losses.avg
    return x.float().sum(), times.avg
# file: after
class AverageMeter(object):
    """Average and last value."""
    def __init__(self, name):
        self.name = name
        self.reset()
    def reset(self):
        self.val = self.avg = self.sum = self.count = 0
    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count
    def __str__(self):
        return "{name} {val:.4f} ({avg:.4f})".format(**self.__dict__)
class Progress:
    def __init__(self, meters):
        self.meters = meters
    def show(self):
        print([str(meter) for meter in self.meters])
def epoch(xs):
    losses, seen = AverageMeter("loss"), AverageMeter("seen")
    times = AverageMeter("time")
    progress = Progress([losses, times])
    for i, x in enumerate(xs):
        losses.update(loss(x).detach().double().squeeze(), len(x))
        seen.update(len(x))
        if i % 100 == 0:
            progress.show()
    if seen.avg > 3:
        return float(losses.avg)
    return x.float().sum(), times.avg

# --- that decides something
class Meter:
    def __init__(self):
        self.sum = self.best = 0
    def update(self, val, n=1):
        self.sum += val * n
        if val > self.best:
            self.best = val
def epoch(xs):
    losses = Meter()
    for x in xs:
        losses.update(loss(x).item(), len(x))  #! item; refused meter
    return losses.sum

# --- that lists what it is told
class Meter:
    def __init__(self):
        self.all = []
    def update(self, val, n=1):
        self.all.append(val)
def epoch(xs):
    losses = Meter()
    for x in xs:
        losses.update(loss(x).item(), len(x))  #! item; refused meter
    return np.mean(losses.all)

# --- whose sum is also its last value
class Meter:
    def __init__(self):
        self.sum = self.val = 0
    def update(self, val, n=1):
        self.val = val
        self.val += n
        self.sum = self.val
def epoch(xs):
    losses = Meter()
    for x in xs:
        losses.update(loss(x).item(), len(x))  #! item; refused meter
    return losses.sum

# --- that others get
class Meter:
    def __init__(self):
        self.sum = 0
    def update(self, val, n=1):
        self.sum += val * n
def epoch(xs):
    losses = Meter()
    for x in xs:
        losses.update(loss(x).item(), len(x))  #! item; refused meter
    return losses

# --- that is read by those who know nothing of it
class Meter:
    def __init__(self):
        self.sum = 0
    def update(self, val, n=1):
        self.sum += val * n
def show(meters):
    json.dump([meter.sum for meter in meters], out)
def epoch(xs):
    losses = Meter()
    for x in xs:
        losses.update(loss(x).item(), len(x))  #! item; refused meter
    show([losses])

# --- shown as it is
class Meter:
    def __init__(self):
        self.sum = 0
    def update(self, val, n=1):
        self.sum += val * n
    def __repr__(self):
        return f"{self.sum!r}"
def epoch(xs):
    losses = Meter()
    for x in xs:
        losses.update(loss(x).item(), len(x))  #! item; refused meter
    print(losses)

# --- of a class that is derived from another
class Meter(Base):
    def update(self, val, n=1):
        self.sum += val * n
def epoch(xs):
    losses = Meter()
    for x in xs:
        losses.update(loss(x).item(), len(x))  #! item; refused no-edit
    print(losses.sum)

# --- that is asked by names as text
class Meter:
    def __init__(self):
        self.sum = 0
    def update(self, val, n=1):
        self.sum += val * n
def show(meter):
    json.dump(getattr(meter, "sum"), out)
def epoch(xs):
    losses = Meter()
    for x in xs:
        losses.update(loss(x).item(), len(x))  #! item; refused no-edit
    show(losses)

# --- that reads itself as it is
class Meter:
    def __init__(self):
        self.sum = 0
    def update(self, val, n=1):
        self.sum += val * n
    def ready(self):
        return self.sum > 3
def epoch(xs):
    losses = Meter()
    for x in xs:
        losses.update(loss(x).item(), len(x))  #! item; refused meter
    print(losses.sum)

# --- that has another name
class Meter:
    def __init__(self):
        self.sum = 0
    def update(self, val, n=1):
        self.sum += val * n
def epoch(xs):
    losses = Meter()
    best = losses
    for x in xs:
        losses.update(loss(x).item(), len(x))  #! item; refused meter
    print(best.sum)
