//! Labelled snippets with several expressions or lines to choose from, and files that are hard to read.

use super::tests::Expect::{Is, Stale};
use super::tests::{bare_read, bulk, check, formatted, frame, item, read, shape, truth, upload};
use super::{Finding, Observed};
use crate::vocabulary::{HostMemory, Kind::*};

#[test]
fn lines_with_several_expressions() {
    check(&[
        (
            "agree",
            "
def f(a, b):
    print(a.item(), b.item())  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "disagree",
            "
def f(a, b):
    print(a.item() if b.item() > 0 else 0)  # <- here
",
            item(),
            Is(ValueRead),
        ),
        (
            "method tells them apart",
            "
def f(a, m):
    print(a[m > 0].sum().item())  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "method tells them apart, mask",
            "
def f(a, m):
    print(a[m > 0].sum().item())  # <- here
",
            shape("getitem", "nonzero"),
            Is(DynamicShape),
        ),
        (
            "upload next to a read",
            "
def f(x, loss):
    x, v = x.cuda(), loss.item()  # <- here
    print(v)
",
            upload("cuda"),
            Is(Upload),
        ),
        (
            "read next to an upload",
            "
def f(x, loss):
    x, v = x.cuda(), loss.item()  # <- here
    print(v)
",
            bare_read(4, HostMemory::Pinned),
            Is(Logging),
        ),
        (
            "numpy item next to a tensor's",
            "
def f(loss, xs):
    acc = np.mean(xs)
    if acc.item() > 0.5: print(loss.item())  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "int of a length",
            "
def f(loss, xs):
    n = int(len(xs)); v = float(loss)  # <- here
    if n > 3:
        print(v)
",
            bare_read(4, HostMemory::Pinned),
            Is(Logging),
        ),
        (
            "semicolons",
            "
def f(a):
    x = 1; v = a.item(); print(v)  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "not at the start of the line",
            "
def f(a, b, flag):
    result = compute(a, b)['x'] if flag else torch.stack([a, b]).mean().item()  # <- here
    print(result)
",
            item(),
            Is(Logging),
        ),
        (
            "cpu then item",
            "
def f(loss):
    print(loss.cpu().item())  # <- here
",
            bulk("cpu"),
            Is(Logging),
        ),
        (
            "cpu then numpy",
            "
def f(y):
    a = y.detach().cpu().numpy()  # <- here
    if a.max() > 3:
        g()
",
            bulk("cpu"),
            Is(ControlFlow),
        ),
        (
            "int method of a Python value",
            "
def f(step, n, loss):
    if step.count(n) == 0: print(loss.item())  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "format and item",
            "
def f(loss, acc):
    print(f'{loss:.3f} {acc.item():.3f}')  # <- here
",
            formatted(),
            Is(Logging),
        ),
        (
            "host value formatted too",
            "
def f(loss):
    for i in range(3):
        print(f'{i} {loss:.3f}')  # <- here
",
            formatted(),
            Is(Logging),
        ),
    ]);
}

#[test]
fn calls_over_several_lines() {
    let chain = "
def f(out):
    v = (out
         .argmax(1)
         .float()
         .mean()  # <- MARK
         .cpu()
         .numpy())
    print(v)
";
    for line in [".argmax", ".mean", ".cpu", "v = (out"] {
        let source = chain.replace("  # <- MARK", "");
        let at = source.split('\n').position(|text| text.contains(line)).unwrap();
        let mut here = frame(chain, "# <- MARK").unwrap();
        here.line = at as u32 + 1;
        let found = read(source.as_bytes(), &[here], &bulk("cpu"));
        assert!(
            matches!(&found, Finding::Read(r) if r.verdict.kind == Logging && r.expression.ends_with(".cpu()")),
            "{line}: {found:?}"
        );
    }
    check(&[
        (
            "argument lines",
            "
def f(logger, loss, acc):
    logger.log(
        'x',
        loss.item(),  # <- here
        acc,
    )
",
            item(),
            Is(Logging),
        ),
        (
            "start of the statement",
            "
def f(logger, loss, acc):
    logger.log(  # <- here
        'x',
        loss.item(),
        acc,
    )
",
            item(),
            Is(Logging),
        ),
        (
            "the line's own read wins",
            "
def f(loss, acc):
    record(
        a=check(loss.item()),
        b=print(acc.item()),  # <- here
    )
",
            item(),
            Is(Logging),
        ),
        (
            "triple-quoted f-string",
            "
def f(loss):
    print(f'''
    loss {loss.item()}
    ''')  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "decorator",
            "
@register(limit=X.item())  # <- here
def f():
    pass
",
            item(),
            Is(ValueRead),
        ),
        (
            "default value",
            "
def f(n=X.item()):  # <- here in <module>
    pass
",
            item(),
            Is(ValueRead),
        ),
        (
            "body below a decorator",
            "
@torch.no_grad()
@other
def f(loss):
    print(loss.item())  # <- here
",
            item(),
            Is(Logging),
        ),
        (
            "case guard",
            "
def f(x, t):
    match x:
        case 1 if t.item() > 3:  # <- here
            g()
",
            item(),
            Is(ControlFlow),
        ),
        (
            "lambda body",
            "
def f(xs):
    g = lambda t: print(t.item())  # <- here in <lambda>
    g(xs)
",
            item(),
            Is(Logging),
        ),
        (
            "class body",
            "
class C:
    limit = X.item()  # <- here in C
",
            item(),
            Is(ValueRead),
        ),
        (
            "nested function",
            "
def outer():
    def inner(loss):
        print(loss.item())  # <- here
    return inner
",
            item(),
            Is(Logging),
        ),
        (
            "qualified name",
            "
class C:
    def f(self, loss):
        print(loss.item())  # <- here in C.f
",
            item(),
            Is(Logging),
        ),
        (
            "while with else",
            "
def f(t):
    while t.sum() > 0:  # <- here
        t = g(t)
    else:
        h()
",
            truth(),
            Is(ControlFlow),
        ),
        (
            "chained comparison",
            "
def f(a, b, c):
    if a < b < c:  # <- here
        g()
",
            truth(),
            Is(ControlFlow),
        ),
        (
            "two lines below a read",
            "
def f(loss):
    print(loss.item())

    x = 3  # <- here
",
            item(),
            Stale,
        ),
    ]);
}

