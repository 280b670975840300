# Expressions rewritten without the wait.

# --- to
x = x.to('cuda')  #! to: upload; fix x.to('cuda', non_blocking=True)

# --- cuda
x = x.cuda()  #! cuda: upload; fix x.cuda(non_blocking=True)

# --- tensor
x = torch.tensor(v, device='cuda')  #! tensor: upload; fix torch.tensor(v).to('cuda', non_blocking=True)

# --- branch
if loss.item() > 3: g()  #! item: control-flow; nofix

# --- repeat_interleave
y = torch.repeat_interleave(x, r)  #! repeat-interleave: dynamic-shape; nofix

# --- shown
print(loss.item())  #! item: logging; nofix

# --- shown with a format
print(f'{loss.item():.4f}')  #! item: logging; nofix

# --- shown by its name
v = loss.item()  #! item: logging; nofix
logger.info(v)

# --- collected, and off the graph already
def f(batches):
    losses = []
    for x in batches:
        losses.append(step(x).detach().item())  #! item: logging; fix step(x).detach()
    return losses

# --- one read twice
print(loss.item(), loss.item())  #! item: logging; nofix

# --- three reads
print(f'{loss.item()} {acc.item()} {gnorm.item():.3f}')  #! item: logging; fix torch.stack([loss, acc, gnorm]).tolist()

# --- two lines of reads
a = loss.item()  #! item: logging; fix torch.stack([loss, out.acc.mean()]).tolist()
b = out.acc.mean().item()
print(a, b)

# --- reads in a dict
wandb.log({'a': d['a'].item(), 'b': b.item()})  #! item: logging; fix torch.stack([d['a'], b]).tolist()

# --- not safe to repeat
print(next(xs).item(), b.item())  #! item: logging; nofix

# --- not safe to repeat, a call
print(m(x).item(), b.item())  #! item: logging; nofix

# --- not on the device
n = np.argmax(scores)
print(n.item(), b.item())  #! item: logging; nofix

# --- another tensor by then
x = a.item()  #! item: round-trip; nofix
y = x.item()
print(x, y)

# --- perhaps never read
print(a.item(), b.item() if b else 0)  #! item: logging; nofix

# --- a sum
for x in xs:
    total += x.item()  #! item: logging; fix x.detach()
print(total)

# --- a list
for x in xs:
    losses.append(x.item())  #! item: logging; fix x.detach()
print(sum(losses))

# --- a sum shown now and then
for i, x in xs:
    total += x.item()  #! item: logging; fix x.detach()
    if i % 100 == 0:
        print(total)

# --- a sum shown each time
for x in xs:
    total += x.item()  #! item: logging; nofix
    print(total)

# --- shown and added
for x in xs:
    v = x.item()  #! item: logging; nofix
    print(v)
    total += v
print(total)

# --- back to the device
s = x.item()  #! item: round-trip; fix x.detach()
y = z.cuda() * s

# --- a tensor of it
y = torch.tensor([x.item()]).cuda()  #! item: round-trip; nofix

# --- a sum in parentheses, kept
s = (a + b).item()  #! item: round-trip; fix (a + b).detach()
y = z.cuda() * s
