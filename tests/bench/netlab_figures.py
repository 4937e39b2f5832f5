"""What netlab measures of a run: from samples of the link, the report, and the plan. Pure."""

# A full packet's bytes for the queue (Ethernet's 14 among them), of which 1448 are payload.
WIRE_SHARE = 1514 / 1448
WINDOW_S = 0.005

COLUMNS = [
    # key, head, format
    ("iteration_ms", "iter ms", "{:.2f}"),
    ("iteration_per_bound", "/bound", "{:.2f}"),
    ("push_p50_ms", "push p50", "{:.2f}"),
    ("push_p99_ms", "push p99", "{:.2f}"),
    ("ready_to_done_p50_ms", "done p50", "{:.2f}"),
    ("ingress_peak_per_mean", "in pk/mn", "{:.2f}"),
    ("offered_peak_per_mean", "off pk/mn", "{:.2f}"),
    ("drops", "drops", "{:.0f}"),
    ("drop_share", "drop %", "{:.2%}"),
    ("retransmissions", "resent", "{:.0f}"),
    ("timeouts", "RTOs", "{:.0f}"),
    ("backlog_peak_bytes", "peak B", "{:.0f}"),
    ("backlog_mean_bytes", "mean B", "{:.0f}"),
    ("pushes_in_flight_max", "in flight", "{:.0f}"),
    ("link_use", "link use", "{:.0%}"),
    ("exposed_seconds", "exposed s", "{:.2f}"),
    ("lateness_p99_us", "late p99 us", "{:.0f}"),
]


def busy_samples(samples):
    """While the middle 98 % of the run's bytes went through."""
    total = samples[-1].sent if samples else 0
    return [sample for sample in samples if 0.01 * total <= sample.sent <= 0.99 * total]


def queue_figures(samples):
    """Backlog and use of the link while it was busy."""
    busy = busy_samples(samples)
    if len(busy) < 2:
        return {"backlog_peak_bytes": None, "backlog_mean_bytes": None, "bytes_per_second": None}
    return {
        "backlog_peak_bytes": max(sample.backlog for sample in samples),
        "backlog_mean_bytes": sum(sample.backlog for sample in busy) / len(busy),
        "bytes_per_second": (busy[-1].sent - busy[0].sent) / (busy[-1].at - busy[0].at),
    }


def windows(samples, count):
    """[(seconds, bytes)] of windows of WINDOW_S or, where a sample came late, longer."""
    found = []
    begin = samples[0]
    for sample in samples[1:]:
        if sample.at - begin.at >= WINDOW_S:
            found.append((sample.at - begin.at, count(sample) - count(begin)))
            begin = sample
    return found


def load_figures(name, samples, count):
    """Bytes per second in the fullest window of those while the link was busy, and their mean."""
    busy = busy_samples(samples)
    found = windows(busy, count) if len(busy) >= 2 else []
    seconds, total = sum(window[0] for window in found), sum(window[1] for window in found)
    if total <= 0:
        return {f"{name}_peak": None, f"{name}_mean": None, f"{name}_peak_per_mean": None}
    peak, mean = max(some / length for length, some in found), total / seconds
    return {f"{name}_peak": peak, f"{name}_mean": mean, f"{name}_peak_per_mean": peak / mean}


def link_figures(samples):
    """Of the queue, and of the bytes behind it (ingress) and before it (offered)."""
    busy = busy_samples(samples)
    late = [window for window in (windows(busy, lambda sample: 0) if len(busy) >= 2 else [])
            if window[0] > 2 * WINDOW_S]
    return {
        **queue_figures(samples),
        **load_figures("ingress", samples, lambda sample: sample.ingress),
        **load_figures("offered", samples, lambda sample: sample.offered),
        "windows_late": len(late),  # a burst in such a window shows as less than it was
    }


def report_figures(report):
    # Without slots nothing is late, which is not "in time".
    slots = report["admission"].startswith("slots")
    return {
        "pushes_in_flight_max": report["pushes_in_flight_max"],
        "iteration_ms": 1e-3 * report["iteration_us"]["mean"],
        "iteration_p50_ms": 1e-3 * report["iteration_us"]["p50"],
        "push_p50_ms": 1e-3 * report["push_us"]["p50"],
        "push_p99_ms": 1e-3 * report["push_us"]["p99"],
        "ready_to_done_p50_ms": 1e-3 * report["ready_to_done_us"]["p50"],
        "ready_to_done_p99_ms": 1e-3 * report["ready_to_done_us"]["p99"],
        "exposed_seconds": report["exposed_seconds"],
        "compute_seconds": report["compute_seconds"],
        "lateness_p50_us": report["slot_lateness_us"]["p50"] if slots else None,
        "lateness_p99_us": report["slot_lateness_us"]["p99"] if slots else None,
    }


def payload_rate(bytes_per_second):
    """Of pushes, in bits per second, on a link of that rate."""
    return 8 * bytes_per_second / WIRE_SHARE


def bound_of(plan, bytes_per_second):
    """{compute_ms, need_ms, bound_ms} of an iteration, from `stagger plan --json`.

    old_center waits for nothing: its iterations last as long as compute, or as all workers' pushes
    need the link. Other rules wait, and the bound is what the plan predicts.
    """
    compute = 1e-3 * plan["prediction"]["compute_us"]
    size = sum(group["bytes"] for group in plan["groups"])
    need = (1e3 * plan["workers"] * size * WIRE_SHARE /
            (bytes_per_second * plan["period"]))
    waits = plan["strategy"] == "bsp" or plan["rule"] != "old_center"
    predicted = 1e-3 * plan["prediction"]["iteration_us"]
    return {"compute_ms": compute, "need_ms": need,
            "bound_ms": predicted if waits else max(compute, need)}
