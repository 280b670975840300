//! Labelled snippets: which expression waits, and the verdict where it stands.

use super::Observed;
use super::tests::Expect::Is;
use super::tests::*;
use crate::vocabulary::Kind::*;

#[test]
fn reads_shown_or_recorded() {
    check(&[
        ("print", "def f(loss):\n    print(loss.item())  # <- here\n", item(), Is(Logging)),
        ("f-string", "def f(loss):\n    print(f'loss {loss.item():.4f}')  # <- here\n", item(), Is(Logging)),
        ("logger", "def f(loss):\n    logger.info('loss %f', loss.item())  # <- here\n", item(), Is(Logging)),
        (
            "wandb",
            "def f(loss):\n    wandb.log({'loss': loss.item(), 'lr': 1})  # <- here\n",
            item(),
            Is(Logging),
        ),
        (
            "log_dict",
            "class M:\n    def step(self, loss):\n        self.log_dict({'a': loss.item()})  # <- here\n",
            item(),
            Is(Logging),
        ),
        (
            "self.log",
            "class M:\n    def step(self, loss):\n        self.log('loss', loss.item())  # <- here\n",
            item(),
            Is(Logging),
        ),
        (
            "tensorboard",
            "def f(loss, i):\n    writer.add_scalar('loss', loss.item(), i)  # <- here\n",
            item(),
            Is(Logging),
        ),
        ("tqdm", "def f(loss):\n    pbar.set_postfix(loss=loss.item())  # <- here\n", item(), Is(Logging)),
        ("meter", "def f(loss, n):\n    loss_meter.update(loss.item(), n)  # <- here\n", item(), Is(Logging)),
        (
            "metric logger",
            "def f(loss):\n    metric_logger.update(loss=loss.item())  # <- here\n",
            item(),
            Is(Logging),
        ),
        (
            "named",
            "def f(loss):\n    v = loss.item()  # <- here\n    logger.info(f'{v:.3f}')\n",
            item(),
            Is(Logging),
        ),
        (
            "format",
            "def f(loss):\n    s = 'loss {:.3f}'.format(loss.item())  # <- here\n    print(s)\n",
            item(),
            Is(Logging),
        ),
        (
            "percent",
            "def f(a, b):\n    print('a %f b %f' % (a.item(), b.item()))  # <- here\n",
            item(),
            Is(Logging),
        ),
        (
            "error text",
            "def f(x, ok):\n    raise ValueError(f'bad {x.item()}')  # <- here\n",
            item(),
            Is(Logging),
        ),
        (
            "rounded",
            "def f(loss):\n    v = round(float(loss), 3)  # <- here\n    print(v)\n",
            scalar("float_scalar", 4),
            Is(Logging),
        ),
        (
            "mean of list",
            "def f(xs):\n    print(np.mean([x.item() for x in xs]))  # <- here\n",
            item(),
            Is(Logging),
        ),
        (
            "file",
            "def f(loss):\n    with open('l.txt', 'a') as f:\n        f.write(f'{loss.item()}\\n')  # <- here\n",
            item(),
            Is(Logging),
        ),
        ("tqdm write", "def f(loss):\n    tqdm.write(str(loss.item()))  # <- here\n", item(), Is(Logging)),
        ("nothing", "def f(loss):\n    loss.item()  # <- here\n", item(), Is(Explicit)),
        (
            "never read",
            "def f(loss):\n    v = loss.item()  # <- here\n    return None\n",
            item(),
            Is(Explicit),
        ),
        ("print tensor", "def f(y):\n    print(y[0, 0])  # <- here\n", printed(), Is(DebugPrint)),
        ("format tensor", "def f(loss):\n    print(f'{loss:.3f}')  # <- here\n", formatted(), Is(Logging)),
        (
            "logged tensor",
            "def f(loss):\n    logger.info('loss %s', loss)  # <- here\n",
            printed(),
            Is(Logging),
        ),
        ("text kept", "def f(y):\n    s = f'{y:.3f}'  # <- here\n    return s\n", formatted(), Is(ValueRead)),
    ]);
}

