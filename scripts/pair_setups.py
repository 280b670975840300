"""What the snippets of the catalogue need to run, by entry; and why those that cannot be run are not.

A set-up has, all optional:
    setup      code that runs before the snippet; PRELUDE ran before it
    first      code at the begin of each step
    then       code at the end of each step: where the wait is not in the snippet itself
    once       the snippet runs before the loop: only `then` is measured
    steps      how often the loop runs (4); with `step % 100` in a snippet as many as show it
    same       expressions to compare: one, several, or (before, after); left out: what both snippets assign; None: nothing
    why        what is not compared, and why
    tolerance  relative and absolute, where the dtype's own is too strict
    count      calls that count as waits, if not those that block
    later      the promise is to wait later, not less: the time spent blocked is compared
    around     code around the snippet, which stands where SNIPPET does: the body of a method
    needs      libraries without which it is not run
    cold       no first run: what is counted happens once per process
    alone      a process of its own: it changes what others would see
    gpu        cannot run on a CPU at all
    outcome    what is known to come of it, where that is not what was promised; `why` says why
"""

# Shared by all snippets: `device`, and `which` ("before" or "after"), are given.
PRELUDE = """
import math, os, tempfile, time
from contextlib import suppress
from datetime import timedelta
from types import SimpleNamespace
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, TensorDataset

class Recorder:
    '''Stands in for a logger: keeps what it was given last; numbers are read as loggers do.'''
    last = None
    def __call__(self, *args, **options):
        as_logged = lambda v: v.item() if isinstance(v, torch.Tensor) and v.numel() == 1 else v
        values = [as_logged(v) for v in (*args, *options.values())]
        self.last = [v for v in values if not isinstance(v, dict)] + [as_logged(v) for d in values if isinstance(d, dict) for v in d.values()]
    def __getattr__(self, name):
        return self

def host_work(*args):
    time.sleep(0.002)

def init_dist(backend='cpu:gloo,cuda:nccl'):
    if not dist.is_initialized():
        dist.init_process_group(backend if torch.cuda.is_available() else 'gloo', store=dist.HashStore(), rank=0, world_size=1)

torch.manual_seed(0)
n, C, total = 64, 10, torch.tensor(9.0).to(device)
x, y = torch.rand(n, n, device=device) + 0.5, torch.rand(n, n, device=device) + 0.5
t, a, b = torch.full((), 0.5, device=device), x, y
loss, loss_a, loss_b = x.mean(), x.mean(), y.mean()
losses = [loss_a, loss_b, loss]
mask, flag = x > 1, t > 0
i, j = torch.tensor(3).to(device), torch.tensor(7).to(device)
idx = torch.tensor([0, 2, 5]).to(device)
labels = torch.arange(n).to(device) % C
model = nn.Linear(n, n).to(device)
params = list(model.parameters())
target, scale = torch.rand(n, n, device=device), 1.0
history, preds, pairs = [], [], []
use = save = log = prepare_next_batch = launch_next_step = train_step = host_work
"""

