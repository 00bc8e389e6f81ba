"""Divergence, barriers, collectives, spinning and limits, on kernels compiled from CUDA."""

import numpy as np
import pytest

from cupy_kernels.nvrtc import compile_ptx
from cupy_kernels.simulator import Fault, Limits, launch, load

from .ptx_text import kernel


def run(body: str, block=128, grid=1, n=0, **options):
    source = f'extern "C" __global__ void k(int* x, int n) {{ int t = threadIdx.x; {body} }}'
    program = load(compile_ptx(source, filename="k.cu").text, source, "k.cu")
    x = np.zeros(1024, np.int32)
    counts = launch(program.kernels["k"], (grid,), (block,), (x, np.int32(n)), **options)
    return x, counts


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("block", [1, 32, 100, 128])
def test_loops_of_different_length_meet_again(block, full):
    x, _ = run(
        "int s = 0; for (int i = 0; i < t % 7; ++i) { if (i == 3) continue; s += i * t; }"
        "x[t] = s + __shfl_sync(~0u, 5, 0);",
        block,
        full_classes=full,
    )
    t = np.arange(block)
    want = [sum(i * lane for i in range(lane % 7) if i != 3) + 5 for lane in t]
    assert x[:block].tolist() == want


def test_early_return_before_a_barrier_is_fine():
    x, counts = run(
        "__shared__ int s[128]; if (t >= 100) return; s[t] = t; __syncthreads(); x[t] = s[99 - t];"
    )
    assert x[:100].tolist() == list(range(99, -1, -1))
    assert counts.warnings == []


def test_half_warps_may_shuffle_apart():
    x, _ = run(
        "int v = t; if (t % 32 < 16) v = __shfl_xor_sync(0xffffu, v, 1);"
        "else v = __shfl_xor_sync(0xffff0000u, v, 2); x[t] = v;"
    )
    t = np.arange(128)
    assert (x[:128] == np.where(t % 32 < 16, t ^ 1, t ^ 2)).all()


def test_syncwarp_in_both_branches_is_one_barrier_each():
    x, _ = run("if (t % 2) { x[t] = 1; __syncwarp(0xaaaaaaaau); } else __syncwarp(0x55555555u);")
    assert x[:128].sum() == 64


PRODUCER = """__shared__ int s[64];
if (t < 64) { s[t] = 7 * t; asm volatile("bar.arrive 1, 128;" ::: "memory"); }
else { asm volatile("bar.sync 1, 128;" ::: "memory"); x[t - 64] = s[t - 64]; }"""


def test_named_barrier_with_a_producer():
    x, _ = run(PRODUCER)
    assert (x[:64] == 7 * np.arange(64)).all()


def test_named_barriers_order_by_transitivity():
    x, _ = run(
        "__shared__ int s[32]; int w = t / 32; if (w == 0) s[t] = t;"
        'if (w < 2) asm volatile("bar.sync 1, 64;" ::: "memory");'
        'if (w > 0) asm volatile("bar.sync 2, 64;" ::: "memory");'
        "if (w == 2) x[t - 64] = s[t - 64];",
        block=96,
    )
    assert (x[:32] == np.arange(32)).all()


def test_barrier_ids_from_registers():
    x, _ = run(
        "__shared__ int s[128]; int w = t / 64; s[t] = t;"
        'asm volatile("bar.sync %0, 64;" :: "r"(w + 1) : "memory"); x[t] = s[t ^ 63];'
    )
    assert (x[:128] == (np.arange(128) ^ 63)).all()


@pytest.mark.parametrize("divergent", [False, True])
def test_barrier_reductions(divergent):
    first = "if (t % 2) x[512 + t] = 1;" if divergent else ""
    x, _ = run(
        f"{first} int a = __syncthreads_count(t < 37), b = __syncthreads_or(t == 99),"
        "c = __syncthreads_and(t < 127); x[t] = a + 1000 * !!b + 10000 * !!c;"
    )
    assert (x[:128] == 1037).all()


def test_a_spin_lock_lets_its_owner_run():
    x, _ = run(
        "__shared__ int lock; if (t == 0) lock = 0; __syncthreads(); bool done = false;"
        "while (!done) if (atomicCAS(&lock, 0, 1) == 0) {"
        "x[0] += t; __threadfence_block(); atomicExch(&lock, 0); done = true; }",
        block=64,
        check=False,
    )
    assert x[0] == 64 * 63 // 2


def test_blocks_may_wait_for_a_flag_of_another():
    x, _ = run(
        "volatile int* flag = x + 512;"
        "if (blockIdx.x == 5) { x[600] = 42; __threadfence(); *flag = 1; }"
        "else { while (*flag == 0) ; __threadfence(); x[blockIdx.x] = x[600]; }",
        block=1,
        grid=8,
    )
    assert x[:8].tolist() == [42] * 5 + [0] + [42] * 2


def test_the_last_block_may_read_what_the_others_wrote():
    x, _ = run(
        "__shared__ bool last; x[100 + blockIdx.x] = blockIdx.x; __threadfence();"
        "if (t == 0) last = atomicAdd(x + 50, 1) == gridDim.x - 1; __syncthreads();"
        "if (last && t == 0) { int s = 0;"
        "for (int i = 0; i < gridDim.x; ++i) s += x[100 + i]; x[0] = s; }",
        block=1,
        grid=300,
    )
    assert x[0] == 300 * 299 // 2


def test_brx_picks_a_label_a_lane():
    body = """and.b32 %r4, %r0, 3;
table: .branchtargets A, B, C, D;
brx.idx %r4, table;
A: mov.u32 %r5, 10;
bra END;
B: mov.u32 %r5, 11;
bra END;
C: mov.u32 %r5, 12;
bra END;
D: mov.u32 %r5, 13;
END: st.global.u32 [%rd0], %r5;"""
    x = np.zeros(64, np.int32)
    launch(load(kernel(body)).kernels["k"], (1,), (64,), (x,))
    assert (x == 10 + np.arange(64) % 4).all()


@pytest.mark.parametrize("limits", [Limits(steps=500), Limits(seconds=0.2)])
def test_limits_name_the_loop(limits):
    with pytest.raises(Fault) as caught:
        run("while (*(volatile int*)x == n) ; x[t] = 1;", limits=limits)
    assert caught.value.kind in ("step limit", "time limit")
    assert caught.value.place.line == 1


def test_many_divergences_do_not_nest():
    """Each divergence and reconvergence is a turn of one loop, not a deeper call."""
    x, counts = run("for (int i = 0; i < n; ++i) if ((t + i) % 2) x[t] += i;", n=1500)
    assert counts.masked_steps > 1000
    assert (x[:128] == [sum(i for i in range(1500) if (t + i) % 2) for t in range(128)]).all()
