"""What netlab runs: its flags, the rows of its table, and the config of each."""

import argparse
import pathlib
import re
import typing

import common

REPLAY_CONFIG = common.ROOT / "configs" / "replay.toml"
RATE_UNITS = {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}

# The two interleavings, each alone and together, against neither: what the flags are then set to.
# The link, and with it bytes, are a fifth of the real thing's, so that two cores can carry it.
PAPER = {"backend": "replay", "profile": "resnet50", "workers": 8, "rate": "200mbit",
         "as_rate": "1gbit", "scale": 0.1, "window_bytes": 65536, "iterations": 60, "repeats": 3,
         "periods": "3"}


class Setting(typing.NamedTuple):
    """One row of the table."""
    strategy: str
    period: int
    admission: str
    name: str = ""  # of a row of a preset

    @property
    def label(self):
        row = f"{self.strategy}, T={self.period}, {self.admission}"
        return f"{self.name}: {row}" if self.name else row

    @property
    def trained(self):
        """What parameters depend on."""
        return f"{self.strategy}-T{self.period}"


def bits_per_second(text):
    """Of a rate as tc writes it."""
    found = re.fullmatch(r"([0-9.]+)([kmg]?bit)", text)
    try:
        rate = float(found[1]) * RATE_UNITS[found[2]]
    except (TypeError, ValueError):
        rate = 0.0
    if rate <= 0:
        raise argparse.ArgumentTypeError(f"{text}: a rate such as 200mbit or 1gbit is expected")
    return rate


def rate_text(text):
    bits_per_second(text)
    return text


def positive(text):
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: a number above 0 is expected")
    return value


def parse_arguments(description, words=None):
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common(parser)
    parser.add_argument("--preset", choices=["paper"], help="paper: the two interleavings alone "
                        f"and together; other flags change what it sets: {PAPER}")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--rate", type=rate_text, default="200mbit",
                        help="of the shared link, as tc writes it")
    parser.add_argument("--limit-bytes", type=int, default=262144, help="length of its queue")
    parser.add_argument("--burst-bytes", type=int, default=16384)
    parser.add_argument("--congestion", default="reno", help="TCP's congestion control; reno is "
                        "the one that every kernel allows in a namespace")
    parser.add_argument("--strategies", default="bsp,easgd,interleaved")
    parser.add_argument("--admissions", default="none,slots")
    parser.add_argument("--periods", default="3", help="T, several with commas; bsp always has 1")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--window-bytes", type=int, help="wire.window_bytes of the config")
    parser.add_argument("--backend", choices=["cpu", "replay"], default="cpu",
                        help="replay: --config is configs/replay.toml unless given")
    parser.add_argument("--profile", help="replay: of layer times and sizes; the config's")
    parser.add_argument("--scale", type=positive, help="replay: times and bytes are multiplied by "
                        "this, beside what --as-rate does; as the config has it")
    parser.add_argument("--as-rate", type=rate_text, help="replay, with --scale: bytes are also "
                        "multiplied by --rate over this, so that the link's need against compute "
                        "is that of a link of this rate")
    parser.add_argument("--model", default="lenet5", choices=["lenet5", "mlp"])
    parser.add_argument("--hidden", default="1024,1024", help="of mlp")
    parser.add_argument("--batch", type=int, default=128, help="per worker")
    parser.add_argument("--limit-s", type=float, default=600.0, help="for one run")
    parser.add_argument("--directory", type=pathlib.Path,
                        help="keep configs, logs and reports here; must be new")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("netlab.json"))
    if parser.parse_known_args(words)[0].preset == "paper":
        parser.set_defaults(**PAPER)
    if parser.parse_known_args(words)[0].backend == "replay":
        parser.set_defaults(config=REPLAY_CONFIG)
    return parser.parse_args(words)


def training_overrides(arguments):
    return {
        "model.name": arguments.model,
        "model.hidden": [int(width) for width in arguments.hidden.split(",")],
        "data.batch": arguments.batch,
        "data.test_samples": 1000,  # accuracy is another bench's
    }


def replay_overrides(arguments):
    overrides = {}
    if arguments.profile:
        overrides["backend.profile"] = arguments.profile
    if arguments.scale:
        real_rate = arguments.as_rate or arguments.rate
        overrides["backend.time_scale"] = arguments.scale
        overrides["backend.bytes_scale"] = (
            arguments.scale * bits_per_second(arguments.rate) / bits_per_second(real_rate))
    return overrides


def base_config(arguments, directory):
    overrides = {
        "job.directory": str(directory),
        "job.iterations": arguments.iterations,
        "cluster.workers": arguments.workers,
    }
    replays = arguments.backend == "replay"
    overrides.update((replay_overrides if replays else training_overrides)(arguments))
    if arguments.window_bytes is not None:
        overrides["wire.window_bytes"] = arguments.window_bytes
    if arguments.preset == "paper":
        # Else T=1 would have two groups, and the rows would differ in more than they say.
        overrides["groups.count"] = 2 * max(periods_of(arguments))
    config = common.changed(common.read_config(arguments.config, []), overrides)
    return common.changed(config, dict(common.parse_set(text) for text in arguments.sets))


def periods_of(arguments):
    return [int(period) for period in arguments.periods.split(",")]


def settings(arguments):
    """The rows of the table, in order."""
    if arguments.preset == "paper":
        rows = [Setting("easgd", 1, "none", "plain")]
        for period in periods_of(arguments):
            rows.append(Setting("interleaved", period, "none", "inter"))
        rows.append(Setting("easgd", 1, "grants", "intra"))
        for period in periods_of(arguments):
            rows.append(Setting("interleaved", period, "grants", "both"))
        return rows
    rows = [Setting(strategy, 1 if strategy == "bsp" else period, admission)
            for strategy in arguments.strategies.split(",")
            for period in periods_of(arguments)
            for admission in arguments.admissions.split(",")]
    return list(dict.fromkeys(rows))  # bsp once, however many periods


def job_config(config, setting, name):
    return common.changed(config, {"job.name": name, "sync.strategy": setting.strategy,
                                   "sync.period": setting.period,
                                   "slots.admission": setting.admission})


def link_of(arguments):
    return {"rate": arguments.rate, "limit_bytes": arguments.limit_bytes,
            "burst_bytes": arguments.burst_bytes, "congestion": arguments.congestion}


def model_text(arguments):
    if arguments.backend == "cpu":
        return f"{arguments.model}, batch {arguments.batch}"
    real = f" as on {arguments.as_rate}" if arguments.as_rate else ""
    return f"replay of {arguments.profile or 'the profile of the config'}, " \
           f"scale {arguments.scale or 'of the config'}{real}"
