"""`python -m benchmarks run | crosscheck | table`."""

import argparse
import sys

from . import attention, crosscheck, results_file, simulator_speed

# A suite is a function without arguments that returns rows.
SUITES = {
    "simulator": simulator_speed.run,
    "forward": attention.run_forward,
    "backward": attention.run_backward,
    "ladder": attention.run_ladder,
}


def main(argv: list[str] | None = None) -> int:
    """Parse the command line and run one command; returns the exit status."""
    arguments = _parser().parse_args(argv)
    return arguments.command(arguments)


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure, record, and show what was recorded."
    )
    commands = parser.add_subparsers(required=True)

    run = commands.add_parser("run", help="measure suites and record them")
    run.add_argument(
        "suites", nargs="*", default=list(SUITES), help=f"of {', '.join(SUITES)} (all)"
    )
    run.add_argument("--out", metavar="NAME", help="write benchmarks/results/NAME.json")
    run.set_defaults(command=_run)

    check = commands.add_parser("crosscheck", help="compare the simulator with this machine's GPU")
    check.add_argument("kernels", nargs="*", help="kernels of the sampler (all)")
    check.add_argument("--out", metavar="NAME", help="write benchmarks/results/NAME.json")
    check.add_argument("--no-ncu", action="store_true", help="compare outputs only, no counters")
    check.add_argument("--keep", metavar="DIR", help="keep outputs, logs and all counters there")
    check.add_argument(
        "--random", type=int, default=0, metavar="COUNT", help="random PTX programs to run as well"
    )
    check.set_defaults(command=_crosscheck)

    table = commands.add_parser("table", help="print the newest recorded rows of a suite")
    table.add_argument("suite", nargs="?", default="simulator")
    table.set_defaults(command=_table)
    return parser


def _run(arguments):
    unknown = [name for name in arguments.suites if name not in SUITES]
    if unknown:
        print(f"no suite {', '.join(unknown)}: there are {', '.join(SUITES)}", file=sys.stderr)
        return 2
    for name in arguments.suites:
        print(results_file.write(arguments.out or name, SUITES[name]()))
    return 0


def _crosscheck(arguments):
    return crosscheck.main(
        arguments.kernels,
        arguments.out,
        with_counters=not arguments.no_ncu,
        keep=arguments.keep,
        random_programs=arguments.random,
    )


def _table(arguments):
    record = results_file.newest(arguments.suite)
    if record is None:
        print(f"nothing recorded for suite {arguments.suite!r}", file=sys.stderr)
        return 1
    print(f"{record['date']} · {record['gpu'] or record['cpu']} · {record['command']}")
    for row in record["rows"]:
        sizes = [f"{name}={row[name]}" for name in ("d", "N") if row[name]]
        size = " ".join([*sizes, "causal" if row["causal"] else ""])
        beside = f"{row['peer']} {row['peer_value']}" if row["peer"] else ""
        ratio = f"x{row['ratio']:.2f}" if row["ratio"] else ""
        value = f"{row['value']} {row['unit']}"
        print(f"{row['name']:32} {size:20} {row['metric']:22} {value:>18}  {beside:24} {ratio}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
