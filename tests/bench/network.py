"""Hosts of a cluster as network namespaces, and the queue in which its pushes meet.

    worker 0 --\\
    worker 1 ---- bridge == shaped port == PS
    worker 2 --/

The port of the bridge towards the PS is shaped (tbf): that is the link all workers share, and its
queue is as short as a switch's. Everything lives in namespaces of this process; nothing touches the
machine's own network.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
import typing

from common import BenchError

PS_ADDRESS = "10.77.0.1"
WORKERS_MAX = 200
SAMPLE_S = 0.005

CLONE_NEWNET = 0x40000000
RTM_NEWQDISC, RTM_GETQDISC, NLMSG_DONE, NLMSG_ERROR = 36, 38, 3, 2
RTM_NEWSTATS, RTM_GETSTATS, IFLA_STATS_LINK_64 = 92, 94, 1
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
TCA_STATS2, TCA_STATS_BASIC, TCA_STATS_QUEUE = 7, 1, 3
TC_H_ROOT = 0xFFFFFFFF


def command(*words):
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(map(str, words))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def enter_namespace(name):
    """Moves the calling thread, and no other, into a namespace."""
    descriptor = os.open(f"/run/netns/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET) != 0:
            raise BenchError(f"setns {name}: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(descriptor)


class NamespaceThread(threading.Thread):
    """Calls a step again and again inside a namespace. What the step raised, finish raises."""

    def __init__(self, namespace, interval_s, open_step):
        super().__init__(daemon=True)
        self.namespace = namespace
        self.interval_s = interval_s
        self.open_step = open_step
        self.stopped = threading.Event()
        self.failure = None

    def run(self):
        try:
            enter_namespace(self.namespace)
            step = self.open_step()
            while not self.stopped.wait(self.interval_s):
                step()
            step()
        except Exception as error:  # handed over to whoever calls finish()
            self.failure = error

    def finish(self):
        self.stopped.set()
        self.join()
        if self.failure:
            raise self.failure


@contextlib.contextmanager
def repeated(namespace, interval_s, open_step):
    thread = NamespaceThread(namespace, interval_s, open_step)
    thread.start()
    try:
        yield
    finally:
        thread.finish()


def attributes(data):
    """Netlink attributes as {type: payload}."""
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3:]
    return found


class Netlink:
    """Counters of the kernel, cheap enough to be read every few milliseconds."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.socket.bind((0, 0))

    def dump(self, request, answer, body):
        """The bodies of all messages that answer a request."""
        header = struct.pack("=IHHII", 16 + len(body), request, NLM_F_REQUEST | NLM_F_DUMP, 1, 0)
        self.socket.send(header + body)
        found = []
        while True:
            data = self.socket.recv(1 << 16)
            while len(data) >= 16:
                length, kind = struct.unpack_from("=IH", data)
                if kind == NLMSG_ERROR:
                    raise BenchError(f"netlink refused request {request}")
                if kind == NLMSG_DONE:
                    return found
                if kind == answer:
                    found.append(data[16:length])
                data = data[(length + 3) & ~3:]


class QueueReader:
    """Root queue of one device."""

    def __init__(self, netlink, device):
        self.netlink = netlink
        self.index = socket.if_nametoindex(device)

    def read(self):
        """(bytes, packets, drops, backlog) since the queue was made."""
        tcmsg = struct.pack("=BxxxiIII", socket.AF_UNSPEC, self.index, 0, 0, 0)
        for message in self.netlink.dump(RTM_GETQDISC, RTM_NEWQDISC, tcmsg):
            found = self.parse(message)
            if found:
                return found
        raise BenchError("the shaped queue is gone")

    def parse(self, message):
        _, index, _, parent, _ = struct.unpack_from("=BxxxiIII", message)
        if index != self.index or parent != TC_H_ROOT:
            return None
        statistics = attributes(attributes(message[20:])[TCA_STATS2])
        sent, packets = struct.unpack_from("=QI", statistics[TCA_STATS_BASIC])
        _, backlog, drops, _, _ = struct.unpack_from("=IIIII", statistics[TCA_STATS_QUEUE])
        return sent, packets, drops, backlog


class PortReader:
    """What the bridge's ports have carried."""

    def __init__(self, netlink):
        self.netlink = netlink
        names = {index: name for index, name in socket.if_nameindex()}
        self.ps = next(index for index, name in names.items() if name == "ps")
        self.workers = {index for index, name in names.items() if name.startswith("worker")}

    def read(self):
        """(bytes sent out of the port to the PS, bytes that came from all workers)."""
        sent = offered = 0
        wanted = struct.pack("=BxHII", socket.AF_UNSPEC, 0, 0, 1 << (IFLA_STATS_LINK_64 - 1))
        for message in self.netlink.dump(RTM_GETSTATS, RTM_NEWSTATS, wanted):
            _, index, _ = struct.unpack_from("=BxxxII", message)
            _, _, rx_bytes, tx_bytes = struct.unpack_from(
                "=QQQQ", attributes(message[12:])[IFLA_STATS_LINK_64])
            if index == self.ps:
                sent = tx_bytes
            elif index in self.workers:
                offered += rx_bytes
        return sent, offered


