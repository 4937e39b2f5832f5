#!/usr/bin/python3
"""A training step of LeNet-5 in the engine and in PyTorch, one compute thread each.

    /usr/bin/python3 tests/bench/step_time.py --repeats 7

The engine's side is `stagger run` with one worker: its compute (forward, backward, local step), and
the whole iteration, with the PS on the same machine. PyTorch's side is the plain loop that
everybody writes, over the same images. Pairs: engine, PyTorch, engine, PyTorch.

Exits with 77 where PyTorch is missing.
"""

import argparse
import ctypes
import gzip
import os
import pathlib
import resource
import signal
import sys
import tempfile
import time

import common
from common import BenchError

os.environ.update(common.ONE_THREAD)  # read by the libraries when they are loaded

try:
    import numpy
    import torch
except ImportError as missing:
    print(f"step_time: skipped: {missing}", file=sys.stderr)
    sys.exit(77)

WARM_UP = 50
SPREAD_MAX = 1.15  # slowest to fastest repeat of one side, on a quiet machine


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common(parser)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--limit-s", type=float, default=600.0, help="for one run of the engine")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("step_time.json"))
    return parser.parse_args()


def lenet5():
    """The engine's lenet5 (tests/golden compares the two number by number)."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def read_idx(path):
    opened = gzip.open(path, "rb") if str(path).endswith(".gz") else open(path, "rb")
    with opened as file:
        data = file.read()
    sizes = numpy.frombuffer(data, dtype=">u4", count=data[3], offset=4).astype(int)
    return numpy.frombuffer(data, dtype=numpy.uint8, offset=4 + 4 * data[3]).reshape(sizes)


def training_data(config):
    data = config["data"]
    images = read_idx(data["train_images"]).astype(numpy.float32) / 255
    images = (images - data.get("mean", 0.286)) / data.get("deviation", 0.353)
    labels = read_idx(data["train_labels"]).astype(numpy.int64)
    return torch.from_numpy(images[:, None].astype(numpy.float32)), torch.from_numpy(labels)


def keep_freed_memory():
    """Tells glibc not to give memory back to the kernel.

    By default it may return every activation's memory and fault it in again, 800 pages in each
    step; whether it does hangs on how the heap happens to lie. Such a PyTorch takes up to five
    times as long, and a comparison with it would measure malloc.
    """
    trim_threshold, mmap_threshold = -1, -3
    libc = ctypes.CDLL(None)
    if not (libc.mallopt(mmap_threshold, 32 << 20) and libc.mallopt(trim_threshold, 1 << 30)):
        raise BenchError("mallopt: refused, so PyTorch's times would not be steady")


def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def torch_steps(config, inputs, labels, iterations):
    """Means over the iterations after some that warm caches up."""
    torch.manual_seed(1)
    model = lenet5()
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=config["optimizer"].get("lr", 0.05),
        momentum=config["optimizer"].get("momentum", 0.0),
        weight_decay=config["optimizer"].get("weight_decay", 0.0))
    order = torch.randperm(len(labels))
    batch = config["data"]["batch"]
    began, began_cpu, faults = 0.0, 0.0, 0
    for step in range(WARM_UP + iterations):
        if step == WARM_UP:
            began, began_cpu, faults = time.perf_counter(), time.process_time(), page_faults()
        first = step * batch % (len(labels) - batch)
        rows = order[first:first + batch]
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
        loss.backward()
        optimizer.step()
    return {
        "pytorch_ms": 1e3 * (time.perf_counter() - began) / iterations,
        "pytorch_cpu_ms": 1e3 * (time.process_time() - began_cpu) / iterations,
        "pytorch_page_faults": (page_faults() - faults) / iterations,
    }


def engine_config(arguments, directory):
    config = common.read_config(arguments.config, arguments.sets)
    return common.changed(config, {
        "job.directory": str(directory),
        "job.iterations": arguments.iterations,
        "model.name": "lenet5",
        "data.batch": arguments.batch,
        "data.test_samples": 1000,
        "cluster.workers": 1,
        "slots.admission": "none",
    })


def pair(arguments, program, config, tensors, repeat):
    """Both sides, one right after the other."""
    report = common.run_job(
        program, common.changed(config, {"job.name": f"step_time-{repeat}"}), arguments.limit_s)
    engine = 1e3 * report["compute_seconds"] / report["iterations"]
    pytorch = torch_steps(config, *tensors, arguments.iterations)
    return {
        "engine_ms": engine,
        "engine_iteration_ms": 1e3 * report["wall_seconds"] / report["iterations"],
        **pytorch,
        "engine_to_pytorch": engine / pytorch["pytorch_ms"],
    }


def bench(arguments, directory):
    torch.set_num_threads(1)
    keep_freed_memory()
    program = common.check_program(arguments.program)
    config = engine_config(arguments, directory)
    tensors = training_data(config)
    load = common.load_before(2)
    pairs = []
    for repeat in range(arguments.repeats):
        pairs.append(pair(arguments, program, config, tensors, repeat))
        print("engine {engine_ms:.3f} ms, PyTorch {pytorch_ms:.3f} ms".format(**pairs[-1]),
              file=sys.stderr)
        common.write_json(arguments.out, {
            "batch": arguments.batch, "iterations": arguments.iterations,
            "torch": f"{torch.__version__}\n{torch.__config__.show()}",
            "load_before": load, "pairs": pairs})
    median = common.medians(pairs)
    ratios = [one["engine_to_pytorch"] for one in pairs]
    print(f"LeNet-5, batch {arguments.batch}, one thread, medians of {len(pairs)} pairs")
    common.print_table(["", "ms a step", "samples/s"], [
        [name, f"{median[key]:.3f}", f"{1e3 * arguments.batch / median[key]:.0f}"]
        for name, key in (("engine, compute", "engine_ms"),
                          ("engine, whole iteration", "engine_iteration_ms"),
                          (f"PyTorch {torch.__version__}", "pytorch_ms"))])
    print(f"engine's compute / PyTorch: median {median['engine_to_pytorch']:.2f}, "
          f"{min(ratios):.2f}..{max(ratios):.2f}; raw numbers: {arguments.out}")
    sides = [[one[key] for one in pairs] for key in ("engine_ms", "pytorch_ms")]
    if any(max(side) > SPREAD_MAX * min(side) for side in sides):
        print("step_time: the same step took very different times: the machine was not quiet, so "
              "the ratio is not a figure to quote", file=sys.stderr)


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix="stagger-step-time-") as directory:
            bench(parse_arguments(), pathlib.Path(directory))
    except BenchError as error:
        print(f"step_time: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("step_time: stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