# 1 ms or more of work for the GPU, before which nothing that follows can be read.
BUSY = "torch.cuda._sleep(4_000_000)"
# A record that a wait for it is one for `x`.
SIDE = "side = torch.cuda.Stream()\nevent = torch.cuda.Event()"
ON_SIDE = "with torch.cuda.stream(side):\n    x = y * 2\n    event.record()"
ENCODER = "layer = nn.TransformerEncoderLayer(64, 4, dropout=0.0, batch_first=True, device=device)\nx = torch.rand(8, 16, 64, device=device)\n"
LOADER = "ds = TensorDataset(torch.rand(256, 512), torch.rand(256, 512))"
PACKED = "x = torch.rand(16, 8, 64, device=device)\nlengths_cpu = torch.arange(16, 8, -1)\nlengths = lengths_cpu.to(device)\nrnn = nn.LSTM(64, 64).to(device)"
CTC = "lp = torch.rand(50, 16, 20, device=device).log_softmax(2)\ntargets = torch.randint(1, 20, (16, 20)).to(device)\nin_len, tgt_len = torch.full((16,), 50), torch.full((16,), 20)"
SYMMETRIC = "a = x @ x.T + n * torch.eye(n, device=device)\n"
SCALARS = "losses = {'a': loss_a, 'b': loss_b}\nn = 2"
GRADS = "model(x).square().mean().backward()"
LLAMA = """
os.chdir(tempfile.mkdtemp())
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
SIZES = dict(hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=64, eos_token_id=None)
config = LlamaConfig(**SIZES)
model = LlamaForCausalLM(config).to(device)
model.generation_config.max_new_tokens = 8
ids = x = torch.arange(1, 33).view(2, 16).to(device)
ds = [{'input_ids': torch.arange(8) + k, 'labels': torch.arange(8) + k} for k in range(32)]
"""
TRAIN = {
    "alone": True,
    "needs": "transformers accelerate",
    "setup": LLAMA,
    "once": True,
    "then": "Trainer(model, args, train_dataset=ds).train()",
    "steps": 1,
    "same": "list(model.parameters())",
    "tolerance": 1e-3,
}
GENERATE = {"alone": True, "needs": "transformers", "setup": LLAMA, "steps": 1, "same": "out"}
LIGHTNING = """
os.chdir(tempfile.mkdtemp())
from functools import partial
from lightning import LightningModule
from lightning import Trainer as AnyTrainer
Trainer = partial(AnyTrainer, max_epochs=1)
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint, ThroughputMonitor
class Module(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(n, n)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)
    def training_step(self, batch, i):
        loss = self.layer(batch).square().mean()
        self.log('train_loss', loss)
        return loss
    def validation_step(self, batch, i):
        self.log('val_loss', self.layer(batch).square().mean())
model = Module()
loader = DataLoader(torch.rand(160, n), batch_size=8)
"""
FIT = {"alone": True, "needs": "lightning", "setup": LIGHTNING, "once": True, "steps": 1, "then": "trainer.fit(model, loader)", "same": "list(model.parameters())", "tolerance": 1e-4}
METRIC = {"needs": "torchmetrics", "setup": "from torchmetrics.classification import MulticlassAccuracy\nfrom torchmetrics import MeanMetric\npreds = labels.roll(1)"}
LOG_ONLY = "what is shown to people is the same, at fewer steps"