class Sample(typing.NamedTuple):
    """Counters count from the start of the queue (sent) or of the network (ingress, offered)."""
    at: float  # seconds
    sent: int  # bytes that the shaped queue has let go
    backlog: int  # bytes in it
    ingress: int  # bytes behind the port: the PS's
    offered: int  # bytes before it: from all workers


class Network:
    """The namespaces, from __enter__ to __exit__. PS: 10.77.0.1; worker i: 10.77.0.(10+i)."""

    def __init__(self, workers, link):
        if not 1 <= workers <= WORKERS_MAX:
            raise BenchError(f"--workers {workers}: 1 to {WORKERS_MAX}")
        prefix = f"stagger-{os.getpid()}"
        self.link = link
        self.bridge = f"{prefix}-bridge"
        self.ps = f"{prefix}-ps"
        self.workers = [f"{prefix}-worker{i}" for i in range(workers)]
        self.made = []

    def __enter__(self):
        try:
            for name in (self.bridge, self.ps, *self.workers):
                self.made.append(name)
                command("ip", "netns", "add", name)
            command("ip", "-n", self.bridge, "link", "add", "bridge", "type", "bridge")
            command("ip", "-n", self.bridge, "link", "set", "bridge", "up")
            self.join_host(self.ps, "ps", PS_ADDRESS)
            for i, name in enumerate(self.workers):
                self.join_host(name, f"worker{i}", f"10.77.0.{10 + i}")
            self.shape()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # A second ctrl-C while the first one is cleaned up would leave namespaces behind.
        with signals_held():
            for name in reversed(self.made):
                subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
            self.made = []

    def join_host(self, name, port, address):
        command("ip", "-n", self.bridge, "link", "add", port, "type", "veth",
                "peer", "name", "eth0", "netns", name)
        command("ip", "-n", self.bridge, "link", "set", port, "master", "bridge", "up")
        command("ip", "-n", name, "link", "set", "lo", "up")
        command("ip", "-n", name, "address", "add", f"{address}/24", "dev", "eth0")
        command("ip", "-n", name, "link", "set", "eth0", "up")
        # Else one "packet" would be 64 KiB, as long as the whole queue.
        for namespace, device in ((self.bridge, port), (name, "eth0")):
            command("ip", "netns", "exec", namespace, "ethtool", "-K", device,
                    "tso", "off", "gso", "off", "gro", "off")
        settings = {"tcp_congestion_control": self.link["congestion"],
                    # No run may start from what the kernel remembers of the run before.
                    "tcp_no_metrics_save": 1}
        for key, value in settings.items():
            command("ip", "netns", "exec", name, "sysctl", "-q", "-w", f"net.ipv4.{key}={value}")

    def shape(self):
        """Makes the queue anew, with its counters at 0."""
        tc = ["ip", "netns", "exec", self.bridge, "tc", "qdisc"]
        if json.loads(command(*tc[:-1], "-j", "qdisc", "show", "dev", "ps"))[0]["kind"] == "tbf":
            command(*tc, "del", "dev", "ps", "root")
        command(*tc, "add", "dev", "ps", "root", "tbf", "rate", self.link["rate"],
                "burst", self.link["burst_bytes"], "limit", self.link["limit_bytes"])

    def queue(self):
        """Counters of the shaped queue, as tc tells them."""
        shown = json.loads(command("ip", "netns", "exec", self.bridge,
                                   "tc", "-s", "-j", "qdisc", "show", "dev", "ps"))
        return next(queue for queue in shown if queue["kind"] == "tbf")

    def tcp_counters(self, hosts):
        """Segments sent again and retransmission timeouts, over the kernels of these hosts."""
        total = {"RetransSegs": 0, "TCPTimeouts": 0}
        for name in hosts:
            text = command(
                "ip", "netns", "exec", name, "cat", "/proc/net/snmp", "/proc/net/netstat")
            lines = [line.split() for line in text.split("\n") if line]
            for keys, values in zip(lines[::2], lines[1::2]):
                for key, value in zip(keys[1:], values[1:]):
                    if key in total and keys[0] in ("Tcp:", "TcpExt:"):
                        total[key] += int(value)
        return total

    @contextlib.contextmanager
    def sampled_queue(self):
        """A list that fills with Samples while the block runs."""
        samples = []

        def open_step():
            netlink = Netlink()
            queue, ports = QueueReader(netlink, "ps"), PortReader(netlink)

            def step():
                sent, _, _, backlog = queue.read()
                samples.append(Sample(time.monotonic(), sent, backlog, *ports.read()))
            return step

        with repeated(self.bridge, SAMPLE_S, open_step):
            yield samples


@contextlib.contextmanager
def signals_held():
    old = {number: signal.signal(number, signal.SIG_IGN)
           for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def unavailable(link):
    """Why namespaces cannot be made here; None when they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in ("ip", "tc", "ethtool", "sysctl") if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: iproute2, ethtool, procps)"
    try:
        with Network(1, link):
            return None
    except BenchError as error:
        return f"network namespaces do not work here: {error}"
