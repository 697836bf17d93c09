"""burn_in: training learns, replicas that part are found, a restart restores, and losses that are not finite count."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hwlottery.cluster import RankContext, Trial
from hwlottery.evidence import AnyReading, Missing, Reading
from hwlottery.probes import products, replicas, restart
from hwlottery.probes.burn_in import BurnIn, BurnInSettings
from hwlottery.probes.by_hand import call, gang, group_of_one, one_node, trials_of, values_of
from hwlottery.probes.decoder import Decoder, Shape, batch_of, flops_per_token, loss_of

SMALL = BurnInSettings(
    seconds=2.5, vocabulary=32, sequence=16, width=32, layers=2, heads=2, batch=4, check_every=10, learning_rate=1e-2
)
SHAPE = Shape(vocabulary=32, sequence=16, width=24, layers=2, heads=2)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    """This process as the only rank of a collective trial."""
    (tmp_path / "group").mkdir()
    with group_of_one("cpu", str(tmp_path / "group")):
        yield


def _trial(ranks: int = 1, **changes: Any) -> Trial:
    return next(trials_of(BurnIn(), one_node("cpu", ranks, "/tmp"), dataclasses.replace(SMALL, **changes)))


def _samples(readings: list[AnyReading]) -> dict[str, tuple[float, ...]]:
    return {each.metric.removeprefix("burn_in."): each.samples for each in readings if isinstance(each, Reading)}


def test_two_ranks_bring_exactly_what_was_announced_and_learn(tmp_path: Path) -> None:
    trial = _trial(ranks=2)
    (readings,) = gang([trial], [rank.subject for rank in trial.ranks], str(tmp_path))
    assert values_of(readings) == values_of(trial.fills)
    found = _samples(readings)
    assert found["loss_drop"][0] > 1
    assert found["nonfinite_losses"] == (0.0,)
    assert set(found["hash_disagreements"]) == {0.0}
    assert len(found["hash_disagreements"]) >= 2
    assert found["checkpoint"][0] > 0
    assert all(busy <= whole for busy, whole in zip(found["compute"], found["step"], strict=True))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("alone")
def test_rates_follow_from_the_steps(tmp_path: Path) -> None:
    found = _samples(call(_trial(), "here/slot0", str(tmp_path)))
    assert found["tokens_per_second"] == pytest.approx(tuple(4 * 16 / step_s for step_s in found["step"]))
    # Blocks 2 x 12 d^2 and 2 x 2 d of norms, the last norm, the head; then attention.
    weights = 2 * (12 * 32 * 32 + 2 * 32) + 32 + 32 * 32
    a_token = 6 * weights + 12 * 2 * 32 * 16
    assert found["model_tflops"] == pytest.approx(tuple(a_token * 64 / step_s / 1e12 for step_s in found["step"]))


@pytest.mark.usefixtures("alone")
def test_losses_that_are_not_finite_are_counted_and_no_drop_is_claimed(tmp_path: Path) -> None:
    found = _samples(call(_trial(learning_rate=1e30, seconds=0.2), "here/slot0", str(tmp_path)))
    assert found["nonfinite_losses"][0] >= 1
    assert not found["loss_drop"][0] > 0


@pytest.mark.usefixtures("alone")
def test_a_checkpoint_that_cannot_be_written_is_missing_and_the_training_goes_on(tmp_path: Path) -> None:
    trial = _trial(seconds=0.2)
    readings = call(trial, "here/slot0", str(tmp_path / "nowhere"))
    assert values_of(readings) == values_of(trial.fills)
    missing = [each for each in readings if isinstance(each, Missing)]
    assert [each.metric for each in missing] == ["burn_in.checkpoint"]
    assert "No such file or directory" in missing[0].detail


def test_an_accelerator_that_would_emulate_bf16_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 0))
    cluster = one_node("cuda", 1, "/tmp")
    trial = next(trials_of(BurnIn(), cluster, SMALL))
    readings = call(trial, "here/gpu0", "/tmp")
    assert values_of(readings) == values_of(trial.fills)
    assert {each.reason for each in readings if isinstance(each, Missing)} == {"unsupported"}
    assert products.refusal(_context("/tmp"), "bf16") is None


def _context(scratch: object, rank: int = 0) -> RankContext:
    return RankContext(
        subject=f"here/slot{rank}",
        node="here",
        device_name="cpu",
        rank=rank,
        subjects=("here/slot0",),
        nodes=("here",),
        scratch=Path(str(scratch)),
    )


@pytest.mark.usefixtures("alone")
def test_a_restart_restores_every_bit_and_leaves_no_file(tmp_path: Path) -> None:
    model, optimizer = _trained()
    before = replicas.parameter_hash(model.parameters())
    seconds, lost = restart.save_and_restore(_context(tmp_path), model, optimizer)
    assert isinstance(seconds, float)
    assert lost == 0
    assert torch.equal(replicas.parameter_hash(model.parameters()), before)
    assert [entry.name for entry in tmp_path.iterdir()] == ["group"]


@pytest.mark.usefixtures("alone")
def test_a_load_that_loads_nothing_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, optimizer = _trained()
    monkeypatch.setattr(model, "load_state_dict", lambda _: None)
    _, lost = restart.save_and_restore(_context(tmp_path), model, optimizer)
    assert lost == 1


def _trained() -> tuple[Decoder, torch.optim.Optimizer]:
    model = Decoder(SHAPE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens, following = batch_of(SHAPE, 2, torch.Generator().manual_seed(1))
    loss_of(model(tokens), following).backward()
    optimizer.step()
    return model, optimizer


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from([torch.float32, torch.bfloat16]),
    tensor=st.integers(0, 1),
    place=st.integers(0, 49),
    bit=st.integers(0, 15),
)
def test_one_flipped_bit_anywhere_changes_the_hash(kind: torch.dtype, tensor: int, place: int, bit: int) -> None:
    parameters = [torch.randn(50).to(kind), torch.randn(5, 10).to(kind)]
    before = int(replicas.parameter_hash(parameters))
    words = parameters[tensor].view(-1).view(torch.int32 if kind == torch.float32 else torch.int16)
    words[place] = torch.bitwise_xor(words[place], torch.tensor(1 << bit if bit < 15 else -(1 << 15)).to(words.dtype))
    assert int(replicas.parameter_hash(parameters)) != before


def test_exchanged_elements_change_the_hash() -> None:
    one = torch.arange(10.0)
    assert int(replicas.parameter_hash([one])) != int(replicas.parameter_hash([one.flip(0)]))


@pytest.mark.parametrize(
    ("hashes", "minority"), [([5, 5, 5, 5], 0), ([5, 5, 6, 5], 1), ([5, 6], 1), ([1, 2, 3, 3], 2), ([4], 0)]
)
def test_ranks_that_differ_from_most_are_counted(
    hashes: list[int], minority: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gather(into: list[torch.Tensor], own: torch.Tensor) -> None:
        for tensor, value in zip(into, hashes, strict=True):
            tensor.fill_(value)

    monkeypatch.setattr(replicas.dist, "get_world_size", lambda: len(hashes))
    monkeypatch.setattr(replicas.dist, "all_gather", gather)
    assert replicas.ranks_in_minority(torch.tensor(hashes[0])) == minority


def test_the_decoder_sees_no_token_of_the_future() -> None:
    model = Decoder(SHAPE).eval()
    tokens, _ = batch_of(SHAPE, 2, torch.Generator().manual_seed(1))
    changed = tokens.clone()
    changed[:, 10:] = (changed[:, 10:] + 1) % SHAPE.vocabulary
    with torch.no_grad():
        assert torch.allclose(model(tokens)[:, :10], model(changed)[:, :10], atol=1e-6)
        assert not torch.allclose(model(tokens)[:, 10:], model(changed)[:, 10:], atol=1e-6)


def test_tokens_are_the_same_for_a_seed_and_others_for_another() -> None:
    tokens, following = batch_of(SHAPE, 3, torch.Generator().manual_seed(1))
    again, _ = batch_of(SHAPE, 3, torch.Generator().manual_seed(1))
    other, _ = batch_of(SHAPE, 3, torch.Generator().manual_seed(2))
    assert tokens.shape == following.shape == (3, 16)
    assert torch.equal(tokens[:, 1:], following[:, :-1])
    assert torch.equal(tokens, again)
    assert not torch.equal(tokens, other)


def test_model_flops_leave_the_embeddings_out() -> None:
    wide = dataclasses.replace(SHAPE, vocabulary=64)
    more = flops_per_token(Decoder(wide), wide) - flops_per_token(Decoder(SHAPE), SHAPE)
    assert more == 6 * 32 * SHAPE.width  # the head's 32 more rows; the embedding's do not count


def test_the_deadline_is_longer_than_the_training() -> None:
    for seconds in (1.0, 7200.0, 172800.0):
        trial = _trial(seconds=seconds)
        assert trial.deadline_s > trial.expected_s > seconds


@pytest.mark.parametrize("wrong", [{"heads": 3}, {"seconds": 0}, {"batch": 0}, {"learning_rate": 0.0}])
def test_settings_that_cannot_run_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="burn_in"):
        dataclasses.replace(SMALL, **wrong)
