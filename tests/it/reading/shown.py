# Reads that are shown or recorded; meters, metrics, writers and progress bars.

# --- evidence names names and lines
def f(loss):
    lossf = loss.item()  #! item: logging; pattern A01; expression loss.item(); text `lossf` is only an argument of logger.info (line 3)
    logger.info(f'{lossf}')

# --- now and then
if step % 10 == 0:
    print(loss.item())  #! item: logging; rules S04 S18

# --- two reads on a line
print(a.item(), b.item())  #! item: logging; rules S04 S17 S04

# --- a guard
if loss.item() > 9:  #! item: control-flow; rules S02
    raise ValueError

# --- added up
for x in xs:
    total += x.item()  #! item: logging; rules S05
print(total)

# --- shown as they are
def f(loss, i, n, a, b, xs, y):
    print(loss.item())  #! item: logging
    print(f'loss {loss.item():.4f}')  #! item: logging
    logger.info('loss %f', loss.item())  #! item: logging
    wandb.log({'loss': loss.item(), 'lr': 1})  #! item: logging
    writer.add_scalar('loss', loss.item(), i)  #! item: logging
    pbar.set_postfix(loss=loss.item())  #! item: logging
    loss_meter.update(loss.item(), n)  #! item: logging
    metric_logger.update(loss=loss.item())  #! item: logging
    print('a %f b %f' % (a.item(), b.item()))  #! item: logging
    print(np.mean([x.item() for x in xs]))  #! item: logging
    tqdm.write(str(loss.item()))  #! item: logging
    loss.item()  #! item: explicit
    print(y[0, 0])  #! print: debug-print
    print(f'{loss:.3f}')  #! format: logging
    logger.info('loss %s', loss)  #! print: logging

# --- log_dict
class M:
    def step(self, loss):
        self.log_dict({'a': loss.item()})  #! item: logging

# --- self.log
class M:
    def step(self, loss):
        self.log('loss', loss.item())  #! item: logging

# --- named
def f(loss):
    v = loss.item()  #! item: logging
    logger.info(f'{v:.3f}')

# --- format
def f(loss):
    s = 'loss {:.3f}'.format(loss.item())  #! item: logging
    print(s)

# --- error text
def f(x, ok):
    raise ValueError(f'bad {x.item()}')  #! item: logging

# --- rounded
def f(loss):
    v = round(float(loss), 3)  #! float: logging
    print(v)

# --- file
def f(loss):
    with open('l.txt', 'a') as f:
        f.write(f'{loss.item()}\n')  #! item: logging

# --- never read
def f(loss):
    v = loss.item()  #! item: explicit
    return None

# --- handed on with all other names
class Runner:
    def learn(self, rewards):
        kept = []
        most = 0
        for r in rewards:
            kept.extend(r.cpu().numpy().tolist())  #! cpu: logging
            most = r.item()  #! item: control-flow
        self.tell(locals())
    def tell(self, names):
        print(names["kept"])
        if names["most"] > 3:
            self.grow()

# --- text kept
def f(y):
    s = f'{y:.3f}'  #! format: value-read
    return s

# --- a writer by its name
def f(x, writer):
    writer.write(x.item())  #! item: logging

# --- a writer made here
def f(x):
    writer = W()
    writer.write(x.item())  #! item: logging

# --- progress by its name
def f(x, progress):
    progress.set(x.item())  #! item: logging

# --- a meter made here
def f(x):
    meter = M()
    meter.update(x.item())  #! item: logging
    print(meter.avg)

# --- a meter by its name
def f(x, top1):
    top1.update(x.item(), x.size(0))  #! item: logging

# --- a meter of the object
class T:
    def f(self, x):
        self.meter.update(x.item())  #! item: logging

# --- a progress bar by its method
def f(x):
    pbar.set_postfix(x=x.item())  #! item: logging

# --- a meter read by a guard
def f(xs):
    meter = M()
    for x in xs:
        v = x.item()  #! item: logging; rule S05
        meter.update(v)
    if meter.avg > 3:
        raise ValueError

# --- a meter that stops the loop
def f(xs):
    meter = M()
    for x in xs:
        v = x.item()  #! item: control-flow
        meter.update(v)
        if meter.compute() > 3:
            break

# --- a meter that sets the rate
def f(xs):
    meter = M()
    for x in xs:
        v = x.item()  #! item: logging; rule S05
        meter.update(v)
    scheduler.step(meter.avg)

# --- a meter that is shown
def f(xs):
    meter = M()
    for x in xs:
        v = x.item()  #! item: logging
        meter.update(v)
    print(meter.avg, meter)

# --- the count of a meter decides
def f(xs):
    meter = M()
    for x in xs:
        v = x.item()  #! item: logging
        meter.update(v)
    if meter.count > 3:
        print(meter.avg)

# --- whether there is a meter
def f(xs):
    meter = M()
    for x in xs:
        v = x.item()  #! item: logging
        meter.update(v)
    if meter is not None:
        print(meter.avg)

