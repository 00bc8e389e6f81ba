"""Blocks, post-dominators, fusing and spin loops."""

from cupy_kernels.simulator import load

from .ptx_text import kernel


def cfg_of(body: str):
    return load(kernel(body)).kernels["k"].translation.cfg


DIAMOND = """setp.eq.s32 %p1, %r0, 0;
@%p1 bra THEN;
mov.u32 %r4, 1;
bra JOIN;
THEN:
mov.u32 %r4, 2;
JOIN:
mov.u32 %r5, %r4;
"""


def test_diamond():
    cfg = cfg_of(DIAMOND)
    then, join = cfg.labels["THEN"], cfg.labels["JOIN"]
    assert cfg.blocks[0].successors == [then, 1]
    assert cfg.blocks[1].successors == [join]
    assert cfg.postdominators[0] >> join & 1
    assert not cfg.postdominators[0] >> then & 1


def test_collectives_start_fine_blocks_that_the_fast_path_joins_again():
    cfg = cfg_of("mov.u32 %r4, 1;\nshfl.sync.bfly.b32 %r5, %r4, 1, 31, -1;\nmov.u32 %r6, %r5;")
    assert cfg.blocks[1].collective.root == "shfl"
    assert cfg.fused_until[0] == 1


def test_a_guarded_collective_is_branched_around():
    cfg = cfg_of("@%p1 shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1;")
    assert cfg.blocks[0].terminator.root == "bra"
    assert cfg.blocks[1].collective.guard is None


def test_a_block_barrier_ends_its_block_and_syncwarp_does_not():
    cfg = cfg_of("bar.sync 0;\nbar.warp.sync -1;\nmov.u32 %r4, 1;")
    assert cfg.blocks[0].terminator.root == "bar"
    assert cfg.blocks[1].collective.modifiers == ("warp", "sync")
    assert cfg.fused_until[1] == 1


def test_spin_loops_are_those_that_watch_memory():
    spinning = (
        "SPIN:\nld.volatile.global.u32 %r4, [%rd1];\nsetp.eq.s32 %p1, %r4, 0;\n@%p1 bra SPIN;"
    )
    counting = "LOOP:\nsub.s32 %r4, %r4, 1;\nsetp.ne.s32 %p1, %r4, 0;\n@%p1 bra LOOP;"
    cfg = cfg_of(spinning)
    assert cfg.spin_blocks == {cfg.labels["SPIN"]}
    assert cfg_of(counting).spin_blocks == set()
