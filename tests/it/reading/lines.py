# Lines with several expressions, statements over several lines, and lines that do not hold what the trace saw.

# --- agree
def f(a, b):
    print(a.item(), b.item())  #! item: logging

# --- one of two is needed
def f(a, b):
    print(a.item() if b.item() > 0 else 0)  #! item: control-flow

# --- method tells them apart
def f(a, m):
    print(a[m > 0].sum().item())  #! item: logging

# --- method tells them apart, mask
def f(a, m):
    print(a[m > 0].sum().item())  #! get-mask: round-trip

# --- upload next to a read
def f(x, loss):
    x, v = x.cuda(), loss.item()  #! cuda: upload
    print(v)

# --- read next to an upload
def f(x, loss):
    x, v = x.cuda(), loss.item()  #! item: logging; nochain
    print(v)

# --- numpy item next to a tensor's
def f(loss, xs):
    acc = np.mean(xs)
    if acc.item() > 0.5: print(loss.item())  #! item: logging

# --- int of a length
def f(loss, xs):
    n = int(len(xs)); v = float(loss)  #! item: logging; nochain
    if n > 3:
        print(v)

# --- semicolons
def f(a):
    x = 1; v = a.item(); print(v)  #! item: logging

# --- not at the start of the line
def f(a, b, flag):
    result = compute(a, b)['x'] if flag else torch.stack([a, b]).mean().item()  #! item: logging
    print(result)

# --- cpu then item
def f(loss):
    print(loss.cpu().item())  #! cpu: logging

# --- cpu then numpy
def f(y):
    a = y.detach().cpu().numpy()  #! cpu: control-flow
    if a.max() > 3:
        g()

# --- int method of a Python value
def f(step, n, loss):
    if step.count(n) == 0: print(loss.item())  #! item: logging

# --- format and item
def f(loss, acc):
    print(f'{loss:.3f} {acc.item():.3f}')  #! format: logging

# --- host value formatted too
def f(loss):
    for i in range(3):
        print(f'{i} {loss:.3f}')  #! format: logging

# --- a chain over several lines
def f(out):
    v = (out  #! cpu: logging; expression out .argmax(1) .float() .mean() .cpu()
         .argmax(1)  #! cpu: logging; expression out .argmax(1) .float() .mean() .cpu()
         .float()
         .mean()  #! cpu: logging; expression out .argmax(1) .float() .mean() .cpu()
         .cpu()  #! cpu: logging; expression out .argmax(1) .float() .mean() .cpu()
         .numpy())
    print(v)

# --- argument lines
def f(logger, loss, acc):
    logger.log(
        'x',
        loss.item(),  #! item: logging
        acc,
    )

# --- start of the statement
def f(logger, loss, acc):
    logger.log(  #! item: logging
        'x',
        loss.item(),
        acc,
    )

# --- the line's own read wins
def f(loss, acc):
    record(
        a=check(loss.item()),
        b=print(acc.item()),  #! item: logging
    )

# --- triple-quoted f-string
def f(loss):
    print(f'''
    loss {loss.item()}
    ''')  #! item: logging

# --- decorator
@register(limit=X.item())  #! item: value-read
def f():
    pass

# --- default value
def f(n=X.item()):  #! item: value-read; in <module>
    pass

# --- body below a decorator
@torch.no_grad()
@other
def f(loss):
    print(loss.item())  #! item: logging

# --- case guard
def f(x, t):
    match x:
        case 1 if t.item() > 3:  #! item: control-flow
            g()

# --- lambda body
def f(xs):
    g = lambda t: print(t.item())  #! item: logging; in <lambda>
    g(xs)

# --- class body
class C:
    limit = X.item()  #! item: value-read; in C

# --- nested function
def outer():
    def inner(loss):
        print(loss.item())  #! item: logging
    return inner

# --- qualified name
class C:
    def f(self, loss):
        print(loss.item())  #! item: logging; in C.f

# --- while with else
def f(t):
    while t.sum() > 0:  #! truth: control-flow
        t = g(t)
    else:
        h()

# --- chained comparison
def f(a, b, c):
    if a < b < c:  #! truth: control-flow
        g()

# --- two lines below a read
def f(loss):
    print(loss.item())

    x = 3  #! item: stale

# --- plain line
def f(loss):
    x = 1  #! item: stale
    loss.item()

# --- one off
def f(loss):
    loss.item()
    y = g(loss)  #! item: stale

# --- wrong direction
def f(loss):
    print(loss.item())  #! to: stale; nochain

# --- too large
def f(loss):
    print(loss.item())  #! cpu: stale; nochain

# --- body of the if
def f(loss):
    if loss.item() > 3:
        x = 1  #! item: stale

# --- comment
def f(loss):
    # loss.item()  #! item: stale
    pass

# --- string
def f(loss):
    s = 'loss.item()'  #! item: stale

# --- other function
def f(loss):
    print(loss.item())  #! item: stale; in g

# --- no synchronize
def f():
    x = 1  #! sync: stale; nochain

# --- a message asks for its numbers
import answer_pb2

def reply(tokens):
    return answer_pb2.Tokens(
        ids=tokens,  #! index: cpu-compute
    )

# --- code without frames asks for a number
def stamp(tokens, header):
    header.stamp(3, tokens)  #! int: value-read

# --- a type by a name of its own
Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor

def noise(n):
    return Tensor(np.random.normal(0, 1, n))  #! upload pynew: upload; pattern C01

# --- tensors are made on the device
torch.set_default_tensor_type('torch.cuda.FloatTensor')

def boxes(gt, w):
    found = torch.Tensor(gt)  #! upload pynew: upload; pattern C01
    found[:, [0, 2]] *= w  #! upload setitem: upload
    return found

# --- stored at indices of the host: one number at those of one dimension can be filled in
def store(x, rows, columns, t):
    x[:, rows] = -np.inf  #! upload setitem: upload; pattern C05
    x[:, mask] = 0  #! upload setitem: upload; pattern C17
    x[rows, columns] = 0  #! upload setitem: upload; pattern C17
    x[rows] = t  #! upload setitem: upload; pattern C17
    x[3] = 1.0  #! upload setitem: upload; pattern C06

# --- picked by a list that is a range: a slice
def pick(x, rows):
    a = x[:, :, [0]]  #! upload getitem: upload; pattern C18
    b = x[..., [2, 3, 4]]  #! upload getitem: upload; pattern C18
    c = x[:, [0, 2]]  #! upload getitem: upload; pattern C07
    return a, b, c, x[rows]  #! upload getitem: upload; pattern C07

# --- stored from a bound of the device on
def mend(m, hs, v):
    for h in hs.sum(1):
        m[h:] = v  #! read setitem 8: dynamic-shape; pattern A45

# --- moved where no loader is in sight
def transcribe(mel, model):
    return model(mel.to('cuda'))  #! to: upload; pattern C15

# --- and where one is
def train(loader, model):
    for x in loader:
        model(x.to('cuda'))  #! to: upload; pattern C03
