"""Our attention kernels beside torch's: forward and backward, on one GPU, in one process.

The setting is the papers': hidden size 2048, 16k tokens in total, random normal data. Kernels take
turns call by call, with L2 cleared before each timed call, so that a change of clocks hits all
alike. FLOPs are counted as the papers do: 4·N²·d a head forward, 2.5 times that backward, half of
it under a causal mask. Before a case is timed, our results are compared with torch's.
"""

import itertools
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace

import ml_dtypes  # noqa: F401 (NumPy knows "bfloat16" by it)
import numpy as np

from cupy_kernels import device as devices
from cupy_kernels import flash2, flash2_steps
from cupy_kernels.attention import Attention

from .results_file import row

HIDDEN, TOKENS = 2048, 16384
SIZES = (1024, 4096, 16384)
HEAD_DIMS = (64, 128)
DTYPE = "bfloat16"
LADDER_N = 4096
ROUNDS, WARM_UP = 15, 3
PEERS = {
    "torch FLASH": "FLASH_ATTENTION",
    "torch cuDNN": "CUDNN_ATTENTION",
    "torch EFFICIENT": "EFFICIENT_ATTENTION",
}
OURS = "flash2"
L2_CLEARING_BYTES = 256 * 1024 * 1024
BACKLOG_CYCLES = 5_000_000


def run_forward() -> list[dict]:
    """Rows of suite `forward`."""
    return _run("forward")


def run_backward() -> list[dict]:
    """Rows of suite `backward`."""
    return _run("backward")


def run_ladder() -> list[dict]:
    """Rows of suite `ladder`: every step to the forward kernel at one size, beside torch FLASH."""
    _need_gpu()
    rows = []
    for d, causal in itertools.product(HEAD_DIMS, (False, True)):
        case = Case(d, LADDER_N, causal)
        launches = {step.kernel: step.launch for step in flash2_steps.STEPS}
        launches["flash2_forward"] = flash2.flash2_forward
        calls = {name: case.our_forward(launch=launch)[0] for name, launch in launches.items()}
        times = interleaved(calls | {"torch FLASH": case._torch_forward("torch FLASH")})
        rates = case.rates("forward", times)
        for name in launches:
            pair = {name: rates[name], "torch FLASH": rates["torch FLASH"]}
            rows += _rows("ladder", name, case, pair)
        _say("ladder", case, rates)
    return rows


def _run(suite):
    _need_gpu()
    rows = []
    for d, N, causal in itertools.product(HEAD_DIMS, SIZES, (False, True)):
        case = Case(d, N, causal)
        calls = case.forward_calls() if suite == "forward" else case.backward_calls()
        rates = case.rates(suite, interleaved(calls))
        rows += _rows(suite, f"{OURS}_{suite}", case, rates)
        _say(suite, case, rates)
    return rows


def _need_gpu():
    if devices.gpu_capability() is None:
        raise SystemExit(f"the attention suites need a GPU: {devices.no_gpu_reason()}")
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise SystemExit("the attention suites compare with torch: pip install torch") from None