#[test]
fn reads_that_decide() {
    check(&[
        ("if", "def f(loss):\n    if loss.item() > 3:  # <- here\n        step()\n", item(), Is(ControlFlow)),
        (
            "elif",
            "def f(a, loss):\n    if a:\n        pass\n    elif loss.item() > 3:  # <- here\n        step()\n",
            item(),
            Is(ControlFlow),
        ),
        (
            "while",
            "def f(e):\n    while e.item() > 1e-3:  # <- here\n        e = step(e)\n",
            item(),
            Is(ControlFlow),
        ),
        (
            "ternary",
            "def f(x):\n    y = 1 if x.item() > 0 else 2  # <- here\n    return y\n",
            item(),
            Is(ControlFlow),
        ),
        (
            "comprehension if",
            "def f(xs):\n    ys = [x for x in xs if x.item() > 0]  # <- here\n    return ys\n",
            item(),
            Is(ControlFlow),
        ),
        (
            "any",
            "def f(y):\n    if (y > 1e30).any():  # <- here\n        return y * 2\n    return y\n",
            truth(),
            Is(ControlFlow),
        ),
        (
            "not",
            "def f(done):\n    while not done.all():  # <- here\n        done = step()\n",
            truth(),
            Is(ControlFlow),
        ),
        ("and", "def f(a, t):\n    if a and t.any():  # <- here\n        g()\n", truth(), Is(ControlFlow)),
        ("max", "def f(a, b):\n    return max(a[0], b[0])  # <- here\n", truth(), Is(ControlFlow)),
        (
            "nan guard",
            "def f(loss):\n    if torch.isnan(loss):  # <- here\n        return\n    g()\n",
            truth(),
            Is(ControlFlow),
        ),
        (
            "raise guard",
            "def f(loss):\n    if loss.item() > 1e4:  # <- here\n        raise RuntimeError('diverged')\n",
            item(),
            Is(ControlFlow),
        ),
        (
            "assert",
            "def f(a, b):\n    assert torch.allclose(a, b)  # <- here\n",
            scalar("allclose", 1),
            Is(ControlFlow),
        ),
        (
            "named branch",
            "def f(loss):\n    v = loss.item()  # <- here\n    print(v)\n    if v < 1:\n        save()\n",
            item(),
            Is(ControlFlow),
        ),
        (
            "best",
            "def f(val, best):\n    v = val.item()  # <- here\n    if v < best:\n        best = v\n    return best\n",
            item(),
            Is(ControlFlow),
        ),
        (
            "loop bound",
            "def f(n):\n    for i in range(n.item()):  # <- here\n        g(i)\n",
            item(),
            Is(ControlFlow),
        ),
        (
            "size",
            "def f(n):\n    k = int(n)  # <- here\n    return torch.zeros(k, 4, device='cuda')\n",
            scalar("integral_scalar", 8),
            Is(DynamicShape),
        ),
        ("view", "def f(x, n):\n    return x.view(n.item(), -1)  # <- here\n", item(), Is(DynamicShape)),
        (
            "split",
            "def f(x, ls):\n    return x.split(ls.tolist())  # <- here\n",
            bulk("tolist"),
            Is(DynamicShape),
        ),
        ("slice", "def f(x, n):\n    k = n.item()  # <- here\n    return x[:k]\n", item(), Is(DynamicShape)),
        ("index", "def f(names, i):\n    return names[i.item()]  # <- here\n", item(), Is(CpuCompute)),
        (
            "dict key",
            "def f(t):\n    d = {}\n    d[t.item()] = 1  # <- here\n    return d\n",
            item(),
            Is(CpuCompute),
        ),
        ("scheduler", "def f(loss):\n    scheduler.step(loss.item())  # <- here\n", item(), Is(CpuCompute)),
        (
            "lr",
            "def f(opt, loss):\n    lr = 0.1 * loss.item()  # <- here\n    for g in opt.param_groups:\n        g['lr'] = lr\n",
            item(),
            Is(CpuCompute),
        ),
        (
            "early stop",
            "def f(loss):\n    early_stopping(loss.item(), model)  # <- here\n",
            item(),
            Is(ControlFlow),
        ),
        (
            "imwrite",
            "def f(img):\n    a = img.cpu().numpy()  # <- here\n    cv2.imwrite('a.png', a)\n",
            bulk("cpu"),
            Is(CpuCompute),
        ),
        (
            "match",
            "def f(t):\n    match t.item():  # <- here\n        case 1:\n            a()\n        case _:\n            b()\n",
            item(),
            Is(ControlFlow),
        ),
        (
            "contains",
            "def f(x, t):\n    if x in t:  # <- here\n        g()\n",
            Observed { through: Some(("/v/torch/_tensor.py", "__contains__")), ..item() },
            Is(ControlFlow),
        ),
        (
            "scaler",
            "def f(opt):\n    scaler.step(opt)  # <- here\n",
            Observed { through: Some(("/v/torch/amp/grad_scaler.py", "_maybe_opt_step")), ..item() },
            Is(ControlFlow),
        ),
        (
            "plateau",
            "def f(v):\n    scheduler.step(v)  # <- here\n",
            Observed {
                through: Some(("/v/torch/optim/lr_scheduler.py", "step")),
                ..scalar("float_scalar", 4)
            },
            Is(CpuCompute),
        ),
    ]);
}

