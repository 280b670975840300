"""A stand-in for PyTorch: as much of it as the emitted scripts use, and it complains about anything else."""
import contextlib
import time

__version__ = "stand-in"
float16, bfloat16, float32, float64, uint8 = "float16", "bfloat16", "float32", "float64", "uint8"


class Tensor:
    def __init__(self, *shape):
        self.shape = shape

    def to(self, dtype):
        assert dtype in (float16, bfloat16, float32, float64), dtype
        return self

    def transpose(self, a, b):
        shape = list(self.shape)
        shape[a], shape[b] = shape[b], shape[a]
        return Tensor(*shape)

    def __getitem__(self, index):
        if isinstance(index, slice):
            assert len(self.shape) == 1 and 0 <= index.start < index.stop <= self.shape[0]
            return Tensor(index.stop - index.start)
        assert index == 0
        return Tensor(*self.shape[1:])

    def copy_(self, other, non_blocking):
        assert self.shape == other.shape and self is not other and isinstance(non_blocking, bool)

    def fill_(self, value):
        return self

    def zero_(self):
        pass


def randn(*shape, device, dtype):
    assert device == "cuda" and all(size > 0 for size in shape)
    return Tensor(*shape)


def empty(*shape, dtype, device, pin_memory=False):
    assert not (pin_memory and device == "cuda")
    return Tensor(*shape)


def mm(a, b, out):
    assert len(a.shape) == 2 and a.shape[1] == b.shape[0] and out.shape == (a.shape[0], b.shape[1])


def bmm(a, b, out):
    assert a.shape[0] == b.shape[0] == out.shape[0]
    mm(a[0], b[0], out[0])


no_grad = contextlib.nullcontext


class Event:
    def __init__(self, enable_timing=False):
        self.time = 0

    def record(self, stream=None):
        self.time = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, other):
        return max((other.time - self.time) * 1e3, 1e-3)


class Stream:
    def wait_event(self, event):
        assert isinstance(event, Event)

    def synchronize(self):
        pass


class cuda:
    Event, Stream = Event, Stream

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def current_stream():
        return Stream()

    @staticmethod
    def set_stream(stream):
        assert isinstance(stream, Stream)

    @staticmethod
    def synchronize():
        pass

    @staticmethod
    def _sleep(cycles):
        assert isinstance(cycles, int) and cycles > 0

    @staticmethod
    def get_device_name():
        return "stand-in"


class backends:
    class cuda:
        class matmul:
            allow_tf32 = False