# --- whether it depends on the value is not known
def f(xs):
    meter = M()
    for x in xs:
        v = x.item()  #! item: value-read
        meter.update(v)
    if meter.ready:
        save()

# --- a meter returned
def f(xs):
    meter = M()
    for x in xs:
        v = x.item()  #! item: logging
        meter.update(v)
    return meter.avg

# --- a meter asked by another method
class T:
    def f(self, x):
        self.meter.update(x.item())  #! item: control-flow
    def g(self):
        if self.meter.avg > 3:
            self.stop()

# --- another figure of the meter
def f(ml, a, b):
    ml.metrics.update(a=a.item())  #! item: logging
    ml.metrics.update(b=b)
    if ml.metrics.b.avg > 3:
        g()

# --- a dict that is updated
def f(a):
    metrics = {}
    metrics.update({'a': a.item()})  #! item: control-flow
    if metrics['a'] > 3:
        g()

# --- a dict that is updated, another key
def f(a):
    metrics = {}
    metrics.update({'a': a.item()})  #! item: logging
    if metrics['b'] > 3:
        g()

# --- a meter asked by the caller
def v(xs):
    top1 = M()
    for x in xs:
        top1.update(x.item(), 4)  #! item: logging; rule S05
    return top1.avg
def main(xs, best):
    acc = v(xs)  #< v
    if acc > best:
        save()

# --- text by percent
print("loss %.4f" % loss)  #! float: logging

# --- counts by percent
print("found %d of %d" % (hits, total))  #! int: logging

# --- an expected end
import datetime
def remaining(rate, n):
    seconds = rate.item() * n  #! item: logging
    print("left:", datetime.timedelta(seconds=int(seconds)))

# --- a table of keys and values
def note(losses):
    for key, value in losses.items():
        board.logkv_mean(key, value.mean().item())  #! item: logging

# --- text in a file of its own
def f(a):
    out = open('distances.txt', 'w')
    out.writelines('%.6f' % a.item())  #! item: cpu-compute

# --- text for a file that the caller chose
def f(a, output_file):
    print('H-{}'.format(a.item()), file=output_file)  #! item: cpu-compute

# --- text in a log
def f(a):
    out = open('loss.log', 'w')
    out.write('%.6f' % a.item())  #! item: logging

# --- text in a file that is added to
def f(a):
    out = open('distances.txt', 'a')
    out.write('%.6f' % a.item())  #! item: logging

# --- figures of a checkpoint
def f(loader, model):
    total = 0
    for x in loader:
        total += model(x).item()  #! item: logging
        if is_best():
            torch.save({'loss': total}, 'best.pt')

# --- shown now and then already: here, or where the function is called
def train(model, batches):
    for i, batch in enumerate(batches):
        loss = model(batch)
        if i % 100 == 0:
            print(loss.item())  #! item: logging; pattern A44; rules S04 S18
            display(loss)  #< display
        if rank == 0:
            print(loss.item())  #! item: logging; pattern A01; rules S04 S18

def display(loss):
    print(f'loss {loss.item()}')  #! item: logging; pattern A44; rules S04 S18

# --- a whole loop now and then
def evaluate(model, epochs, batches):
    for epoch in epochs:
        if epoch % 5 == 0:
            for batch in batches:
                print(model(batch).item())  #! item: logging; pattern A01; rules S04 S18

# --- a read that stands for a synchronisation
def timed(model, x):
    start = time.time()
    model(x).item()  #! item: timing; rule S15; pattern F01
    print(time.time() - start)

# --- the same in a function of its own
def wait(y):
    y.sum().item()  #! item: timing; rule S15; pattern F01

def timed(model, x):
    start = time.time()
    y = model(x)
    wait(y)  #< wait
    print(time.time() - start)

# --- one that stands for nothing
def step(model, x):
    model(x).item()  #! item: explicit; pattern A01
    model.update()

# --- made for a log, inside its call
def f(writer, model, x):
    writer.add_image('gate', plot(model(x).cpu().numpy()), 3)  #! cpu: logging

# --- made for a log by a function at hand that decides by it
def score(v):
    if v > 3:
        save()
    return v
def f(logger, x):
    logger.info('score %s', score(x.item()))  #! item: control-flow

# --- a branch that only shows, and one that does more
def f(loss, x):
    if loss.item() > 9:  #! item: logging
        print('large')
    if x.isnan().any():  #! is_nonzero: logging; pattern A35
        logger.warning('NaN')
    if x.sum().item() > 9:  #! item: control-flow
        print('large')
        step()

# --- made for a log by a function that is not at hand
def f(writer, x):
    print(ext.decide(x.item()))  #! item: logging

# --- a branch that shows, and does something besides
def f(x, it):
    if x.item() > 3 and advance():  #! item: control-flow
        print('x')
    if x.isnan().any():  #! is_nonzero: control-flow
        print(next(it))
    if x.sum().item() > 3:  #! item: logging
        print('x', float(x.mean()), x.shape)