#[test]
fn encodings_and_broken_files() {
    let read_bytes = |bytes: &[u8], line: u32| {
        let mut here = frame("print(1)  # <- here", "# <- here").unwrap();
        (here.line, here.function) = (line, String::new());
        match read(bytes, &[here], &item()) {
            Finding::Read(reading) => Some(reading.verdict.kind),
            _ => None,
        }
    };
    let cases: &[(&str, &[u8], u32)] = &[
        ("CRLF", b"x = 1\r\nprint(loss.item())\r\n", 2),
        ("CR", b"x = 1\rprint(loss.item())\r", 2),
        ("tabs", b"def f(loss):\n\tif a:\n\t\tprint(loss.item())\n", 3),
        ("BOM", b"\xef\xbb\xbfprint(loss.item())\n", 1),
        ("latin-1", b"# -*- coding: latin-1 -*-\nname = 'Andr\xe9'\nprint(name, loss.item())\n", 3),
        ("UTF-8", "größe = 1\nprint('größe', loss.item())\n".as_bytes(), 2),
        ("no newline at the end", b"print(loss.item())", 1),
        ("form feed", b"x = 1\n\x0c\nprint(loss.item())\n", 3),
        ("error above", b"def f(:\n    pass\n\nprint(loss.item())\n", 4),
        ("error below", b"print(loss.item())\nclass (\n", 1),
        ("Python 2", b"print 'a', x\nexec 'y'\nlog.info(loss.item())\n", 3),
        ("unclosed string", b"print(loss.item())\nx = 'abc\n", 1),
        ("match statement", b"match a:\n    case 1:\n        print(loss.item())\n", 3),
        ("type syntax", b"type A[T] = list[T]\ndef f[T](x: T) -> T:\n    print(loss.item())\n", 3),
        ("except star", b"try:\n    pass\nexcept* ValueError:\n    print(loss.item())\n", 4),
    ];
    for (name, bytes, line) in cases {
        assert_eq!(read_bytes(bytes, *line), Some(Logging), "{name}");
    }
    let long = format!("x = [{}]; print(loss.item())\n", "1, ".repeat(200_000));
    assert_eq!(read_bytes(long.as_bytes(), 1), Some(Logging));
}

#[test]
fn little_evidence_is_enough_for_the_plain_cases() {
    let pinned = |bytes| bare_read(bytes, HostMemory::Pinned);
    let pageable = |bytes| bare_read(bytes, HostMemory::Pageable);
    check(&[
        ("item", "def f(loss):\n    print(loss.item())  # <- here\n", pinned(4), Is(Logging)),
        ("item, old PyTorch", "def f(loss):\n    print(loss.item())  # <- here\n", pageable(4), Is(Logging)),
        ("branch", "def f(t):\n    if t.any():  # <- here\n        g()\n", pinned(1), Is(ControlFlow)),
        (
            "cpu",
            "def f(t):\n    a = t.cpu()  # <- here\n    cv2.imwrite('a', a)\n",
            pageable(4096),
            Is(CpuCompute),
        ),
        ("mask", "def f(x, mask):\n    y = x[mask]  # <- here\n", pinned(4), Is(DynamicShape)),
        (
            "nvtx operator",
            "def f(x, mask):\n    y = x[mask].sum().item()  # <- here\n    print(y)\n",
            Observed { operator: Some("nonzero"), ..pinned(4) },
            Is(DynamicShape),
        ),
        (
            "nvtx operator, item",
            "def f(x, mask):\n    y = x[mask].sum().item()  # <- here\n    print(y)\n",
            Observed { operator: Some("_local_scalar_dense"), ..pinned(4) },
            Is(Logging),
        ),
        (
            "host branch",
            "def f(step):\n    if step % 10 == 0: print(loss.item())  # <- here\n",
            pinned(4),
            Is(Logging),
        ),
        ("dict access", "def f(cfg):\n    x = cfg['a']['b']  # <- here\n", pinned(4), Stale),
        ("no stream sync without reason", "def f(x):\n    x = x + 1  # <- here\n", pinned(4), Stale),
    ]);
}