SETUPS = {
    "A01": {"setup": "loss_sum = 0.0", "same": "loss_sum"},
    "A02": {"same": ("history", "values")},
    "A03": {"setup": "limit = torch.ones((), device=device)"},
    "A04": {},
    "A05": {},
    "A06": {"setup": "tokens, eos_id = labels, 2"},
    "A07": {"setup": "host_lengths = [3, 9, 5]\nlengths = torch.tensor(host_lengths).to(device)"},
    "A08": {"setup": "n = 4"},
    "A45": {"same": "x"},
    "A46": {"gpu": True, "first": "for p in params:\n    p.grad = torch.full_like(p, 0.1)", "same": "params"},
    "A09": {"setup": "best = i"},
    "A10": {"same": ("y[0]", "y"), "why": "x[flag] has a dimension more"},
    "A11": {},
    "A37": {},
    "A38": {"setup": "target = -1.0", "steps": 20, "same": "step"},
    "A42": {"setup": "limit = 0.0"},
    "A43": {"setup": "counts = {}", "first": BUSY, "later": True},
    "A44": {"steps": 100, "same": None, "why": LOG_ONLY},
    "A12": {},
    "A13": {},
    "A14": {},
    "A15": {"setup": "bar = Recorder()", "steps": 50, "same": "bar.last"},
    "A16": {"steps": 100, "same": None, "why": LOG_ONLY},
    "A17": {},
    "A18": {"setup": "b = a + 1e-9"},
    "A19": {"setup": GRADS, "same": "[p.grad for p in params]"},
    "A20": {
        "setup": "scaler = torch.amp.GradScaler(device)\nscaler.scale(model(x).square().mean()).backward()",
        "steps": 1,
        "same": "params",
        "tolerance": 1e-5,
        "gpu": True,
    },
    "A47": {
        "setup": "from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn\ndecay = 0.9\nema_model = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))\nema_model.update_parameters(model)\nwith torch.no_grad():\n    [p.add_(1) for p in model.parameters()]",
        "same": "list(ema_model.module.parameters())",
    },
    "A21": {"setup": "scaler, log = torch.amp.GradScaler(device), Recorder()\nscaler.scale(loss)", "steps": 100, "same": "log.last"},
    "A48": {
        "setup": "scaler, opt, seen = torch.amp.GradScaler(device), torch.optim.SGD(params, 0.01), []\n"
        "scheduler = SimpleNamespace(step=lambda: seen.append(step))",
        "first": "scaler.scale(model(x).square().mean()).backward()",
        "same": ["params", "seen"],
        "tolerance": 1e-5,
    },
    "A22": {
        "setup": GRADS
        + "\noptimizer = torch.optim.Adam(params, foreach=True)\noptimizer.step()\nstate = optimizer.state_dict()"
        + "\nfor one in state['state'].values():\n    one['step'] = one['step'].to(device)"
        + "\npath = tempfile.mktemp()\ntorch.save(state, path)",
        "once": True,
        "then": "optimizer.step()",
        "same": "params",
    },
    "A23": {
        "setup": "def closure():\n    model.zero_grad()\n    loss = model(x).square().mean()\n    loss.backward()\n    return loss",
        "same": None,
        "why": "another optimizer takes other steps",
    },
    "A24": {"setup": "val_loss = loss\nscheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(torch.optim.SGD(params, 0.1))", "same": "scheduler.best"},
    "A25": {"setup": "args = SimpleNamespace(debug=False)", "then": GRADS, "same": "[p.grad for p in params]", "alone": True},
    "A26": {"setup": "loc, scale = x, y", "same": "d.log_prob(x)"},
    "A27": {
        "setup": ENCODER + "encoder = nn.TransformerEncoder(layer, 2)\ncausal_mask = nn.Transformer.generate_square_subsequent_mask(16, device=device)",
        "tolerance": 1e-4,
    },
    "A28": {
        "setup": ENCODER + "layer.eval()\npad = torch.arange(16, device=device) >= torch.arange(16, 8, -1, device=device)[:, None]\ntorch.set_grad_enabled(False)",
        "same": "out.masked_fill(pad[..., None], 0)",
        "tolerance": 1e-4,
        "alone": True,
    },
    "A29": {"setup": "x = (x / 2 + 0.5).requires_grad_()", "then": "g, = torch.autograd.grad(y.sum(), x)", "same": ["y", "g"], "tolerance": 1e-4},
    "A30": {
        "setup": "base, src = (torch.rand(n, device=device).add(0.5).requires_grad_() for _ in range(2))\nidx = labels",
        "then": "g, = torch.autograd.grad(y.sum(), src, create_graph=True)\nh, = torch.autograd.grad(g.sum(), src)",
        "same": ["y", "h"],
        "tolerance": 1e-4,
    },
    "A31": {"setup": "seq, v = x, y\norder = seq.argsort(-1)"},
    "A33": {"setup": "writer = Recorder()", "steps": 100, "same": "writer.last", "why": "writer is a stand-in that reads the value as TensorBoard does"},
    "A34": {
        "setup": "init_dist()\nfrom torch.distributed.device_mesh import init_device_mesh\nfrom torch.distributed.tensor import distribute_tensor, Shard\n"
        "mesh = init_device_mesh(device, (1,))\na = b = distribute_tensor(x, mesh, [Shard(0)])",
        "same": None,
        "why": "nothing is computed: both assert; one rank",
        "alone": True,
    },
    "A35": {"steps": 100, "same": None, "why": "neither raises"},
    "A36": {"setup": "sizes = [3, 9, 5]"},
    "A39": {"setup": "loss, history = x.mean(), []", "same": "history"},
    "B01": {"setup": "mask = labels == 3\nf, n_max = torch.sqrt, 16", "same": "total", "tolerance": 1e-5},
    "B02": {"setup": "loss = x", "tolerance": 1e-5},
    "B35": {
        "setup": "experts = nn.ModuleList(nn.Linear(n, n) for _ in range(4)).to(device).requires_grad_(False)\n"
        "top = torch.rand(n, 4, device=device).topk(2).indices",
        "first": "y = torch.zeros_like(x)",
        "same": "y",
        "tolerance": 1e-4,
    },
    "B03": {"setup": "t = y"},
    "B34": {"setup": "t = y"},
    "B31": {"setup": "mask, w = labels == 3, y[0]"},
    "B05": {"same": "x"},
    "B06": {"setup": "x.requires_grad_()", "same": ["loss", "x.grad"], "tolerance": 1e-5},
    "B07": {"same": ("classes", "present.nonzero().squeeze(1)")},
    "B08": {"same": ("values.tolist()", "[v for v, has in ((False, has_false), (True, has_true)) if has]")},
    "B09": {"setup": "edges_cpu = torch.tensor([[0, 1], [1, 2], [0, 1]])\nedges = edges_cpu.to(device)", "same": "rows"},
    "B10": {"setup": "x = x[0]\nrepeats = torch.arange(n).to(device)\ntotal = n * (n - 1) // 2", "same": "y"},
    "B11": {},
    "B12": {"same": "hist"},
    "B13": {"setup": "x = torch.rand(10000, device=device)\nx[:2] = torch.tensor([0.0, 1.0], device=device)"},
    "B14": {"setup": "t = x[0]", "same": "pairs"},
    "B15": {"setup": "tokens, stop_ids = labels, torch.arange(0, 200, 2, device=device)"},
    "B16": {"setup": "d = 16", "same": None, "why": "another optimizer takes other steps"},
    "B17": {
        "setup": "i = torch.stack([torch.randperm(n), torch.arange(n)]).to(device)\ni[:, 0] = n - 1\nv, m = x[0], n",
        "same": "s.to_dense()",
    },
    "B18": {"setup": "dense = torch.where(mask, x, 0)\nbatches = [x, y, x]", "steps": 1, "same": "y", "tolerance": 1e-4},
    "B19": {
        "setup": "v, longest = torch.rand(30, 4, 16, device=device, dtype=torch.bfloat16), 16\noffsets = torch.tensor([0, 4, 14, 30]).to(device)",
        "then": "q = nt.transpose(1, 2)\nout = F.scaled_dot_product_attention(q, q, q)",
        "same": "out.transpose(1, 2).values()",
        "gpu": True,
    },
    "B20": {"setup": PACKED, "same": "packed.data"},
    "B28": {"setup": PACKED.replace("lengths = lengths_cpu.to(device)", "lengths = lengths_cpu"), "same": "out", "tolerance": 1e-4},
    "B21": {"setup": CTC, "tolerance": 1e-4},
    "B22": {"setup": CTC, "tolerance": 1e-4},
    "B33": {"setup": CTC + "\ntargets = targets.cpu()", "tolerance": 1e-4},
    "B23": {"setup": "a = x * 1e-3", "tolerance": 1e-4},
    "B24": {"setup": "batch = SimpleNamespace(lengths=[16, 40, 8])\nlengths = torch.tensor(batch.lengths).to(device)"},
    "B25": {"setup": "x = torch.randint(0, C, (4, 5000), device=device)\nx[:, :2000] = torch.arange(4, device=device)[:, None]", "same": "m"},
    "B26": {"setup": "lengths = torch.tensor([16, 40, 8]).to(device)"},
    "B29": {
        "setup": "adaptive = nn.AdaptiveLogSoftmaxWithLoss(64, 100, [10, 50], device=device)\ny = torch.randint(0, 100, (n,), device=device)",
        "tolerance": 1e-4,
    },
    "B30": {"setup": "x = x[0]\ncounts = list(range(n))", "same": "y"},
    "C01": {"setup": "ids = [3, 1, 2]"},
    "C02": {},
    "C03": {"setup": LOADER, "steps": 1, "same": ["x", "y"]},
    "C15": {"setup": "x_cpu = torch.rand(n, n)"},
    "C20": {"setup": "x_cpu = torch.rand(n, n)"},
    "C21": {"setup": "y_cpu = y.cpu()", "first": "model.zero_grad()", "same": "[p.grad for p in model.parameters()]"},
    "C04": {"setup": "x_cpu = torch.rand(n, n).pin_memory()\nstatic_x = torch.empty(n, n, device=device)", "same": "static_x"},
    "C05": {"same": "x"},
    "C06": {"setup": "x = x[0]", "same": "x"},
    "C07": {},
    "C17": {"same": "x"},
    "C18": {},
    "C08": {"setup": "mask_cpu = torch.arange(n) % 2 == 0", "outcome": "no wait before", "why": "PyTorch 2.10 and later do it by themselves"},
    "C09": {"setup": "m = mask"},
    "C10": {"setup": "init_dist('nccl')\nout, stats = [None], {'loss': 1.5}", "same": "out[0]['loss']", "why": "one rank", "alone": True, "gpu": True},
    "C11": {
        "setup": "class Net(nn.Sequential):\n    def __init__(self):\n        super().__init__(nn.Linear(n, n), nn.Linear(n, n))",
        "same": "[p.shape.numel() for p in model.parameters()]",
        "why": "random initialisation: shapes are compared",
    },
    "C14": {"same": "list(noise.shape)", "why": "random numbers of another generator: shapes are compared"},
    "C13": {"setup": "ds = torch.rand(256, 65536)", "first": BUSY, "steps": 1, "later": True, "same": "x", "gpu": True},
    "D01": {"first": BUSY, "later": True, "same": "y"},
    "D02": {"setup": "next_tokens = labels", "first": BUSY, "later": True},
    "D03": {"setup": "idx = idx.float()"},
    "D04": {"setup": "n = 1 << 22\nx = torch.rand(n, device=device)", "first": BUSY, "later": True, "same": "host"},
    "D05": {"setup": "host, ev = torch.empty(n, n, pin_memory=True), torch.cuda.Event()", "first": BUSY, "later": True, "same": "host"},
    "D06": {"setup": "import numpy as np", "tolerance": 1e-5},
    "D07": {
        "setup": "path = tempfile.mktemp()\nmodel = nn.Sequential(*(nn.Linear(512, 512) for _ in range(8))).to(device)",
        "steps": 1,
        "same": "list(torch.load(path).values())",
    },
    "D08": {"setup": "loader = [x, y, x + y]", "steps": 1, "same": ("torch.cat(preds)", "preds")},
    "D09": {"setup": SYMMETRIC, "same": ("w.real.sort().values", "w"), "tolerance": 1e-4},
    "D10": {"setup": PACKED + "\nbatch = SimpleNamespace(lens=lengths_cpu)", "same": ["lens", "packed.data"]},
    "E01": {"setup": SYMMETRIC, "same": "y", "tolerance": 1e-4},
    "E02": {"setup": SYMMETRIC, "same": "s", "tolerance": 1e-3, "gpu": True},
    "E03": {"setup": SYMMETRIC + "a, b = a.repeat(8, 1, 1), b.repeat(8, 1, 1)", "same": "x", "tolerance": 1e-3, "gpu": True},
    "E04": {"setup": SYMMETRIC + "a = a.repeat(8, 1, 1)\nside = torch.cuda.Stream()", "alone": True, "tolerance": 1e-4, "gpu": True},
    "E05": {"setup": "mean, std = x, y", "tolerance": 1e-5},
    "E07": {
        "setup": "conv = nn.Conv2d(3, 8, 3).to(device)",
        "then": "out = conv(torch.ones(2, 3, 30 + 7 * step, 30, device=device))",
        "same": "out",
        "tolerance": 1e-2,
        "alone": True,
        "cold": True,
    },
    "E09": {"tolerance": 1e-4},
    "E10": {"setup": "w = torch.hann_window(n, device=device)\nspectra = [torch.stft(torch.rand(4096, device=device), n, window=w, return_complex=True) for _ in range(4)]", "steps": 1},
    "E11": {"setup": "s, z = torch.full((n,), 0.02, device=device), torch.zeros(n, dtype=torch.int32, device=device)"},
    "E12": {"setup": "var = torch.rand(n, n, device=device) + 0.1", "same": "loss", "tolerance": 1e-5},
    "E15": {"setup": "matrices = [torch.rand(8, 8, device=device) for _ in range(4)]", "same": ("torch.stack([p.S for p in parts])", "parts.S"), "tolerance": 1e-4, "steps": 1},
    "F01": {"same": "y"},
    "F02": {"setup": SIDE, "first": ON_SIDE, "same": "y"},
    "F03": {"setup": SIDE, "first": ON_SIDE, "same": "y"},
    "F04": {"setup": "ev = torch.cuda.Event()", "first": BUSY + "\nev.record()", "count": "EventQuery", "same": None, "why": "nothing is computed; counted: cudaEventQuery"},
    "F06": {
        "setup": "start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))",
        "same": ("ms > 0", "min(times) > 0"),
        "why": "times differ from run to run",
    },
    "G01": {"setup": "loader = [x] * 4", "steps": 1, "count": "cudaFree|Synchronize", "first": "x = torch.empty(1 << 26, device=device)\ndel x", "same": None, "why": "nothing is computed; counted: cudaFree too", "gpu": True},
    "G03": {
        "setup": "torch.cuda.memory._set_allocator_settings('expandable_segments:True')",
        "first": "z = torch.empty(1 << 26, device=device)\ndel z",
        "alone": True,
        "gpu": True,
    },
    "G04": {
        "setup": "torch.cuda.empty_cache()",
        # Within one step of the padding, and 3 MB apart: no block of an earlier step has room.
        "first": "seqs = [torch.ones(960 + 12 * step, dtype=torch.long)] + [torch.ones(1, dtype=torch.long)] * 32767",
        "count": "cudaMalloc$",
        "why": "counted: cudaMalloc",
        "cold": True,
        "same": ("x", "x[:, : len(seqs[0])]"),
        "alone": True,
        "gpu": True,
    },
    "H02": {
        "setup": "init_dist()",
        "first": BUSY + "\nwork = dist.all_reduce(t, async_op=True)",
        "count": "EventQuery",
        "same": "t",
        "why": "one rank; counted: cudaEventQuery, by which it polls",
        "alone": True,
        "gpu": True,
    },
    "H03": {"setup": "init_dist('nccl')\nloader = [x] * 4", "steps": 1, "same": None, "why": "nothing is computed; one rank", "alone": True, "gpu": True},
    "H06": {
        "setup": "init_dist()\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.used, self.unused = nn.Linear(n, n), nn.Linear(n, n)\n"
        "    def forward(self, x):\n        return self.used(x)\ntorch.manual_seed(0)\nmodel = Net().to(device)",
        "once": True,
        "steps": 12,
        "then": "ddp(x).square().mean().backward()",
        "count": "StreamSynchronize",
        "same": "[p.grad for p in model.used.parameters()]",
        "why": "one rank; events that DDP waits for to measure itself are left out",
        "alone": True,
        "gpu": True,
    },
    "H07": {
        "setup": "init_dist()\nfrom torch.nn.parallel import DistributedDataParallel as DDP\nfrom torch.utils.data.distributed import DistributedSampler\n"
        "ds = torch.rand(8, n, device=device)\nloader, ddp = DataLoader(ds), DDP(model)\ndef train_step(model, x):\n    model(x).square().mean().backward()",
        "steps": 1,
        "same": None,
        "why": "the sampler shuffles; one rank",
        "alone": True,
        "gpu": True,
    },
    "H12": {
        "setup": "if dist.is_initialized():\n    dist.destroy_process_group()\nos.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT='29517', RANK='0', WORLD_SIZE='1')",
        # The first collective makes the communicator.
        "around": "SNIPPET\ndist.all_reduce(t)",
        "once": True,
        "then": "dist.all_reduce(t)",
        "same": "t",
        "why": "one rank",
        "alone": True,
        "gpu": True,
    },
    "L08": {
        "setup": "tokens, streamer, pending, copied = labels, Recorder(), None, torch.cuda.Event()",
        "first": BUSY,
        "then": "host_work()",
        "later": True,
        "same": "streamer.last[0]",
        "why": "streamer is a stand-in",
    },
    "L17": {
        "setup": "offs = torch.tensor([16, 48, 64], dtype=torch.int32).to(device)\nx = torch.rand(64, 64, device=device, dtype=torch.bfloat16)\n"
        "w = torch.rand(3, 64, 64, device=device, dtype=torch.bfloat16)\nout = torch.empty_like(x)",
        "first": "start = 0",
        "same": "out",
        "gpu": True,
    },
    "L34": {"setup": "losses_m, n, log_interval, last, accum_steps = Recorder(), 8, 100, 99, 2", "steps": 100, "same": "losses_m.last[0]", "tolerance": 1e-5, "why": "the meter is a stand-in"},
    "L36": {"setup": "losses_m, top1_m, top5_m, n, reduced_loss, acc1, acc5 = Recorder(), Recorder(), Recorder(), 8, loss, loss_a, loss_b", "same": ["losses_m.last", "top1_m.last", "top5_m.last"], "why": "meters are stand-ins"},
    "L38": {
        "setup": GRADS + "\ntotal_norm, max_norm, grads = t, 1.0, [p.grad for p in params]",
        "same": "norm",
        "tolerance": 1e-5,
    },
    "L42": {"setup": SCALARS, "same": ("list(avg.values())", "list(avg.values())")},
    "L55": {"setup": "avg_loss, accumulation, train_loss = loss, 4, 0.0", "same": "train_loss", "tolerance": 1e-5},
    "L57": {"setup": "kl, metrics = x, {'kl': []}", "same": ("sum(metrics['kl']) / len(metrics['kl'])", "value"), "tolerance": 1e-5},
    "L68": {"setup": "params = list(model.parameters())", "same": None, "why": "optimizers of one rate"},
    "L60": {"setup": "bar = Recorder()", "steps": 50, "same": "bar.last", "why": "bar is a stand-in"},
    "L62": {"setup": "seq_lens = [3, 9, 5]"},
    "L64": {"setup": "wandb = Recorder()", "steps": 100, "same": "wandb.last[-1]", "why": "wandb is a stand-in"},
    "L67": {"setup": "logger = Recorder()", "steps": 100, "same": "logger.last[-1]", "why": "logger is a stand-in"},
}

