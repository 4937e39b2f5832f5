#!/usr/bin/env python3
"""What accuracy each strategy reaches in equal epochs, and with how many bytes.

    python3 tests/bench/accuracy.py --seeds 5 --directory runs/accuracy
    python3 tests/bench/accuracy.py --periods 1,3,8,30 --seeds 3 --directory runs/periods

Each (strategy, seed) is one `stagger run`, one after the other. A run whose report is already in
the directory, of the very same config and program, is not repeated: a bench that was stopped goes
on where it was.
"""

import argparse
import functools
import hashlib
import pathlib
import signal
import statistics
import sys

import common
from common import BenchError

INTERLEAVED = {"sync.strategy": "interleaved"}
# name: keys of the config. alpha and beta not named: the defaults, alpha = beta / K.
SETTINGS = {
    "bsp": {"sync.strategy": "bsp"},
    "old_center": {**INTERLEAVED, "sync.rule": "old_center"},
    "fresh_center": {**INTERLEAVED, "sync.rule": "fresh_center"},
    "post_step": {**INTERLEAVED, "sync.rule": "post_step"},
    "post_step_1": {**INTERLEAVED, "sync.rule": "post_step", "sync.alpha": 1.0, "sync.beta": 1.0},
    "local_sgd": {"sync.strategy": "local_sgd"},
    "easgd": {"sync.strategy": "easgd"},
    "diloco": {"sync.strategy": "diloco"},
}


def outer(momentum, lr):
    return {"sync.strategy": "diloco", "sync.outer_momentum": momentum, "sync.outer_lr": lr}


# With --periods. DiLoCo's outer_lr is 1 - outer_momentum: momentum then changes how long a step
# takes, not how far it goes, as alpha = beta = 1 and outer momentum 0 go.
OVER_PERIODS = {
    **{name: SETTINGS[name] for name in ("old_center", "fresh_center", "post_step", "post_step_1")},
    "diloco_0": outer(0.0, 1.0),
    "diloco_0.5": outer(0.5, 0.5),
    "diloco_0.9": outer(0.9, 0.1),
}
REFERENCE = "bsp"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common(parser)
    parser.add_argument("--seeds", type=int, default=5, help="seeds 1 to N")
    parser.add_argument("--epochs", type=int, help="instead of the config's")
    parser.add_argument("--iterations", type=int, help="instead of epochs")
    parser.add_argument("--settings", help=f"some of {','.join(SETTINGS)}; with --periods, of "
                        f"{REFERENCE},{','.join(OVER_PERIODS)}")
    parser.add_argument("--periods", type=periods,
                        help="a table over these T, as 1,3,8,30, instead of the config's T")
    parser.add_argument("--directory", type=pathlib.Path, default=pathlib.Path("runs/accuracy"))
    parser.add_argument("--limit-s", type=float, default=3600.0, help="for one run")
    parser.add_argument("--out", type=pathlib.Path, help="default: accuracy.json in the directory")
    return parser.parse_args()


def periods(text):
    try:
        chosen = [int(part) for part in text.split(",")]
    except ValueError:
        chosen = [0]
    if min(chosen) < 1 or len(set(chosen)) < len(chosen):
        raise argparse.ArgumentTypeError(f"{text}: expected different numbers above 0, as 1,3,8")
    return chosen


def at_period(name, period):
    return name if name == REFERENCE else f"{name}_T{period}"


def chosen_settings(arguments):
    """{name: keys}, what each run of the bench is."""
    known = SETTINGS
    if arguments.periods:
        known = {REFERENCE: SETTINGS[REFERENCE], **OVER_PERIODS}
    chosen = arguments.settings.split(",") if arguments.settings else list(known)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise BenchError(f"--settings: unknown: {', '.join(unknown)}")
    if not arguments.periods:
        return {name: known[name] for name in chosen}
    settings = {}
    for name in chosen:
        for period in arguments.periods:
            keys = {} if name == REFERENCE else {"sync.period": period}
            settings[at_period(name, period)] = {**known[name], **keys}
    return settings


def base_config(arguments):
    base = common.read_config(arguments.config, arguments.sets)
    if arguments.epochs is not None:
        base = common.changed(base, {"job.epochs": arguments.epochs, "job.iterations": 0})
    if arguments.iterations is not None:
        base = common.changed(base, {"job.iterations": arguments.iterations})
    return common.changed(base, {"job.directory": str(arguments.directory.resolve())})


def job_config(base, setting, keys, seed):
    # A later key wins: what the command line says about sync must not undo what a setting is.
    return common.changed(base, {"job.name": f"{setting}-{seed}", "job.seed": seed, **keys})


def stamp_path(config):
    return pathlib.Path(config["job"]["directory"], config["job"]["name"] + ".done")


