"""What travels between a worker and the PS, for tests that record it or make it up."""

import json
import pathlib
import socket
import subprocess
import threading

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "net" / "protocol.capnp"
LIMIT = 60.0


def job_hash(name):
    """FNV-1a of the job id, in 64 bits."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def _capnp(command, text_or_bytes, *words):
    data = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
    done = subprocess.run(
        ["capnp", *command, str(SCHEMA), "Message", *words], input=data, capture_output=True, timeout=LIMIT)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"capnp {command}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def encode(job, message):
    """A frame of a message in the text form of `capnp decode`, such as 'heartbeat = (iteration = 3)'."""
    return _capnp(["encode"], f"(jobHash = {job_hash(job)}, {message})")


def decode_text(stream):
    """What `capnp decode` prints of a recorded stream."""
    return _capnp(["decode"], stream).decode()


def decode(stream):
    """[(kind, message, job hash)] of a recorded stream; 64-bit integers are texts, data are lists of bytes."""
    text = _capnp(["convert", "binary:json"], stream).decode()
    decoder, messages, at = json.JSONDecoder(), [], 0
    while at < len(text):
        message, at = decoder.raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        own_hash = int(message.pop("jobHash"))
        ((kind, value),) = message.items()
        messages.append((kind, value, own_hash))
    return messages


class Proxy:
    """Stands between workers and the PS, and keeps what both sides of the first connection have said."""

    def __init__(self, host, port):
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.from_worker, self.from_ps = bytearray(), bytearray()
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    def _serve(self):
        with self._listener:
            worker, _ = self._listener.accept()
        ps = socket.create_connection(self._target, LIMIT)
        back = threading.Thread(target=self._copy, args=(ps, worker, self.from_ps), daemon=True)
        back.start()
        self._copy(worker, ps, self.from_worker)
        back.join()
        worker.close()
        ps.close()

    @staticmethod
    def _copy(source, target, record):
        try:
            while data := source.recv(65536):
                record += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # one side has closed: the other sees the same

    def join(self):
        self._threads[0].join(LIMIT)
        if self._threads[0].is_alive():
            raise AssertionError("the recorded connection is still open")