class Case:
    """One size: tensors on the GPU, and what to call on them."""

    def __init__(self, d: int, N: int, causal: bool, dtype: str = DTYPE):
        import torch

        self.d, self.N, self.causal, self.dtype = d, N, causal, dtype
        self.shape = (TOKENS // N, HIDDEN // d, N, d)
        torch.manual_seed(N + d)
        kind = getattr(torch, dtype)
        tensors = (torch.randn(self.shape, device="cuda").to(kind) for _ in range(4))
        self.q, self.k, self.v, self.do = tensors
        problem = Attention.of(*map(as_cupy, (self.q, self.k, self.v)), causal, None)
        self.problem = replace(problem, dtype=np.dtype(dtype))

    def flops(self, suite: str) -> float:
        """As the papers count them."""
        batch, heads, N, d = self.shape
        forward = 4 * N * N * d * heads * batch * (0.5 if self.causal else 1)
        return forward if suite == "forward" else 2.5 * forward

    def rates(self, suite: str, times: dict[str, list[float]]) -> dict[str, list[float]]:
        """TFLOP/s of each call from its milliseconds."""
        return {name: [self.flops(suite) / t / 1e9 for t in ms] for name, ms in times.items()}

    def forward_calls(self) -> dict[str, Callable]:
        """Name → a function that runs one forward pass: ours first."""
        ours, o = self.our_forward()
        ours()
        self._check("O", o, self._torch_forward("torch FLASH")())
        return {OURS: ours} | {name: self._torch_forward(name) for name in self._peers()}

    def backward_calls(self) -> dict[str, Callable]:
        """Name → a function that runs one backward pass: ours first."""
        ours, gradients = self.our_backward()
        ours()
        theirs = self._torch_backward("torch FLASH")()
        for name, mine, other in zip(("dQ", "dK", "dV"), gradients, theirs, strict=True):
            self._check(name, mine, other)
        return {OURS: ours} | {name: self._torch_backward(name) for name in self._peers()}

    def our_forward(self, launch: Callable = flash2.flash2_forward):
        """(a function that runs a forward kernel of ours, the tensor O it writes into)."""
        import torch

        o, lse = torch.empty_like(self.q), torch.empty(self.shape[:3], device="cuda")
        arrays = [as_cupy(x) for x in (self.q, self.k, self.v, o, lse)]
        self.o, self.lse = o, lse
        return lambda: launch(*arrays, self.problem, "gpu"), o

    def our_backward(self, launch: Callable = flash2.flash2_backward):
        """(a function that runs our backward kernels, the tensors dQ, dK, dV)."""
        import torch

        self.our_forward()[0]()
        gradients = [torch.empty_like(x) for x in (self.q, self.k, self.v)]
        given = (self.q, self.k, self.v, self.o, self.lse, self.do)
        arrays = [as_cupy(x) for x in (*given, *gradients)]
        return lambda: launch(*arrays, self.problem, "gpu"), gradients

    def _peers(self):
        """Peers that can run this case at all."""
        for name in PEERS:
            try:
                self._torch_backward(name)()
            except RuntimeError as refusal:
                print(f"{name} left out: {str(refusal).splitlines()[0]}", file=sys.stderr)
            else:
                yield name

    def _torch_forward(self, peer):
        import torch
        from torch.nn import attention

        backend = getattr(attention.SDPBackend, PEERS[peer])

        def call(q=self.q, k=self.k, v=self.v):
            with attention.sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, is_causal=self.causal
                )

        return call

    def _torch_backward(self, peer):
        import torch

        inputs = [x.detach().requires_grad_() for x in (self.q, self.k, self.v)]
        o = self._torch_forward(peer)(*inputs)
        return lambda: torch.autograd.grad(o, inputs, self.do, retain_graph=True)

    def _check(self, name, ours, theirs):
        """Both round to the same dtype: they may differ by a few of its last bits, no more."""
        import torch

        ours, theirs = ours.float(), theirs.float()
        apart = (ours - theirs).norm() / theirs.norm()
        bound = 4 * torch.finfo(getattr(torch, self.dtype)).eps
        if not apart < bound:
            where = f"d={self.d} N={self.N} causal={self.causal}"
            raise AssertionError(
                f"{name} at {where}: {apart:.1e} away from torch FLASH ({bound:.1e})"
            )


def as_cupy(tensor):
    """A torch tensor as a CuPy array on the same memory; bf16 travels as uint16."""
    import cupy
    import torch

    if tensor.dtype is torch.bfloat16:
        return cupy.from_dlpack(tensor.detach().view(torch.int16)).view(cupy.uint16)
    return cupy.from_dlpack(tensor.detach())


def interleaved(calls: dict[str, Callable], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Milliseconds of each call, taking turns: name → one figure a round."""
    import torch

    clearing = torch.empty(L2_CLEARING_BYTES, dtype=torch.uint8, device="cuda")
    events = {name: [] for name in calls}
    for turn in range(WARM_UP + rounds):
        torch.cuda._sleep(BACKLOG_CYCLES)  # launches queue up behind it: no gap is ever timed
        for name, call in calls.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            clearing.zero_()
            start.record()
            call()
            end.record()
            if turn >= WARM_UP:
                events[name].append((start, end))
    torch.cuda.synchronize()
    return {name: [a.elapsed_time(b) for a, b in pairs] for name, pairs in events.items()}


def _rows(suite, kernel, case, rates):
    """One row a peer: our kernel, the first of `rates`, beside it."""
    (_, values), *peers = rates.items()
    ours = statistics.median(values)
    for peer, theirs in peers:
        beside = statistics.median(theirs)
        yield row(
            suite,
            kernel,
            "speed",
            round(ours, 1),
            "TFLOP/s",
            dtype=case.dtype,
            d=case.d,
            N=case.N,
            causal=case.causal,
            device="gpu",
            spread=round((max(values) - min(values)) / 2, 1),
            peer=peer,
            peer_value=round(beside, 1),
            ratio=round(ours / beside, 3),
        )


def _say(suite, case, rates):
    medians = {name: statistics.median(values) for name, values in rates.items()}
    listed = "  ".join(f"{name} {value:.0f}" for name, value in medians.items())
    mask = "causal" if case.causal else "full"
    print(f"{suite:8} d={case.d:<4} N={case.N:<6} {mask:6} {listed}", flush=True)
