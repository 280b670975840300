

def fail(text):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {text}")


def busy_until(end):
    while time.perf_counter_ns() < end:
        pass


# Bytes that large copies go round, and from which one is large: as sync-report replay has them.
COPY_RING = 256 << 20
SMALL_COPY = 256 << 10


class Workload:
    """Everything that the acts need, made once."""

    def __init__(self, args):
        self.host = args.host
        self.streams = [torch.cuda.current_stream()]
        self.streams += [torch.cuda.Stream() for _ in range(STREAMS - 1)]
        self.events = [torch.cuda.Event() for _ in range(EVENTS)]
        self.gemms = [self.gemm(*gemm) for gemm in GEMMS]
        self.buffers = {}
        self.cycles = self.calibrate_spin()
        self.issue = self.calibrate_issue()

    def gemm(self, m, n, k, batch, ta, tb, kind, tf32, kernel):
        """cuBLAS is column-major: its m x n result is the n x m result of row-major matrices in the other order."""
        dtype = getattr(torch, kind)

        def operand(rows, columns, transposed):
            shape = (columns, rows) if transposed else (rows, columns)
            data = torch.randn(batch, *shape, device="cuda", dtype=torch.float32).to(dtype)
            return data.transpose(1, 2) if transposed else data

        left, right = operand(n, k, tb), operand(k, m, ta)
        out = torch.empty(batch, n, m, device="cuda", dtype=dtype)
        if batch == 1:
            left, right, out = left[0], right[0], out[0]
        product = torch.mm if batch == 1 else torch.bmm
        mixed = len({gemm[7] for gemm in GEMMS}) > 1
        if not mixed:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            return lambda: product(left, right, out=out)

        def run():
            torch.backends.cuda.matmul.allow_tf32 = tf32
            product(left, right, out=out)

        return run

    def buffer(self, size, where):
        """A pageable or pinned buffer of the host, or one of the device; buffers of one size are shared."""
        key = (size, where)
        if key not in self.buffers:
            device = "cpu" if where in ("pageable", "pinned") else "cuda"
            buffer = torch.empty(max(size, 1), dtype=torch.uint8, device=device, pin_memory=where == "pinned")
            # Pages that nobody wrote to are all the same one, which is always in the cache.
            self.buffers[key] = buffer.fill_(1)
        return self.buffers[key]

    def pieces(self, size, where):
        """Host memory of one copy after the other: large ones go round, so that caches hold it no better than recorded."""
        if size < SMALL_COPY:
            return itertools.repeat(self.buffer(size, where))
        ring = self.buffer(max(COPY_RING, size), where)
        return itertools.cycle([ring[at:at + size] for at in range(0, max(COPY_RING, size) - size + 1, size)])

    def calibrate_spin(self):
        """Clock cycles of torch.cuda._sleep in a nanosecond."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        cycles = 20_000_000
        for _ in range(3):
            start.record()
            torch.cuda._sleep(cycles)
            end.record()
            torch.cuda.synchronize()
        return cycles / (start.elapsed_time(end) * 1e6)

    def calibrate_issue(self):
        """What PyTorch takes to issue an operation: part of the recorded time between calls, so not waited again."""
        launch, count = 3_000, 200
        times = []
        for _ in range(5):
            torch.cuda.synchronize()
            start = time.perf_counter_ns()
            for _ in range(count):
                torch.cuda._sleep(1)
            times.append((time.perf_counter_ns() - start) // count)
        return max(0, statistics.median(times) - launch)

    def compile(self, acts):
        """Acts as functions: what follows an operation waits less by what issuing it took."""
        steps, current, debt = [], 0, 0
        for act in acts:
            kind = act[0]
            if kind == "host":
                wait = int(act[1] * self.host - debt)
                debt = max(0, -wait)
                if wait > 0:
                    steps.append(lambda ns=wait: busy_until(time.perf_counter_ns() + ns))
                continue
            stream = self.stream_of(act)
            if stream is not None and stream != current:
                steps.append(lambda s=self.streams[stream]: torch.cuda.set_stream(s))
                current = stream
            steps.append(self.step(act))
            debt += self.issue if kind in ("gemm", "spin", "memset", "copy") else 0
        if current != 0:
            steps.append(lambda: torch.cuda.set_stream(self.streams[0]))
        return steps

    def stream_of(self, act):
        return act[-1] if act[0] in ("gemm", "spin", "memset", "copy", "record", "stream_wait") else None

    def step(self, act):
        kind, rest = act[0], act[1:]
        if kind == "gemm":
            return self.gemms[rest[0]]
        if kind == "spin":
            return lambda cycles=max(1, int(rest[0] * self.cycles)): torch.cuda._sleep(cycles)
        if kind == "memset":
            return self.buffer(rest[0], "device").zero_
        if kind == "copy":
            return self.copy(*rest)
        if kind == "record":
            return lambda e=self.events[rest[0]], s=self.streams[rest[1]]: e.record(s)
        if kind == "stream_wait":
            return lambda e=self.events[rest[0]], s=self.streams[rest[1]]: s.wait_event(e)
        if kind == "sync_stream":
            return self.streams[rest[0]].synchronize
        if kind == "sync_event":
            return self.events[rest[0]].synchronize
        return torch.cuda.synchronize

    def copy(self, direction, size, memory, blocking, _stream):
        device = self.buffer(size, "device")
        if direction == "device-to-device":
            other = self.buffer(size, "device, beside")
            return lambda: other.copy_(device, non_blocking=True)
        pieces = self.pieces(size, "pinned" if memory == "pinned" else "pageable")
        if direction == "host-to-device":
            return lambda: device.copy_(next(pieces), non_blocking=not blocking)
        return lambda: next(pieces).copy_(device, non_blocking=not blocking)


def run(steps, repeat):
    """Host time of one stretch, in ns, of `repeat` in a row."""
    torch.cuda.synchronize()
    start = time.perf_counter_ns()
    for _ in range(repeat):
        for step in steps:
            step()
    torch.cuda.synchronize()
    return (time.perf_counter_ns() - start) / repeat


def microseconds(times):
    low, high = min(times) / 1e3, max(times) / 1e3
    return f"{statistics.median(times) / 1e3:12.1f} us a step   ({low:.1f} to {high:.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--sync", action="store_true", help="only with the waits, as recorded")
    which.add_argument("--no-sync", action="store_true", help="only with the waits fixed")
    which.add_argument("--both", action="store_true", help="both, interleaved (the default)")
    parser.add_argument("--fixed", type=int, default=DEFAULT_FIXED, metavar="N", help="which change: " + ", ".join(
        f"{number} {ascii(name)}" for number, (name, _) in enumerate(VARIANTS) if number > 0))
    parser.add_argument("--rounds", type=int, default=10, help="rounds of measurements")
    parser.add_argument("--repeat", type=int, default=REPEAT, help="steps in a row")
    parser.add_argument("--host", type=float, default=1.0, help="factor for the host's time between calls")
    args = parser.parse_args()
    if not 0 <= args.fixed < len(VARIANTS) or args.rounds < 1 or args.repeat < 1:
        fail("--fixed, --rounds or --repeat is out of range")
    if not torch.cuda.is_available():
        fail("PyTorch finds no GPU here")
    work = Workload(args)
    with torch.no_grad():
        names = [VARIANTS[0][0], VARIANTS[args.fixed][0]]
        steps = [work.compile(VARIANTS[0][1]), work.compile(VARIANTS[args.fixed][1])]
        wanted = [0] if args.sync else [1] if args.no_sync else [0, 1]
        for variant in wanted:
            run(steps[variant], args.repeat)
        times = {variant: [] for variant in wanted}
        for _ in range(args.rounds):
            for variant in wanted + wanted[::-1]:
                times[variant].append(run(steps[variant], args.repeat))
    print(f"{PROFILE}: {CHOSEN}; recorded {RECORDED_NS / 1e3:.1f} us on {RECORDED_GPU}")
    for note in NOTES:
        print(f"note: {note}")
    print(f"here: {torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    for variant in wanted:
        print(f"{names[variant]:<28}{microseconds(times[variant])}")
    if len(wanted) == 2:
        saved = [a - b for a, b in zip(times[0], times[1])]
        share = statistics.median(saved) / statistics.median(times[0]) * 100
        print(f"{'saved':<28}{microseconds(saved)}   {share:.1f} %")


if __name__ == "__main__":
    main()
