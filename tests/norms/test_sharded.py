"""Tensors and modules that are spread over processes, tried in one process: what lesson 14 says of
DTensor and FSDP."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.distributed as dist

import course_lib
from course_lib.norms import functional, modules

pytestmark = pytest.mark.skipif(
    course_lib.MODE != "cpu" or not dist.is_available(),
    reason="the one process talks to itself by gloo, which is for the CPU",
)


@pytest.fixture
def mesh(tmp_path):
    dist.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'rendezvous'}", rank=0, world_size=1
    )
    yield dist.init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


def test_a_dtensor_is_refused_and_its_local_tensor_taken(mesh):
    from torch.distributed.tensor import Shard, distribute_tensor

    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    for dimension in (0, 1):
        spread = distribute_tensor(x, mesh, [Shard(dimension)])
        with pytest.raises(
            NotImplementedError,
            match=r"course.layer_norm.default does not have a sharding strategy",
        ):
            functional.layer_norm(spread, (8,))
    rows = distribute_tensor(x, mesh, [Shard(0)]).to_local()
    assert torch.equal(functional.layer_norm(rows, (8,)), functional.layer_norm(x, (8,)))


def test_fsdp_changes_no_value_and_no_gradient(mesh):
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor

    alone = torch.nn.Sequential(torch.nn.Linear(8, 8), modules.LayerNorm(8), modules.RMSNorm(8))
    spread = fully_shard(copy.deepcopy(alone))
    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    y, want = spread(x), alone(x)
    assert torch.equal(y, want)
    for output in (y, want):
        output.square().sum().backward()
    for got, expected in zip(spread.parameters(), alone.parameters(), strict=True):
        assert isinstance(got.grad, DTensor) and expected.grad is not None
        assert torch.allclose(got.grad.full_tensor(), expected.grad, atol=1e-6)
