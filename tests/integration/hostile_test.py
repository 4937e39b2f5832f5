"""Bad bytes on the PS port: that connection ends, is counted, and nothing else notices."""

import pathlib
import random
import shutil
import signal
import socket
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import report
import wire
from stagger import FAST, LIMIT, NO_LOSS, JobTest, wait_until

PAIR = FAST | {"cluster.workers": 2, "job.iterations": 60}


def read_to_end(connection):
    """What the PS says until it ends the connection; fails when it does not."""
    connection.settimeout(LIMIT)
    said = b""
    try:
        while data := connection.recv(65536):
            said += data
    except ConnectionResetError:
        pass  # it closed with bytes of ours unread
    return said


def resident_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


@unittest.skipUnless(shutil.which("capnp"), "the program capnp is missing: apt-get install capnproto")
class HostilePeers(JobTest):
    def record_hello(self, job, rank):
        """The first frame of a real worker of this job."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(LIMIT)
            address = f"127.0.0.1:{listener.getsockname()[1]}"
            worker = self.launch(
                "worker", job.directory / "config.toml", "--ps", address, "--rank", rank)
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(LIMIT)
                head = connection.recv(8, socket.MSG_WAITALL)
                segments_less_one, words = struct.unpack("<II", head)
                self.assertEqual(segments_less_one, 0)
                frame = head + connection.recv(8 * words, socket.MSG_WAITALL)
        self.assert_ends(worker, 4)
        return frame

    def attacks(self, hello):
        """name: (bytes, reason under which the frame is counted, a part of the answer)."""
        noise = random.Random(20260101)
        other_job = hello[:16] + struct.pack("<Q", wire.job_hash("other")) + hello[24:]
        push = "(id = (group = 0, iteration = 1, chunk = 0), planVersion = 1, codec = 0)"
        return {
            "garbage": (noise.randbytes(5_000), "bad_frame", b""),
            "text": (b"GET / HTTP/1.1\r\nHost: ps\r\n\r\n" * 10, "bad_frame", b""),
            "2^32-1 words": (struct.pack("<II", 0, 2**32 - 1) + bytes(64), "bad_frame", b""),
            "2^32 segments": (struct.pack("<II", 2**32 - 1, 1) + bytes(64), "bad_frame", b""),
            "512 segments": (struct.pack("<513I", 511, *[1] * 512) + bytes(4096), "bad_frame", b""),
            "an empty segment": (struct.pack("<II", 0, 0), "bad_frame", b""),
            "noise in a frame": (struct.pack("<II", 0, 64) + noise.randbytes(512), "bad_message", b""),
            "zeros in a frame": (struct.pack("<II", 0, 64) + bytes(512), "wrong_job", b"quickstart"),
            "hello of another job": (other_job, "wrong_job", b"quickstart"),
            "a taken rank": (hello, "not_a_member", b"rank 0 is held"),
            "push before hello": (wire.encode("quickstart", f"push = {push}"), "bad_message", b""),
            "heartbeat before hello":
                (wire.encode("quickstart", "heartbeat = (iteration = 7)"), "bad_message", b"before hello"),
            "what only a PS sends":
                (wire.encode("quickstart", "welcome = (rank = 0)"), "bad_message", b"before hello"),
        }

    def attack(self, job, data):
        with socket.create_connection(job.ps_host_and_port(), LIMIT) as connection:
            try:
                connection.sendall(data)
            except (ConnectionResetError, BrokenPipeError):
                pass  # refused before all of it was read
            return read_to_end(connection)

    def start_and_halt(self, changes):
        """A job in the middle of training whose rank 1 is frozen, so that it waits for as long as we need."""
        job = self.start_live("ps", changes)
        hello = self.record_hello(job, 0)
        workers = [self.start_worker(job, rank) for rank in range(2)]
        job.await_iteration(1)
        workers[1].signal(signal.SIGSTOP)
        return job, workers, hello

    def assert_undisturbed(self, job, members, changes):
        for member in members:
            self.assert_ends(member, 0)
        self.assert_ends(job.process, 0)
        undisturbed = self.report_of("run", changes, directory="undisturbed")
        self.assertEqual(job.report()["parameters_sha256"], undisturbed["parameters_sha256"])
        self.assertEqual(job.report()["workers_lost"], [])

    def test_bad_bytes_end_their_own_connection_and_are_counted(self):
        changes = PAIR | NO_LOSS | {"job.iterations": 3000, "timeouts.heartbeat_s": 0.05}
        job, workers, hello = self.start_and_halt(changes)
        for name, (data, reason, answer) in self.attacks(hello).items():
            with self.subTest(attack=name):
                before = job.scrape()["stagger_refused_frames_total"]
                said = self.attack(job, data)
                self.assertIn(answer, said)
                key = f'reason="{reason}"'
                after = job.scrape()["stagger_refused_frames_total"]
                self.assertEqual(after, before | {key: before[key] + 1})
        before = job.scrape()["stagger_refused_frames_total"]
        for cut in (1, 7, 8, 9, len(hello) // 2, len(hello) - 1):
            with socket.create_connection(job.ps_host_and_port(), LIMIT) as connection:
                connection.sendall(hello[:cut])
                connection.shutdown(socket.SHUT_WR)
                read_to_end(connection)
        self.assertEqual(job.scrape()["stagger_refused_frames_total"], before)
        workers[1].signal(signal.SIGCONT)
        self.assert_undisturbed(job, workers, changes)

    def test_attacks_do_not_make_the_ps_grow(self):
        changes = PAIR | NO_LOSS | {"job.iterations": 3000, "timeouts.heartbeat_s": 0.05}
        job, workers, hello = self.start_and_halt(changes)
        attacks = self.attacks(hello)

        def round_of_attacks():
            for data, _, _ in attacks.values():
                self.attack(job, data)

        for _ in range(5):
            round_of_attacks()
        before = resident_bytes(job.process.popen.pid)
        for _ in range(40):
            round_of_attacks()
        self.assertLess(resident_bytes(job.process.popen.pid) - before, 4 << 20)
        self.assertTrue(all(worker.running() for worker in workers))

    def test_connections_that_never_speak_are_ended_and_let_workers_in(self):
        changes = PAIR | {"timeouts.worker_s": 2.5, "timeouts.warning_s": 1}
        job = self.start_live("ps", changes)
        mute = [socket.create_connection(job.ps_host_and_port(), LIMIT) for _ in range(50)]
        workers = [self.start_worker(job, rank) for rank in range(2)]
        for connection in mute:
            with connection:
                read_to_end(connection)
        self.assert_undisturbed(job, workers, changes)

    def test_more_connections_than_there_is_room_for_are_turned_away_until_there_is(self):
        changes = PAIR | NO_LOSS
        job = self.start_live("ps", changes)
        room = 2 + 64  # one per worker, and sessions_extra_max
        mute = [socket.create_connection(job.ps_host_and_port(), LIMIT) for _ in range(room)]
        with socket.create_connection(job.ps_host_and_port(), LIMIT) as connection:
            self.assertEqual(read_to_end(connection), b"")
        self.assertEqual(job.scrape()["stagger_refused_frames_total"]['reason="overloaded"'], 1)
        for connection in mute:
            connection.close()

        def admitted():
            with socket.create_connection(job.ps_host_and_port(), LIMIT) as connection:
                connection.sendall(wire.encode("quickstart", "heartbeat = (iteration = 7)"))
                return b"before hello" in read_to_end(connection)

        wait_until(admitted, "there is room again")
        workers = [self.start_worker(job, rank) for rank in range(2)]
        self.assert_undisturbed(job, workers, changes)


if __name__ == "__main__":
    report.main()
