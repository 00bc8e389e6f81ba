"""The simulator beside the card: every kernel of the sampler in both, outputs and counters.

Outputs must be equal bit for bit, or agree within the case's stated ulps. Every counter that has a
counterpart on the card must equal it, but for the exceptions listed with their reasons. One failing
kernel is reported and the rest go on: kernels run in a child process that is started again behind
one that dies.
"""

import json
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cupy_kernels import device

from . import hardware_counters, results_file
from .crosscheck_exceptions import reason
from .results_file import row

ROOT = Path(__file__).parents[1]
BATCH = 40  # kernels in one ncu process


@dataclass
class Outcome:
    """What is known of one kernel after the crosscheck; an empty `trouble` means it all agrees."""

    name: str
    simulated: dict | None = None
    counts: dict = field(default_factory=dict)
    on_gpu: dict | None = None
    hardware: dict = field(default_factory=dict)
    trouble: list[str] = field(default_factory=list)


def main(
    names: list[str],
    out: str | None = None,
    with_counters: bool = True,
    keep: str | None = None,
    random_programs: int = 0,
) -> int:
    """Run the comparison, print its table, record it under `out`; 1 if anything disagrees."""
    sampler = _sampler()
    unknown = [name for name in names if name not in sampler]
    if unknown:
        print(f"the sampler has no kernel {', '.join(unknown)}", file=sys.stderr)
        return 2
    if device.gpu_capability() is None:
        print(f"crosscheck needs a GPU: {device.no_gpu_reason()}", file=sys.stderr)
        return 2
    names = names or list(sampler)
    if keep:
        Path(keep).mkdir(parents=True, exist_ok=True)
    with nullcontext(keep) if keep else tempfile.TemporaryDirectory() as folder:
        outcomes = {name: Outcome(name) for name in names}
        _simulate(outcomes)
        _run_on_gpu(outcomes, Path(folder))
        if with_counters:
            _count_on_gpu(outcomes, Path(folder))
    for outcome in outcomes.values():
        _compare(outcome)
    _print_table(outcomes, with_counters)
    programs = _random_programs(random_programs)
    if out:
        rows = [r for outcome in outcomes.values() for r in _rows(outcome)]
        summary = _summary(outcomes) | {"random programs": programs}
        print(results_file.write(out, rows, {"summary": summary}))
    return int(any(outcome.trouble for outcome in outcomes.values()) or bool(programs["wrong"]))


