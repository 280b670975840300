//! Expressions rewritten without the wait.

use super::tests::*;

#[test]
fn rewritten_without_the_wait() {
    let cases = [
        ("x = x.to('cuda')  # <- here\n", upload("to"), Some("x.to('cuda', non_blocking=True)")),
        ("x = x.cuda()  # <- here\n", upload("cuda"), Some("x.cuda(non_blocking=True)")),
        (
            "x = torch.tensor(v, device='cuda')  # <- here\n",
            upload("tensor"),
            Some("torch.tensor(v).to('cuda', non_blocking=True)"),
        ),
        ("if loss.item() > 3: g()  # <- here\n", item(), None),
        (
            "y = torch.repeat_interleave(x, r)  # <- here\n",
            scalar("repeat_interleave", 8),
            Some("torch.repeat_interleave(x, r, output_size=...)"),
        ),
        (
            "y = torch.linalg.inv(a @ b)  # <- here\n",
            scalar("linalg_inv", 1),
            Some("torch.linalg.inv_ex(a @ b).inverse"),
        ),
        ("y = x.type(torch.LongTensor)  # <- here\n", bulk("type"), Some("x.to(torch.long)")),
    ];
    for (source, observed, expected) in cases {
        assert_eq!(reading(source, &observed).rewritten.as_deref(), expected, "{source}");
    }
}

fn written(source: &str) -> Option<String> {
    reading(source, &item()).rewritten
}

/// A 0-d tensor in text is read by `__format__` all the same.
#[test]
fn what_is_shown_is_joined_or_left() {
    for (source, expected) in [
        ("print(loss.item())  # <- here\n", None),
        ("print(f'{loss.item():.4f}')  # <- here\n", None),
        ("v = loss.item()  # <- here\nlogger.info(v)\n", None),
        ("print(loss.item(), loss.item())  # <- here\n", None),
        (
            "print(f'{loss.item()} {acc.item()} {gnorm.item():.3f}')  # <- here\n",
            Some("torch.stack([loss, acc, gnorm]).tolist()"),
        ),
        (
            "a = loss.item()  # <- here\nb = out.acc.mean().item()\nprint(a, b)\n",
            Some("torch.stack([loss, out.acc.mean()]).tolist()"),
        ),
        (
            "wandb.log({'a': d['a'].item(), 'b': b.item()})  # <- here\n",
            Some("torch.stack([d['a'], b]).tolist()"),
        ),
        // Not safe to repeat, not on the device, another tensor by then, perhaps never read.
        ("print(next(xs).item(), b.item())  # <- here\n", None),
        ("print(m(x).item(), b.item())  # <- here\n", None),
        ("n = np.argmax(scores)\nprint(n.item(), b.item())  # <- here\n", None),
        ("x = a.item()  # <- here\ny = x.item()\nprint(x, y)\n", None),
        ("print(a.item(), b.item() if b else 0)  # <- here\n", None),
    ] {
        assert_eq!(written(source).as_deref(), expected, "{source}");
    }
}

#[test]
fn what_is_collected_stays_on_the_device() {
    for (source, expected) in [
        ("for x in xs:\n    total += x.item()  # <- here\nprint(total)\n", Some("x.detach()")),
        ("for x in xs:\n    losses.append(x.item())  # <- here\nprint(sum(losses))\n", Some("x.detach()")),
        (
            "for i, x in xs:\n    total += x.item()  # <- here\n    if i % 100 == 0:\n        print(total)\n",
            Some("x.detach()"),
        ),
        // Shown each time round: the wait would only move.
        ("for x in xs:\n    total += x.item()  # <- here\n    print(total)\n", None),
        ("for x in xs:\n    v = x.item()  # <- here\n    print(v)\n    total += v\nprint(total)\n", None),
        ("s = x.item()  # <- here\ny = z.cuda() * s\n", Some("x.detach()")),
        ("y = torch.tensor([x.item()]).cuda()  # <- here\n", None),
    ] {
        assert_eq!(written(source).as_deref(), expected, "{source}");
    }
}