#[test]
fn copies_and_indices() {
    check(&[
        ("to", "def f(h):\n    return h.to('cuda')  # <- here\n", upload("to"), Is(Upload)),
        (
            "to device",
            "def f(x, y, device):\n    x, y = x.to(device), y.to(device)  # <- here\n",
            bare_upload(),
            Is(Upload),
        ),
        ("cuda", "def f(t):\n    t = t.cuda()  # <- here\n    g(t)\n", upload("cuda"), Is(Upload)),
        (
            "tensor",
            "def f():\n    return torch.tensor([1.0, 2.0], device='cuda')  # <- here\n",
            upload("tensor"),
            Is(Upload),
        ),
        (
            "tensor of tensors",
            "def f(a, b):\n    return torch.tensor([a, b], device='cuda')  # <- here\n",
            Observed { method: Some("tensor"), ..scalar("tensor", 4) },
            Is(RoundTrip),
        ),
        ("copy_", "def f(buf, x):\n    buf.copy_(x)  # <- here\n", upload("copy_"), Is(Upload)),
        ("index list", "def f(y):\n    return y[[0, 2]]  # <- here\n", upload("getitem"), Is(Upload)),
        (
            "index cpu",
            "def f(y):\n    idx = torch.tensor([0, 1])\n    return y[idx]  # <- here\n",
            upload("getitem"),
            Is(Upload),
        ),
        ("store scalar", "def f(y):\n    y[0, 0] = 1.5  # <- here\n", upload("setitem"), Is(Upload)),
        (
            "mask",
            "def f(y):\n    return y[y > 0]  # <- here\n",
            shape("getitem", "nonzero"),
            Is(DynamicShape),
        ),
        (
            "mask store",
            "def f(y, m, v):\n    y[m > 0] = v  # <- here\n",
            shape("setitem", "nonzero"),
            Is(DynamicShape),
        ),
        (
            "slice bounds",
            "def f(y, i, j):\n    return y[i:j]  # <- here\n",
            scalar("index_scalar", 8),
            Is(DynamicShape),
        ),
        (
            "nonzero",
            "def f(y):\n    return y.nonzero()  # <- here\n",
            shape("nonzero", "nonzero"),
            Is(DynamicShape),
        ),
        (
            "where",
            "def f(y):\n    return torch.where(y > 0)  # <- here\n",
            shape("where", "nonzero"),
            Is(DynamicShape),
        ),
        (
            "one_hot",
            "def f(y):\n    return F.one_hot(y)  # <- here\n",
            scalar("one_hot", 8),
            Is(DynamicShape),
        ),
        ("type", "def f(y):\n    return y.type(torch.LongTensor)  # <- here\n", bulk("type"), Is(RoundTrip)),
        (
            "back and forth",
            "def f(x):\n    y = x.cpu()  # <- here\n    z = g_cpu(y) if False else y\n    return z.to('cuda')\n",
            bulk("cpu"),
            Is(ValueRead),
        ),
        (
            "round trip",
            "def f(x):\n    y = x.cpu()  # <- here\n    y = y.float()\n    y.to('cuda')\n",
            bulk("cpu"),
            Is(RoundTrip),
        ),
        (
            "scalar back",
            "def f(x, loss):\n    s = loss.item()  # <- here\n    y = x.cuda() * s\n    return y\n",
            item(),
            Is(RoundTrip),
        ),
        ("fill", "def f(x, t):\n    x.fill_(t.item())  # <- here\n", item(), Is(RoundTrip)),
        (
            "inverse",
            "def f(a):\n    return torch.linalg.inv(a)  # <- here\n",
            scalar("linalg_inv", 1),
            Is(ErrorCheck),
        ),
        (
            "alpha",
            "def f(x, t):\n    t = t.cuda()\n    return torch.add(x, t, alpha=t)  # <- here\n",
            scalar("add", 4),
            Is(RoundTrip),
        ),
        (
            "empty_cache",
            "def f():\n    torch.cuda.empty_cache()  # <- here\n",
            Observed {
                api: "cudaFree",
                through: Some(("/v/torch/cuda/memory.py", "empty_cache")),
                ..Observed::default()
            },
            Is(Allocator),
        ),
        (
            "allocator",
            "def f(x):\n    y = model(x)  # <- here\n",
            Observed { api: "cudaFree", ..Observed::default() },
            Is(Allocator),
        ),
        (
            "save",
            "def f(m):\n    torch.save(m.state_dict(), 'a.pt')  # <- here\n",
            Observed { through: Some(("/v/torch/serialization.py", "_save")), ..bulk("cpu") },
            Is(CpuCompute),
        ),
    ]);
}
