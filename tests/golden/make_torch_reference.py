#!/usr/bin/python3
"""What PyTorch computes for a model, from the weights and the batch that a test wrote.

    make_torch_reference.py INPUT OUTPUT

INPUT is a safetensors file: the model's parameters under their names, `batch.inputs`,
`batch.labels` (as floats), and the metadata model, learning_rate, momentum, weight_decay, steps.
OUTPUT is one too: `scores`, `loss`, `gradient.NAME` of the first step, and `after.NAME` once
torch.optim.SGD has taken all steps on the same batch. Both are read and written here by hand, so
that the format is checked against its description and not against our own code.

Exits with 77 where PyTorch is missing.
"""

import json
import struct
import sys

try:
    import numpy
    import torch
except ImportError as missing:
    print(f"skipped: {missing}", file=sys.stderr)
    sys.exit(77)


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length].decode("utf-8"))
    metadata = header.pop("__metadata__", {})
    body = data[8 + length :]
    tensors = {}
    end_before = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "F32", name
        assert begin == end_before, f"{name} begins at {begin}, not at {end_before}"
        values = numpy.frombuffer(body[begin:end], dtype="<f4").reshape(entry["shape"])
        tensors[name] = torch.from_numpy(values.copy())
        end_before = end
    assert end_before == len(body), "bytes behind the last tensor"
    return tensors, metadata


def write_safetensors(path, tensors):
    header, chunks, offset = {}, [], 0
    for name, tensor in tensors.items():
        raw = tensor.detach().to(torch.float32).contiguous().numpy().astype("<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(raw)],
        }
        chunks.append(raw)
        offset += len(raw)
    text = json.dumps(header).encode("utf-8")
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


class Lenet5(torch.nn.Module):
    def __init__(self, tensors):
        super().__init__()
        channels = tensors["conv1.weight"].shape[1]
        flat = tensors["fc1.weight"].shape[1]
        classes = tensors["fc3.weight"].shape[0]
        self.conv1 = torch.nn.Conv2d(channels, 6, 5, padding=2)
        self.conv2 = torch.nn.Conv2d(6, 16, 5)
        self.fc1 = torch.nn.Linear(flat, 120)
        self.fc2 = torch.nn.Linear(120, 84)
        self.fc3 = torch.nn.Linear(84, classes)

    def forward(self, x):
        pool = torch.nn.functional.max_pool2d
        x = pool(torch.relu(self.conv1(x)), 2)
        x = pool(torch.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


class Mlp(torch.nn.Module):
    def __init__(self, tensors):
        super().__init__()
        self.depth = sum(name.endswith(".weight") for name in tensors)
        for number in range(1, self.depth + 1):
            outputs, inputs = tensors[f"fc{number}.weight"].shape
            setattr(self, f"fc{number}", torch.nn.Linear(inputs, outputs))

    def forward(self, x):
        x = torch.flatten(x, 1)
        for number in range(1, self.depth):
            x = torch.relu(getattr(self, f"fc{number}")(x))
        return getattr(self, f"fc{self.depth}")(x)


def main():
    tensors, metadata = read_safetensors(sys.argv[1])
    inputs = tensors.pop("batch.inputs")
    labels = tensors.pop("batch.labels").to(torch.int64)
    torch.set_num_threads(1)
    model = {"lenet5": Lenet5, "mlp": Mlp}[metadata["model"]](tensors)
    model.load_state_dict(tensors, strict=True)
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=float(metadata["learning_rate"]),
        momentum=float(metadata["momentum"]),
        weight_decay=float(metadata["weight_decay"]),
    )
    result = {}
    for step in range(int(metadata["steps"])):
        optimizer.zero_grad()
        scores = model(inputs)
        loss = torch.nn.functional.cross_entropy(scores, labels)
        loss.backward()
        if step == 0:
            result["scores"] = scores
            result["loss"] = loss.reshape(1)
            for name, parameter in model.named_parameters():
                result[f"gradient.{name}"] = parameter.grad.clone()
        optimizer.step()
    for name, parameter in model.named_parameters():
        result[f"after.{name}"] = parameter
    write_safetensors(sys.argv[2], result)


if __name__ == "__main__":
    main()
