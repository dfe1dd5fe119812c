from __future__ import annotations

import pytest


def test_names_of_devices(monkeypatch):
    import torch

    from aircl.backbones.device import choose_device

    monkeypatch.delenv("AIRCL_DEVICE", raising=False)
    assert choose_device("cpu") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device() == choose_device("auto") == torch.device("cpu")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device() == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device() == torch.device("cuda")
    assert choose_device("cuda:1") == torch.device("cuda:1")
    monkeypatch.setenv("AIRCL_DEVICE", "cpu")
    assert choose_device() == torch.device("cpu")
    assert choose_device(torch.device("meta")) == torch.device("meta")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpu", "device='gpu' is none. Use auto, cpu, cuda"),
        ("cuda:x", "device='cuda:x' is none"),
        ("cuda:2", r"device='cuda:2' is not here, .* it sees 2 cuda, 1 cpu"),
        ("mps", "device='mps' is not here"),
    ],
)
def test_devices_that_are_not_there(monkeypatch, name, message):
    import torch

    from aircl.backbones.device import choose_device

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(ValueError, match=message):
        choose_device(name)


def test_batches_go_to_cuda_from_pinned_memory_without_waiting():
    """No such device is needed to see what would be asked of a tensor."""
    import torch

    from aircl.backbones.device import send

    class Asked:
        device = torch.device("cpu")

        def __init__(self):
            self.calls = []

        def is_pinned(self):
            return "pin_memory" in self.calls

        def pin_memory(self):
            self.calls.append("pin_memory")
            return self

        def to(self, device, non_blocking):
            self.calls.append((str(device), non_blocking))
            return self

    assert send(Asked(), torch.device("cuda:1")).calls == ["pin_memory", ("cuda:1", True)]
    pinned = Asked().pin_memory()
    assert send(pinned, torch.device("cuda")).calls == ["pin_memory", ("cuda", True)]
    assert send(Asked(), torch.device("mps")).calls == [("mps", False)]
    assert send(Asked(), torch.device("cpu")).calls == []


def test_what_is_prepared_for_cuda_is_pinned_by_the_thread_that_prepares_it(monkeypatch):
    import torch

    from aircl.backbones.frozen import FrozenModule

    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda batch: batch + 1)
    network = FrozenModule("tiny", torch.nn.Linear(2, 1), {}, width=1, batch_size=4)
    assert network.pinned(torch.zeros(2)).tolist() == [0, 0]
    network.device = torch.device("cuda:1")
    assert network.pinned(torch.zeros(2)).tolist() == [1, 1]


def test_the_simulation_notices_what_a_device_would(far):
    import torch

    head = torch.nn.Linear(4, 2)

    def mixed():
        return head.to(far.device)(torch.ones(3, 4))

    with pytest.raises(RuntimeError, match="tensors on two devices"):
        far(mixed)
    with pytest.raises(RuntimeError, match="numpy"):
        far(lambda: torch.ones(2).to(far.device).numpy())
    with pytest.raises(RuntimeError, match="indexed by one that is elsewhere"):
        far(lambda: torch.ones(2)[torch.tensor([1], device=far.device)])
    assert far(lambda: (torch.ones(2).to(far.device) + 1).tolist()) == [2.0, 2.0]


def test_the_strict_mode_notices_what_is_left_open(far):
    import torch

    code = compile("def f(x): return torch.zeros(2) if x is None else x.cpu()", "f.py", "exec")
    inside = {"torch": torch, "__name__": "aircl.methods.prompt.mine"}
    exec(code, inside)
    with pytest.raises(AssertionError, match=r"mine.f, line 1: torch.zeros without a device"):
        far(inside["f"], None)
    with pytest.raises(
        AssertionError, match=r"mine.f, line 1: .cpu\(\) beside aircl.backbones.device.to_array and aircl.engine"
    ):
        far(inside["f"], torch.ones(2))