SETUPS |= {
    **{name: TRAIN for name in ("L01", "L02", "L03", "L04")},
    "L69": TRAIN | {"then": "out = Trainer(model, args, eval_dataset=ds, compute_metrics=lambda p: {}).evaluate()", "same": "out['eval_loss']"},
    "L07": GENERATE | {"setup": "init_dist()\n" + LLAMA, "why": "one rank", "alone": True},
    "L10": GENERATE | {"same": None, "why": "another rule gives another text"},
    "L14": GENERATE | {"steps": 4, "same": "out.logits", "tolerance": 1e-4},
    "L71": GENERATE | {"setup": LLAMA + "x = ids[:1]"},
    "L19": FIT | {
        "around": "class Logged(Module):\n    def training_step(self, batch, i):\n        loss = self.layer(batch).square().mean()\n        SNIPPET\n        return loss\n"
        "model, trainer = Logged(), Trainer()",
    },
    "L20": FIT,
    "L22": FIT | {"then": "trainer = Trainer(val_check_interval=1, callbacks=[cb])\ntrainer.fit(model, loader, loader)", "same": None, "why": "may stop elsewhere"},
    "L23": FIT | {"then": "trainer = Trainer(val_check_interval=1, callbacks=[cb])\ntrainer.fit(model, loader, loader)"},
    "L24": FIT,
    "L25": FIT,
    "L66": FIT | {"setup": LIGHTNING + "trainer = Trainer()\nModule.val_dataloader = lambda self: loader", "once": False, "then": "", "same": None, "why": LOG_ONLY},
    "L27": METRIC | {"once": True, "then": "acc.to(device).update(preds, labels)", "same": "acc.compute()"},
    "L28": METRIC | {"once": True, "then": "m.to(device).update(x)", "same": "m.compute()"},
    "L29": METRIC | {"setup": "from torchmetrics.utilities.data import _bincount\nx = labels", "same": "n"},
    "L15": {"alone": True, "needs": "transformers", "setup": LLAMA, "once": True, "then": "model = LlamaForCausalLM(config).to(device) if step == 1 else model\nout = model(ids)", "same": None, "why": "another scaling gives other results"},
    "L16": {
        "alone": True,
        "needs": "transformers",
        "setup": LLAMA + "from transformers import AutoModelForCausalLM, MixtralConfig, MixtralForCausalLM\n"
        "config = MixtralConfig(**SIZES, num_key_value_heads=4, num_local_experts=4, dtype='bfloat16')\n"
        "name = tempfile.mkdtemp()\nMixtralForCausalLM(config).to(torch.bfloat16).save_pretrained(name)",
        "once": True,
        "then": "out = model.to(device)(ids)",
        "same": "out.logits",
        "tolerance": 3e-2,
        "gpu": True,
    },
    "L112": METRIC | {
        "setup": "from torchmetrics.classification import MulticlassAUROC as AnyAUROC\n"
        "MulticlassAUROC = lambda **options: AnyAUROC(**options).to(device)\n"
        "preds, target = torch.rand(n, C, device=device).softmax(1), labels",
        "same": "value",
        "tolerance": 1e-5,
    },
    "L31": {
        "needs": "accelerate",
        "setup": "from accelerate import Accelerator, DataLoaderConfiguration\nds = torch.rand(64, n)",
        "once": True,
        "then": "for batch in loader:\n    pass",
        "same": "batch",
    },
    "L32": {"needs": "accelerate", "setup": "from accelerate import Accelerator\naccelerator = Accelerator()", "steps": 100, "same": "step"},
    "L54": {
        "needs": "diffusers",
        "setup": "from diffusers import EulerDiscreteScheduler\nscheduler = EulerDiscreteScheduler()",
        "once": True,
        "steps": 1,
        "then": "for t in scheduler.timesteps:\n    x = scheduler.step(y, t, x).prev_sample",
        "same": "x",
        "tolerance": 1e-4,
    },
    "L35": {"setup": "batch_time, end = Recorder(), time.time()", "same": "step", "why": "batch_time is a stand-in; times differ from run to run"},
    "L56": {
        "needs": "torch_geometric",
        "setup": "from torch_geometric.nn import global_mean_pool\nbatch, data = labels.sort().values, SimpleNamespace(num_graphs=C)",
    },
    "L76": {
        "needs": "torch_geometric",
        "setup": "from torch_geometric import transforms as T\nfrom torch_geometric.data import Data\nfrom torch_geometric.nn import GCNConv\n"
        "data = Data(x=torch.rand(n, 16, device=device), edge_index=torch.stack([labels, labels.roll(3)]))",
        "once": True,
        "then": "torch.manual_seed(0)\nconv.reset_parameters() if step == 1 else None\nout = conv.to(device)(data.x, data.edge_index)",
        "same": "out",
        "tolerance": 1e-5,
    },
    "L103": {
        "needs": "torch_geometric",
        "setup": "from torch_geometric.data import Data\nfrom torch_geometric.loader import DataLoader\ndata = [Data(x=torch.rand(8, 16)) for _ in range(256)]",
        "steps": 1,
        "same": "batch.x",
    },
}