def finished_report(config, stamp):
    """The report of an earlier run of exactly this config and program, else None."""
    path = stamp_path(config)
    if not path.exists() or path.read_text(encoding="utf-8") != stamp:
        return None
    try:
        return common.read_report(config)
    except BenchError:
        return None


def check_complete(report, config):
    """A run that was stopped writes a report too, of fewer iterations."""
    workers, batch = report["workers"], config.get("data", {}).get("batch", 32)
    samples = report["samples"]
    if samples < workers * batch * (report["iterations"] - 1):
        raise BenchError(f"{config['job']['name']}: {samples} samples in "
                         f"{report['iterations']} iterations: a worker has left early")


def one_run(program, config, limit_s):
    stamp = f"# program {digest(str(program))}\n{common.to_toml(config)}"
    report = finished_report(config, stamp)
    if report is None:
        report = common.run_job(program, config, limit_s)
        check_complete(report, config)
        stamp_path(config).write_text(stamp, encoding="utf-8")
    return report


@functools.cache
def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def spread(values):
    return statistics.stdev(values) if len(values) > 1 else 0.0


def summary(setting, reports, reference):
    """One line of the table. Differences are taken seed by seed: same data in the same order."""
    accuracies = [100 * report["test_accuracy"] for report in reports]
    pushed = statistics.mean(report["bytes_pushed"] for report in reports)
    line = {
        "setting": setting,
        "runs": len(reports),
        "accuracy_mean": statistics.mean(accuracies),
        "accuracy_min": min(accuracies),
        "accuracy_max": max(accuracies),
        "accuracy_deviation": spread(accuracies),
        "bytes_pushed": pushed,
        "difference": None,
        "difference_deviation": None,
        "bytes_ratio": None,
    }
    if reference:
        differences = [100 * (mine["test_accuracy"] - other["test_accuracy"])
                       for mine, other in zip(reports, reference)]
        line["difference"] = statistics.mean(differences)
        line["difference_deviation"] = spread(differences)
        line["bytes_ratio"] = pushed / statistics.mean(other["bytes_pushed"] for other in reference)
    return line


def summaries(reports):
    """Of all settings with a run; a setting and its reference are compared over the same seeds."""
    reference = reports.get(REFERENCE, [])
    lines = []
    for setting, mine in reports.items():
        count = min(len(mine), len(reference)) if reference else len(mine)
        if count:
            lines.append(summary(setting, mine[:count], reference[:count]))
    return lines


def row(line):
    def optional(text, *keys):
        values = [line[key] for key in keys]
        return "-" if None in values else text.format(*values)

    return [
        line["setting"],
        str(line["runs"]),
        "{accuracy_mean:.2f}".format(**line),
        "{accuracy_min:.2f}..{accuracy_max:.2f}".format(**line),
        "{accuracy_deviation:.2f}".format(**line),
        optional("{:+.2f} ± {:.2f}", "difference", "difference_deviation"),
        "{:.1f}".format(line["bytes_pushed"] / 1e6),
        optional("{:.3f}", "bytes_ratio"),
    ]


def print_over_periods(reports, chosen):
    """Accuracy, a row for each setting and a column for each T."""
    def cell(name, period):
        accuracies = [100 * report["test_accuracy"] for report in reports[at_period(name, period)]]
        return f"{statistics.mean(accuracies):.2f} ± {spread(accuracies):.2f}"

    names = [name for name in (REFERENCE, *OVER_PERIODS) if at_period(name, chosen[0]) in reports]
    common.print_table(
        ["accuracy %", *(f"T = {period}" for period in chosen)],
        [[name, *(cell(name, period) for period in chosen)] for name in names])


def bench(arguments):
    program = common.check_program(arguments.program)
    settings = chosen_settings(arguments)
    base = base_config(arguments)
    out = arguments.out or arguments.directory / "accuracy.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    reports = {setting: [] for setting in settings}
    # Seed by seed, so that a bench that is stopped has as many runs of every setting.
    for seed in range(1, arguments.seeds + 1):
        for setting, keys in settings.items():
            report = one_run(program, job_config(base, setting, keys, seed), arguments.limit_s)
            reports[setting].append(report)
            print(f"{setting}, seed {seed}: {100 * report['test_accuracy']:.2f} %", file=sys.stderr)
            common.write_json(out, {"config": base, "summary": summaries(reports), "runs": reports})
    report = next(iter(reports.values()))[0]
    print(f"{report['workers']} workers, {report['iterations']} iterations, "
          f"{report['test_samples']} test samples")
    common.print_table(
        ["setting", "runs", "accuracy %", "min..max", "std", f"points to {REFERENCE}", "MB pushed",
         f"of {REFERENCE}"],
        [row(line) for line in summaries(reports)])
    if arguments.periods:
        print()
        print_over_periods(reports, arguments.periods)
    print(f"± is the standard deviation over seeds; raw numbers: {out}")


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        bench(parse_arguments())
    except BenchError as error:
        print(f"accuracy: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("accuracy: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
