#!/usr/bin/env python3
"""Writes the profiles of this folder: layers, sizes and computed times of well-known networks.

    python3 configs/profiles/make_profiles.py [FOLDER]        default: this one

README.md says by which formula.
"""

import pathlib
import sys

FLOPS_PER_SECOND = 10e12  # what the processor reaches in products, not what its maker prints
BYTES_PER_SECOND = 500e9  # of its memory
LAUNCH_S = 10e-6  # before each kernel
FLOAT_BYTES = 4

TOTALS = {
    "resnet50": 25_557_032,
    "vgg16": 138_357_544,
    "bert_base": 109_482_240,
    "gpt2_small": 124_439_808,
}


def kernel(flops, touched_bytes):
    """Bound by arithmetic or by memory, whichever is slower."""
    return max(flops / FLOPS_PER_SECOND, touched_bytes / BYTES_PER_SECOND) + LAUNCH_S


class Network:
    def __init__(self):
        self.rows = []

    def add(self, name, parameters, forward, backward):
        self.rows.append((name, parameters, forward, backward))

    def product(self, name, parameters, macs, touched, pointwise=0):
        """A convolution or full connection and what follows it value by value.

        Backward is one product for the weights' gradient and one for the input's, which the first
        layer of a network does not need; passing over values takes twice as long as forward.
        """
        first = not self.rows
        forward = kernel(2 * macs, touched)
        backward = forward if first else 2 * forward
        if pointwise:
            forward += kernel(0, pointwise)
            backward += 2 * kernel(0, pointwise)
        self.add(name, parameters, forward, backward)


def convolution(network, name, inputs, outputs, size, side, batch, normalised):
    """`side`: of the output. Batch normalisation has two vectors, and no bias stands before it."""
    weights = inputs * outputs * size * size
    parameters = weights + (2 * outputs if normalised else outputs)
    out_bytes = batch * outputs * side * side * FLOAT_BYTES
    touched = weights * FLOAT_BYTES + 2 * out_bytes
    # Read and written by the activation, and by the normalisation before it.
    pointwise = (4 if normalised else 2) * out_bytes
    network.product(name, parameters, batch * weights * side * side, touched, pointwise)


def full(network, name, inputs, outputs, rows, extra_macs=0, pointwise=0):
    weights = inputs * outputs
    touched = (weights + rows * (inputs + outputs)) * FLOAT_BYTES
    network.product(name, weights + outputs, rows * weights + extra_macs, touched, pointwise)


def resnet50(batch=64):
    network = Network()
    convolution(network, "conv1", 3, 64, 7, 112, batch, True)
    inputs = 64
    for stage, (blocks, width, side) in enumerate(
            [(3, 64, 56), (4, 128, 28), (6, 256, 14), (3, 512, 7)], start=1):
        for block in range(blocks):
            name = f"layer{stage}.{block}"
            # The 3x3 convolution of a stage's first block halves the picture.
            side_in = 2 * side if block == 0 and stage > 1 else side
            convolution(network, f"{name}.conv1", inputs, width, 1, side_in, batch, True)
            convolution(network, f"{name}.conv2", width, width, 3, side, batch, True)
            convolution(network, f"{name}.conv3", width, 4 * width, 1, side, batch, True)
            if block == 0:
                convolution(network, f"{name}.downsample", inputs, 4 * width, 1, side, batch, True)
            inputs = 4 * width
    full(network, "fc", 2048, 1000, batch)
    return network


def vgg16(batch=64):
    network = Network()
    inputs, side = 3, 224
    for stage, (count, outputs) in enumerate([(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)], start=1):
        for index in range(1, count + 1):
            convolution(network, f"conv{stage}_{index}", inputs, outputs, 3, side, batch, False)
            inputs = outputs
        side //= 2
    for index, (width, outputs) in enumerate([(512 * 7 * 7, 4096), (4096, 4096), (4096, 1000)], start=6):
        full(network, f"fc{index}", width, outputs, batch)
    return network


