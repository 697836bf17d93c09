"""Profiles: the shipped ones load and plan what the catalogue knows; a wrong one is refused in one line."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hwlottery.evidence import Device, metric, parse_subject
from hwlottery.probes import PROBES
from hwlottery.probes.by_hand import one_node, trials_of, values_of
from hwlottery.probes.profiles import DEVICES, Profile, ProfileError, load_profile, profile_from_text, profile_names

ROOT = Path(__file__).resolve().parent.parent
GOOD = "name: mine\nsummary: a test\nslots: 2\nprobes: {matmul: {cpu: %s}}"
MATMUL = "{dtypes: [fp32], shapes: [[16, 16, 16]]}"


@pytest.mark.parametrize("name", ["smoke", "prolog", "quick", "recheck", "acceptance"])
def test_each_shipped_profile_bears_its_name_and_says_what_it_is(name: str) -> None:
    assert name in profile_names()
    profile = load_profile(name)
    assert profile.name == name
    assert profile.slots >= 1
    assert profile.summary.endswith(".")
    assert len(profile.sha256) == 64


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", profile_names())
def test_what_a_shipped_profile_plans_is_known_and_announced_once(name: str, device: Device) -> None:
    for probe, trials in _plans(load_profile(name), device):
        announced = [fill for trial in trials for fill in trial.fills]
        assert len(values_of(announced)) == len(announced)
        for fill in announced:
            assert fill.metric in probe.metrics
            assert parse_subject(fill.subject).kind in metric(fill.metric).subjects
        for trial in trials:
            assert trial.deadline_s > trial.expected_s > 0
            assert trial.function.startswith(f"{probe.name}:")


@pytest.mark.parametrize(("name", "seconds"), [("smoke", 60), ("prolog", 5)])
def test_the_short_profiles_expect_to_be_short_on_a_cpu(name: str, seconds: float) -> None:
    plans = _plans(load_profile(name), "cpu")
    assert 0 < sum(trial.expected_s for _, trials in plans for trial in trials) < seconds


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["smoke", "quick", "recheck", "acceptance"])
def test_all_but_prolog_run_every_probe(name: str, device: Device) -> None:
    profile = load_profile(name)
    assert [probe.name for probe in PROBES if profile.settings(probe.name, device) is None] == []


def test_plans_are_the_same_each_time() -> None:
    profile = load_profile("smoke")
    for device in DEVICES:
        assert _plans(profile, device) == _plans(profile, device)


def _plans(profile: Profile, device: Device) -> list[tuple[object, list[object]]]:
    cluster = one_node(device, 2, "/tmp")
    chosen = [(probe, profile.settings(probe.name, device)) for probe in PROBES]
    return [(probe, list(trials_of(probe, cluster, settings))) for probe, settings in chosen if settings is not None]


def test_a_profile_comes_back_from_its_own_text() -> None:
    profile = load_profile("smoke")
    again = profile_from_text(profile.text, "run.json")
    assert again.sha256 == profile.sha256
    assert again.settings("matmul", "cpu") == profile.settings("matmul", "cpu")


def test_a_users_own_file_is_taken_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(GOOD % MATMUL)
    profile = load_profile(str(file))
    assert profile.settings("matmul", "cpu").shapes == ((16, 16, 16),)
    assert profile.settings("matmul", "cuda") is None
    assert profile.settings("memory", "cpu") is None


def test_a_device_set_to_null_is_skipped() -> None:
    profile = profile_from_text(GOOD % "null", "x.yaml")
    assert profile.settings("matmul", "cpu") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD % "{dtypes: [fp32], shapes: [[16,16,16]], foo: 2}", ("probes.matmul.cpu.foo", "unknown key", "repeats")),
        (GOOD % "{dtypes: [fp3], shapes: [[16,16,16]]}", ("probes.matmul.cpu.dtypes.0", "bf16", "fp8", "fp3")),
        (GOOD % "{dtypes: [fp32]}", ("probes.matmul.cpu.shapes", "missing")),
        (GOOD % "{dtypes: [fp32], shapes: [[1,2,3]]}", ("probes.matmul.cpu", "multiples of 16")),
        (GOOD % "{dtypes: [fp32], shape: [[16,16,16]]}", ("probes.matmul.cpu.shape", "unknown key", "shapes")),
        (GOOD % "3", ("probes.matmul.cpu",)),
        (GOOD.replace("matmul", "mm") % MATMUL, ("probes.mm", "unknown probe", "matmul", "burn_in")),
        (GOOD.replace("cpu", "tpu") % MATMUL, ("probes.matmul.tpu", "cpu", "cuda")),
        (GOOD.replace("slots: 2", "slots: 0") % MATMUL, ("slots", "0")),
        (GOOD.replace("slots: 2", "slot: 2") % MATMUL, ("slot", "unknown key", "slots", "summary")),
        (GOOD.replace("name: mine", "name: My Own") % MATMUL, ("name", "My Own")),
        ("name: a\nname: [", ("no valid YAML",)),
        ("name: a\nname: b", ("line 1", "'name' stands twice")),
        ("", ("probes", "slots", "summary")),
        ("!!python/object/apply:os.system ['true']", ("tags (!name) are not allowed",)),
        ("[" * 5000, ("nested deeper than 12",)),
    ],
)
def test_a_wrong_profile_is_refused_in_one_line_that_names_file_key_and_choices(
    text: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(ProfileError) as refused:
        profile_from_text(text, "x.yaml")
    line = str(refused.value)
    assert "\n" not in line
    assert line.startswith("x.yaml: ")
    assert all(word in line for word in words), line


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nope", ("unknown profile 'nope'", "smoke", "acceptance")),
        ("/no/such.yaml", ("/no/such.yaml", "No such file")),
        ("/", ("/: no plain file",)),
        ("smoke/../smoke", ("cannot be read",)),
    ],
)
def test_a_profile_that_is_not_there_is_said_with_the_choices(name: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ProfileError) as refused:
        load_profile(name)
    assert "\n" not in str(refused.value)
    assert all(word in str(refused.value) for word in words), str(refused.value)


def test_a_file_that_is_too_large_or_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_text("#" * (1 << 20) + "\n")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    for name, words in (("large", "over 256 KiB"), ("bytes", "not UTF-8")):
        with pytest.raises(ProfileError, match=words):
            load_profile(str(tmp_path / f"{name}.yaml"))


def test_every_setting_of_a_shipped_profile_stands_in_its_file() -> None:
    """What the file says is what is in force: nothing is dropped on the way."""
    for name in profile_names():
        profile = load_profile(name)
        for probe, by_device in yaml.safe_load(profile.text)["probes"].items():
            for device, values in by_device.items():
                in_force = profile.settings(probe, device)
                for key, value in (values or {}).items():
                    assert _listed(getattr(in_force, key)) == _listed(value)


def _listed(value: object) -> object:
    return [_listed(each) for each in value] if isinstance(value, list | tuple) else value


def test_profiles_and_plans_need_no_torch() -> None:
    code = (
        "import sys; from hwlottery.probes.profiles import load_profile; from hwlottery.probes import PROBES;"
        "from hwlottery.probes.by_hand import one_node, trials_of; profile = load_profile('smoke');"
        "[list(trials_of(p, one_node('cuda', 2, '/tmp'), profile.settings(p.name, 'cuda'))) for p in PROBES];"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT / ".src")}, check=True, timeout=60)
