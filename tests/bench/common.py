"""What the benches share: configs, the program, medians, tables.

A bench never edits a config that people use: it reads one, changes keys, and writes the result
beside the run, so that each run can be repeated with `stagger run`.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "engine" / "stagger"
CONFIG = ROOT / "configs" / "quickstart.toml"
# One thread per role, as a process per core has it; libraries would otherwise start one per core.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class BenchError(Exception):
    """Something outside the bench went wrong; the message is for people."""


def add_common(parser):
    parser.add_argument("--program", type=pathlib.Path, default=PROGRAM)
    parser.add_argument("--config", type=pathlib.Path, default=CONFIG)
    parser.add_argument("--set", dest="sets", action="append", default=[],
                        metavar="TABLE.KEY=VALUE",
                        help="override a key of the config for all runs (repeatable)")


def check_program(program):
    if not os.access(program, os.X_OK):
        raise BenchError(f"{program} is not there; build it (tools/build) or give --program")
    return program.resolve()


def load_before(processes):
    """The machine's load before a bench; says so when that, or too few cores, spoils times."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > 0.5:
        print(f"bench: load {load:.1f} before the start: others are at work here, so no time below "
              "is a figure to quote", file=sys.stderr)
    if processes > cores:
        print(f"bench: {processes} busy processes share {cores} cores: times hold their waits for "
              "a core", file=sys.stderr)
    return load


def parse_set(text):
    key, equals, value = text.partition("=")
    if not equals or "." not in key:
        raise BenchError(f"--set {text}: expected table.key=value")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value  # a bare word


def read_config(path, sets):
    """The config as {table: {key: value}}, with the overrides of the command line."""
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BenchError(f"{path}: {error}") from error
    return changed(config, dict(parse_set(text) for text in sets))


def changed(config, overrides):
    """A copy with {"table.key": value} applied."""
    copy = {table: dict(keys) for table, keys in config.items()}
    for name, value in overrides.items():
        table, _, key = name.partition(".")
        copy.setdefault(table, {})[key] = value
    return copy


def to_toml(config):
    """TOML of strings, numbers, booleans and lists of these; in those, JSON and TOML agree."""
    lines = []
    for table, keys in config.items():
        lines.append(f"[{table}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        lines.append("")
    return "\n".join(lines)


def write_config(path, config):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_toml(config), encoding="utf-8")
    return path


def environment():
    return {**os.environ, **ONE_THREAD}


def last_line(path):
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else []
    lines = [line for line in lines if line.strip()]
    return f"{lines[-1]} ({path})" if lines else f"(nothing in {path})"


def read_report(config):
    """report.json of the run that this config describes."""
    path = pathlib.Path(config["job"]["directory"], config["job"]["name"], "report.json")
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BenchError(f"{path}: {error}") from error
    if report["workers_lost"]:
        raise BenchError(f"{path}: workers were lost: {report['workers_lost']}")
    return report


def run_job(program, config, limit_s, prefix=()):
    """`stagger run` of the config; its report. `prefix` may put it into a namespace."""
    folder = pathlib.Path(config["job"]["directory"])
    name = config["job"]["name"]
    path = write_config(folder / f"{name}.toml", config)
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*prefix, str(program), "run", str(path), "--json"],
            stdout=subprocess.DEVNULL, stderr=output, env=environment(), start_new_session=True)
        try:
            code = process.wait(limit_s)
        except BaseException as error:
            stop(process)
            if isinstance(error, subprocess.TimeoutExpired):
                raise BenchError(f"{path}: not done after {limit_s} s") from error
            raise
    if code != 0:
        raise BenchError(f"{path}: exit code {code}: {last_line(log)}")
    return read_report(config)


def stop(process, limit_s=15.0):
    """Asks a process to end, so that it ends its own children; then makes it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def write_json(path, value):
    """Written aside first: a bench that is stopped leaves the last whole file."""
    aside = path.with_name(path.name + ".new")
    aside.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    aside.replace(path)


def medians(rows):
    """Key by key, over dicts of numbers with the same keys; None where a row has none."""
    result = {}
    for key in rows[0]:
        values = [row[key] for row in rows if row[key] is not None]
        result[key] = statistics.median(values) if values else None
    return result


def print_table(heads, rows):
    """Left-aligned first column, numbers to the right."""
    cells = [heads, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    for row in cells:
        first = row[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  ".join([first, *rest]).rstrip())
