"""A recorded stream is plain Cap'n Proto: `capnp decode` reads it, and it says what the plan promises."""

import collections
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import report
import wire
from stagger import JobTest, due, read_safetensors

ITERATIONS = 7
CHUNK_BYTES = 4096
SMALL = {
    "cluster.workers": 1, "job.iterations": ITERATIONS, "model.name": "mlp", "model.hidden": "[7, 5, 3]",
    "groups.planner": "layerwise", "wire.chunk_bytes": CHUNK_BYTES, "data.batch": 8}


@unittest.skipUnless(shutil.which("capnp"), "the program capnp is missing: apt-get install capnproto")
class RecordedStream(JobTest):
    def record(self):
        """(messages of the worker, messages of the PS, the job) of a whole run of one worker."""
        job = self.start_live("ps", SMALL)
        proxy = wire.Proxy(*job.ps_host_and_port())
        worker = self.launch(
            "worker", job.directory / "config.toml", "--ps", proxy.address, "--rank", 0)
        self.assert_ends(worker, 0)
        self.assert_ends(job.process, 0)
        proxy.join()
        for stream, last in ((proxy.from_worker, "farewell"), (proxy.from_ps, "")):
            text = wire.decode_text(bytes(stream))
            self.assertEqual(text.count("jobHash = "), len(wire.decode(bytes(stream))))
            self.assertIn(last, text)
        return wire.decode(bytes(proxy.from_worker)), wire.decode(bytes(proxy.from_ps)), job

    def payloads(self, messages, kind):
        """{(group, iteration): bytes}, after looking at the chunks' heads."""
        found = collections.defaultdict(bytes)
        expected_chunk = collections.defaultdict(int)
        for name, message, _ in messages:
            if name != kind:
                continue
            key = (message["id"]["group"], int(message["id"]["iteration"]))
            self.assertEqual(message["id"]["chunk"], expected_chunk[key])
            expected_chunk[key] += 1
            self.assertEqual(message["planVersion"], 1)
            self.assertEqual(message["codec"], 0)
            self.assertEqual(len(found[key]) % CHUNK_BYTES, 0, "only the last chunk is short")
            found[key] += bytes(message["payload"])
        return found

    def test_the_stream_of_a_run_decodes_and_carries_the_rounds_of_the_plan(self):
        from_worker, from_ps, job = self.record()
        kinds = [kind for kind, _, _ in from_worker]
        self.assertEqual(kinds[0], "hello")
        self.assertEqual(kinds[-1], "farewell")
        self.assertEqual(
            {job_hash for _, _, job_hash in from_worker + from_ps}, {wire.job_hash("quickstart")})
        self.assertEqual([kind for kind, _, _ in from_ps][0], "welcome")

        hello = from_worker[0][1]
        self.assertEqual((hello["job"], hello["rank"], hello["world"]), ("quickstart", 0, 1))
        self.assertEqual(hello["parameters"][0], {"name": "fc1.weight", "shape": ["7", "784"]})

        (begin,) = [message for kind, message, _ in from_ps if kind == "begin"]
        sizes = [int(group["bytes"]) for group in begin["plans"][0]["groups"]]
        pushes, centers = self.payloads(from_worker, "push"), self.payloads(from_ps, "center")
        rounds = {(g, j) for j in range(1, ITERATIONS + 1) for g in range(len(sizes))
                  if due(len(sizes), 3, g, j)}
        rounds |= {(g, ITERATIONS + 1) for g in range(len(sizes))}
        self.assertEqual(set(pushes), rounds)
        self.assertEqual(set(centers), rounds | {(g, 0) for g in range(len(sizes))})
        for (group, _), payload in (*pushes.items(), *centers.items()):
            self.assertEqual(len(payload), sizes[group])

    def test_payloads_are_the_parameters(self):
        from_worker, from_ps, job = self.record()
        pushes, centers = self.payloads(from_worker, "push"), self.payloads(from_ps, "center")
        for (group, iteration), payload in pushes.items():
            if iteration == 1:
                self.assertEqual(payload, centers[group, 0], "the first push is the center as it was received")
            else:
                self.assertNotEqual(payload, centers[group, 0])
        last = [payload for (_, iteration), payload in sorted(centers.items()) if iteration == ITERATIONS + 1]
        for name, values in read_safetensors(job.directory / "model.safetensors").items():
            data = values.tobytes()
            self.assertTrue(any(data in payload for payload in last), f"{name} is in no last center")


if __name__ == "__main__":
    report.main()