def _sampler():
    """All cases by name. They live with the tests, at the root of the repository."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    from tests.cupy_kernels.sampler import SAMPLER
    from tests.cupy_kernels.sampler.attention import ATTENTION

    return SAMPLER | ATTENTION


def _simulate(outcomes):
    from tests.cupy_kernels.sampler.simulate import simulate

    start = time.perf_counter()
    for name, outcome in outcomes.items():
        case = _sampler()[name]
        arguments, _ = case.arguments()
        try:
            counts = simulate(case, arguments)
        except Exception as error:
            first = (str(error).splitlines() or [""])[0]
            outcome.trouble.append(f"simulator: {type(error).__name__}: {first[:200]}")
            _log(traceback.format_exc())
            continue
        outcome.simulated = arguments
        outcome.counts = simulator_counts(counts.totals)
    _log(f"simulated {len(outcomes)} kernels in {time.perf_counter() - start:.1f} s")


def simulator_counts(counts) -> dict:
    """The totals that have a counterpart on the card; cp.async requests count as loads there."""
    totals = {name: getattr(counts, name) for name in hardware_counters.COUNTERPARTS}
    totals["load_requests"] += counts.cp_async_requests
    return totals


def _run_on_gpu(outcomes, folder):
    """Launch all kernels in child processes; a new child starts behind a kernel that ends one."""
    waiting = list(outcomes)
    while waiting:
        finished, said = _child(waiting, folder)
        for name in finished:
            with np.load(folder / f"{name}.npz") as arrays:
                outcomes[name].on_gpu = dict(arrays)
        waiting = waiting[len(finished) :]
        if waiting:
            outcomes[waiting[0]].trouble.append(f"GPU: {said}")
            _log(f"{waiting[0]} ended the GPU process: {said}")
            waiting = waiting[1:]


def _child(names, folder):
    finished = folder / "finished"
    finished.write_text("")
    command = [sys.executable, "-m", "benchmarks.gpu_launches", str(folder), *names]
    try:
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=540)
        said = answer.stderr.strip().splitlines()
    except subprocess.TimeoutExpired:
        said = ["no answer within 540 s"]
    return finished.read_text().split(), (said or ["ended without a word"])[-1][:300]


def _count_on_gpu(outcomes, folder):
    """Counters of every kernel that ran; clues for those that differ and are not listed."""
    counterparts, clues = hardware_counters.available()
    (folder / "metrics.txt").write_text("\n".join([*counterparts, *clues]) + "\n")
    ran = [name for name, outcome in outcomes.items() if outcome.on_gpu is not None]
    for first in range(0, len(ran), BATCH):
        _count_batch(outcomes, ran[first : first + BATCH], counterparts, folder, f"ncu-{first}")
    puzzling = [name for name in ran if _unexplained(outcomes[name])]
    if clues and puzzling:
        _count_batch(outcomes, puzzling, clues, folder, "ncu-clues")
    counters = {name: outcome.hardware for name, outcome in outcomes.items()}
    (folder / "counters.json").write_text(json.dumps(counters, indent=1))


def _count_batch(outcomes, names, metrics, folder, log_name):
    """One ncu process for several kernels, matched by their order; again behind one that fails."""
    waiting, attempt = names, 0
    while waiting:
        attempt += 1
        log = folder / f"{log_name}-{attempt}"
        command = ["-m", "benchmarks.gpu_launches", str(folder), *waiting]
        rows = hardware_counters.profile(command, metrics, log)
        for name, counters in zip(waiting, rows, strict=False):
            if not _is_named(counters["kernel"], _sampler()[name].kernel):
                outcomes[name].trouble.append(f"ncu: shows {counters['kernel']} in its place")
                return
            outcomes[name].hardware |= counters
        waiting = waiting[len(rows) :]
        if waiting:
            said = _last_line(log.with_suffix(".err")) or _last_line(log.with_suffix(".csv"))
            outcomes[waiting[0]].trouble.append(f"ncu: {said}")
            _log(f"ncu stopped at {waiting[0]}: {said}")
            waiting = waiting[1:] if rows else []


def _random_programs(count):
    """Random PTX programs on the GPU against the scalar interpreter of the tests."""
    if not count:
        return {"programs": 0, "wrong": {}, "miscompiled": {}}
    command = [sys.executable, "-m", "benchmarks.gpu_random_programs", str(count)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=540)
    try:
        programs = json.loads((answer.stdout.splitlines() or [""])[-1])
    except json.JSONDecodeError:
        said = (answer.stderr.strip().splitlines() or ["ended without a word"])[-1]
        programs = {"programs": count, "wrong": {"all": [said[:300]]}, "miscompiled": {}}
    equal = programs["programs"] - len(programs["wrong"])
    print(f"random PTX programs: {equal} of {count} equal on the GPU and in the interpreter")
    for kind in ("wrong", "miscompiled"):
        for seed, lines in programs[kind].items():
            print(f"! random program {seed}, {kind}: {lines[0]}")
    return programs


def _is_named(shown, kernel):
    return shown.replace("void ", "").startswith(kernel.partition("<")[0])


def _last_line(path):
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def _compare(outcome):
    case = _sampler()[outcome.name]
    _, expected = case.arguments()
    for where, arguments in (("simulator", outcome.simulated), ("GPU", outcome.on_gpu)):
        if arguments is not None:
            outcome.trouble += [f"{where}: {d}" for d in case.differences(arguments, expected)]
    if outcome.simulated is not None and outcome.on_gpu is not None:
        apart = case.differences(outcome.on_gpu, {n: outcome.simulated[n] for n in expected})
        outcome.trouble += [f"GPU beside simulator: {line}" for line in apart]
    outcome.trouble += _unexplained(outcome)


def _unexplained(outcome):
    """A line for each counter that differs and is no listed exception."""
    return [
        f"{name}: simulator {ours:,}, ncu {theirs:,}"
        for name, ours, theirs in compared_counters(outcome)
        if ours != theirs and reason(outcome.name, name) is None
    ]


def compared_counters(outcome: Outcome):
    """(name, simulator's count, hardware's count) wherever both exist and mean the same."""
    if not (outcome.counts and outcome.hardware):
        return
    copies = outcome.counts["cp_async_moves"]
    for name, counters in hardware_counters.COUNTERPARTS.items():
        if name in ("mma", "cp_async_moves") and not outcome.counts[name]:
            continue
        if name == "load_sectors" and copies:
            counters = hardware_counters.PLAIN_LOADS
        values = [outcome.hardware.get(counter) for counter in counters]
        if None not in values:
            yield name, outcome.counts[name], sum(values)


def _rows(outcome):
    case = _sampler()[outcome.name]
    common = {"device": "simulator", "peer": "GPU"}
    if outcome.simulated is not None and outcome.on_gpu is not None:
        _, expected = case.arguments()
        agree = not case.differences(outcome.on_gpu, {n: outcome.simulated[n] for n in expected})
        yield row(
            "crosscheck", outcome.name, "outputs agree", int(agree), "bool", peer_value=1, **common
        )
    for name, ours, theirs in compared_counters(outcome):
        equal = 1.0 if ours == theirs else round(ours / theirs, 4) if theirs else None
        yield row(
            "crosscheck",
            outcome.name,
            name,
            ours,
            "count",
            peer_value=theirs,
            ratio=equal,
            **common,
        )


def _summary(outcomes):
    counts, exceptions = {}, {}
    for outcome in outcomes.values():
        for name, ours, theirs in compared_counters(outcome):
            equal, compared = counts.get(name, (0, 0))
            counts[name] = (equal + (ours == theirs), compared + 1)
            if ours != theirs and reason(outcome.name, name):
                exceptions.setdefault(outcome.name, {})[name] = reason(outcome.name, name)
    return {
        "kernels": len(outcomes),
        "kernels that agree in all": sum(not o.trouble for o in outcomes.values()),
        "counters equal": {name: f"{equal} of {total}" for name, (equal, total) in counts.items()},
        "exceptions": exceptions,
        "trouble": {o.name: o.trouble for o in outcomes.values() if o.trouble},
    }


def _print_table(outcomes, with_counters):
    print(f"{'kernel':26} {'outputs':9} {'counters':9} unequal counters (simulator / ncu)")
    for outcome in outcomes.values():
        ran = outcome.simulated is not None and outcome.on_gpu is not None
        counters = tuple(hardware_counters.COUNTERPARTS)
        wrong = [t for t in outcome.trouble if not t.startswith(counters)]
        outputs = ("differ" if wrong else "equal") if ran else "no run"
        pairs = list(compared_counters(outcome))
        unequal = [f"{n} {a:,}/{b:,}" for n, a, b in pairs if a != b]
        state = f"{len(pairs) - len(unequal)}/{len(pairs)}" if with_counters else "-"
        print(f"{outcome.name:26} {outputs:9} {state:9} {', '.join(unequal)}")
    for outcome in outcomes.values():
        for line in outcome.trouble:
            print(f"! {outcome.name}: {line}")
    shown = ("kernels", "kernels that agree in all", "counters equal")
    print(json.dumps({name: _summary(outcomes)[name] for name in shown}, indent=1))


def _log(text):
    print(text, file=sys.stderr, flush=True)