WIDTH, BLOCKS = 768, 12


def embedding(network, name, entries, rows):
    """Looks up rows; its gradient is dense, so backward writes the whole table."""
    moved = 2 * rows * WIDTH * FLOAT_BYTES
    network.add(name, entries * WIDTH, kernel(0, moved),
                kernel(0, moved + entries * WIDTH * FLOAT_BYTES))


def normalisation(network, name, rows):
    moved = 2 * rows * WIDTH * FLOAT_BYTES
    network.add(name, 2 * WIDTH, kernel(0, moved), 2 * kernel(0, moved))


def bert_base(sequences=32, length=128):
    network, rows = Network(), sequences * length
    for name, entries in (("word", 30522), ("position", 512), ("type", 2)):
        embedding(network, f"embeddings.{name}", entries, rows)
    normalisation(network, "embeddings.norm", rows)
    attention = 2 * sequences * length * length * WIDTH  # scores, and their product with the values
    for block in range(BLOCKS):
        name = f"layer{block}"
        for part in ("query", "key", "value"):
            full(network, f"{name}.{part}", WIDTH, WIDTH, rows)
        full(network, f"{name}.out", WIDTH, WIDTH, rows, extra_macs=attention)
        normalisation(network, f"{name}.norm1", rows)
        full(network, f"{name}.up", WIDTH, 4 * WIDTH, rows, pointwise=8 * rows * WIDTH * FLOAT_BYTES)
        full(network, f"{name}.down", 4 * WIDTH, WIDTH, rows)
        normalisation(network, f"{name}.norm2", rows)
    full(network, "pooler", WIDTH, WIDTH, sequences)
    return network


def gpt2_small(sequences=4, length=1024):
    network, rows, entries = Network(), sequences * length, 50257
    embedding(network, "wte", entries, rows)
    embedding(network, "wpe", 1024, rows)
    attention = 2 * sequences * length * length * WIDTH
    for block in range(BLOCKS):
        name = f"h{block}"
        normalisation(network, f"{name}.ln_1", rows)
        full(network, f"{name}.c_attn", WIDTH, 3 * WIDTH, rows)
        full(network, f"{name}.attn_proj", WIDTH, WIDTH, rows, extra_macs=attention)
        normalisation(network, f"{name}.ln_2", rows)
        full(network, f"{name}.c_fc", WIDTH, 4 * WIDTH, rows, pointwise=8 * rows * WIDTH * FLOAT_BYTES)
        full(network, f"{name}.mlp_proj", 4 * WIDTH, WIDTH, rows)
    normalisation(network, "ln_f", rows)
    # Its weights are wte's: it has a time and nothing to send, and wte's gradient is whole only when
    # the backward pass has come to the very first layer.
    macs = rows * WIDTH * entries
    network.product("lm_head", 0, macs, (entries * WIDTH + rows * entries) * FLOAT_BYTES)
    return network


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for make in (resnet50, vgg16, bert_base, gpt2_small):
        rows = make().rows
        total = sum(parameters for _, parameters, _, _ in rows)
        if total != TOTALS[make.__name__]:
            sys.exit(f"{make.__name__}: {total} parameters, expected {TOTALS[make.__name__]}")
        lines = ["name,params,bytes,t_fwd_us,t_bwd_us"]
        lines += [f"{name},{parameters},{parameters * FLOAT_BYTES},{1e6 * forward:.1f},{1e6 * backward:.1f}"
                  for name, parameters, forward, backward in rows]
        (folder / f"{make.__name__}.csv").write_text("\n".join(lines) + "\n")
        times = [sum(row[index] for row in rows) for index in (2, 3)]
        print("{}: {} layers, {} parameters, forward {:.1f} ms, backward {:.1f} ms".format(
            make.__name__, len(rows), total, *(1e3 * time for time in times)))


if __name__ == "__main__":
    main()