# Why a pair is not run: the sort of reason, and what is missing.
NOT_RUN = {
    "B27": ("version", "needs PyTorch built with CUDA 11.5"),
    "F08": ("version", "needs a driver before CUDA 11.4"),
    "F11": ("ranks", "needs several processes"),
    "F12": ("library", "needs CuPy"),
    "L136": ("library", "needs CuPy"),
    "G02": ("environment", "needs a GPU whose memory is full"),
    "G05": ("environment", "is set before the process starts"),
    "H05": ("advice", "there is nothing to gain"),
    **dict.fromkeys(["H08", "H09", "H10", "H11", "H14", "L21", "L30", "L33", "L39", "L49"], ("ranks", "needs several ranks")),
    "E16": ("version", "needs PyTorch before 2.6"),
    "L123": ("version", "needs accelerate before 0.22"),
    **dict.fromkeys(["E08", "E14", "F09", "F10", "H13", "L26", "L65", "L77", "L91", "L107", "L108"], ("measuring", "it moves work out of what is measured")),
    **dict.fromkeys(["G07", *(f"K{k:02}" for k in range(1, 10))], ("cuda", "CUDA C++, not Python")),
}

LIBRARIES = {
    "GPyTorch": "L114 L115 L116 L117",
    "Lightning": "L105 L106 L109 L110",
    "transformers": "L119 L120 L121 L122 L124 L135",
    "torchmetrics": "L111 L113",
    "pycocotools": "L93",
    "PyG": "L126 L133",
    "sentence-transformers": "L125",
    "flash-linear-attention": "L127",
    "DGL": "L128",
    "TorchRec": "L129",
    "Transformer Engine": "L130",
    "Ultralytics": "L131",
    "DeepSpeed": "L47 L50 L51 L52 L53 L80 L81 L82 L94",
    "Pyro": "L96 L97",
    "fastai": "L99",
    "ignite": "L102",
    "lightly": "L100 L101",
    "the weights of a pipeline": "L73 L74 L75",
    "flash-attn": "L11 L12 L13 L18 L58",
    "Megatron-LM": "L37 L40 L41 L43 L44 L45 L46 L84 L85 L86 L87",
    "nanoGPT": "L59",
    "SGLang": "L92",
    "TensorRT": "E13",
    "torchtitan": "L88",
    "torchvision": "L63 L104",
    "vLLM": "L61 L90",
}
NOT_RUN |= {name: ("library", f"needs {library}") for library, names in LIBRARIES.items() for name in names.split()}
