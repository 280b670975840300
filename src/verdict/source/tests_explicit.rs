//! Labelled snippets: waits asked for by name, and lines that do not hold what the trace saw.

use super::tests::Expect::{Is, Stale};
use super::tests::*;
use super::{Finding, Observed};
use crate::report::Frame;
use crate::vocabulary::{HostMemory, Kind::*};

#[test]
fn explicit_waits() {
    let stream = Observed {
        api: "cudaStreamSynchronize",
        through: Some(("/v/torch/cuda/streams.py", "synchronize")),
        ..Observed::default()
    };
    check(&[
        ("bare", "def f():\n    torch.cuda.synchronize()  # <- here\n", explicit(), Is(Explicit)),
        (
            "no library frame",
            "def f():\n    torch.cuda.synchronize()  # <- here\n",
            Observed { api: "cudaDeviceSynchronize", ..Observed::default() },
            Is(Explicit),
        ),
        (
            "stream",
            "def f():\n    torch.cuda.current_stream().synchronize()  # <- here\n",
            stream.clone(),
            Is(Explicit),
        ),
        (
            "clock",
            "def f():\n    torch.cuda.synchronize()  # <- here\n    t0 = time.perf_counter()\n    g()\n",
            explicit(),
            Is(Timing),
        ),
        (
            "clock after",
            "def f(t0):\n    g()\n    torch.cuda.synchronize()  # <- here\n    print(time.time() - t0)\n",
            explicit(),
            Is(Timing),
        ),
        (
            "events",
            "def f(start, end):\n    end.record()\n    torch.cuda.synchronize()  # <- here\n    ms = start.elapsed_time(end)\n",
            explicit(),
            Is(Timing),
        ),
        (
            "wrapper",
            "def sync():\n    torch.cuda.synchronize()  # <- here\ndef f():\n    sync()  # <- caller\n    t0 = time.time()\n",
            explicit(),
            Is(Timing),
        ),
        (
            "barrier",
            "def f(x):\n    h = x.to('cpu', non_blocking=True)\n    torch.cuda.synchronize()  # <- here\n    return h.numpy()\n",
            explicit(),
            Is(Barrier),
        ),
        (
            "pinned barrier",
            "def f(pinned, x, ev):\n    pinned.copy_(x, non_blocking=True)\n    ev.record()\n    ev.synchronize()  # <- here\n    return pinned[0]\n",
            Observed {
                api: "cudaEventSynchronize",
                through: Some(("/v/torch/cuda/streams.py", "synchronize")),
                ..Observed::default()
            },
            Is(Barrier),
        ),
        (
            "copy the other way",
            "def f(h):\n    x = h.to('cuda', non_blocking=True)\n    torch.cuda.synchronize()  # <- here\n    return x\n",
            explicit(),
            Is(Explicit),
        ),
        (
            "ranks",
            "def f():\n    dist.barrier()  # <- here\n",
            Observed { through: Some(("/v/torch/distributed/distributed_c10d.py", "barrier")), ..stream },
            Is(Explicit),
        ),
        ("not there", "def f():\n    g()  # <- here\n", explicit(), Is(ValueRead)),
        (
            "profiler",
            "def f():\n    with torch.autograd.profiler.emit_nvtx():  # <- here\n        g()\n",
            Observed { through: Some(("/v/torch/autograd/profiler.py", "__enter__")), ..explicit() },
            Is(Timing),
        ),
    ]);
}

#[test]
fn lines_that_do_not_hold_it() {
    check(&[
        ("plain line", "def f(loss):\n    x = 1  # <- here\n    loss.item()\n", item(), Stale),
        ("one off", "def f(loss):\n    loss.item()\n    y = g(loss)  # <- here\n", item(), Stale),
        ("wrong direction", "def f(loss):\n    print(loss.item())  # <- here\n", bare_upload(), Stale),
        (
            "too large",
            "def f(loss):\n    print(loss.item())  # <- here\n",
            bare_read(4096, HostMemory::Pageable),
            Stale,
        ),
        (
            "body of the if",
            "def f(loss):\n    if loss.item() > 3:\n        x = 1  # <- here\n",
            item(),
            Stale,
        ),
        ("comment", "def f(loss):\n    # loss.item()  # <- here\n    pass\n", item(), Stale),
        ("string", "def f(loss):\n    s = 'loss.item()'  # <- here\n", item(), Stale),
        ("other function", "def f(loss):\n    print(loss.item())  # <- here in g\n", item(), Stale),
        (
            "no synchronize",
            "def f():\n    x = 1  # <- here\n",
            Observed { api: "cudaDeviceSynchronize", ..Observed::default() },
            Stale,
        ),
    ]);
    let past = Frame { function: "f".into(), file: "/work/train.py".into(), line: 99, user: true };
    assert!(matches!(read(b"x = 1\n", std::slice::from_ref(&past), &item()), Finding::Stale { .. }));
    assert!(matches!(read(b"x = 1\n", &[Frame { line: 0, ..past.clone() }], &item()), Finding::Stale { .. }));
    assert_eq!(
        read(b"x = 1\n", &[Frame { file: "/elsewhere/other.py".into(), ..past }], &item()),
        Finding::NoSource
    );
    assert_eq!(read(b"x = 1\n", &[], &item()), Finding::NoSource);
}
