"""The text for node_exporter's textfile collector, read by Prometheus's own parser."""

import os
import stat
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from generated_runs import make_run, write_records, write_run
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from hwlottery.cli import cli
from hwlottery.evidence import CATALOGUE, Run, measured, metric, read_run
from hwlottery.reports import prometheus
from hwlottery.scoring import score_run

HOSTILE = 'a"b\\c\nd{e="f"} 1\n# TYPE x gauge\nx 1 \u2028\x00'


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four nodes, one with a slow GPU, one that hung."""
    faults = ["slow@n01/gpu1=0.7", "hung@n02/gpu0"]
    return read_run(write_run(tmp_path_factory.mktemp("prom") / "run", nodes=4, accelerators=2, faults=faults))


def families(text: str):
    found = list(text_string_to_metric_families(text))
    assert len({each.name for each in found}) == len(found)
    return {each.name: each for each in found}


def test_prometheus_reads_every_family_with_help_and_type(run: Run) -> None:
    found = families(prometheus.render(run, score_run(run)))
    assert all(each.type == "gauge" and each.documentation for each in found.values())
    matmul = found["hwlottery_matmul_tflops"]
    assert metric("matmul.tflops").meaning in matmul.documentation
    assert "TFLOPS" in matmul.documentation


def test_exactly_one_verdict_is_1(run: Run) -> None:
    verdict = score_run(run)
    samples = families(prometheus.render(run, verdict))["hwlottery_verdict"].samples
    assert {each.labels["verdict"]: each.value for each in samples} == {
        word: float(word == verdict.verdict) for word in ("GO", "CONDITIONAL", "NO_GO", "INCONCLUSIVE")
    }


def test_results_by_node_are_those_of_the_verdict(run: Run) -> None:
    verdict = score_run(run)
    found = families(prometheus.render(run, verdict))
    failed = {
        e.labels["node"]: e.value for e in found["hwlottery_node_results"].samples if e.labels["result"] == "fail"
    }
    assert failed["n01"] == sum(each.result == "fail" and "n01" in each.subject for each in verdict.findings) > 0
    out = {each.labels["node"]: each.value for each in found["hwlottery_node_excluded"].samples}
    assert out == {"n00": 0.0, "n01": 1.0, "n02": 1.0, "n03": 0.0}


def test_a_median_is_the_median_over_the_subjects(run: Run) -> None:
    samples = families(prometheus.render(run, score_run(run)))["hwlottery_memory_triad"].samples
    values = {each.labels["over_subjects"]: each.value for each in samples}
    assert values["least"] <= values["median"] <= values["most"]
    assert values["count"] == len({each.subject for each in run.measurements if each.metric == "memory.triad"})


def test_what_was_not_measured_has_no_sample_and_an_index_that_is_not_there_is_absent(run: Run) -> None:
    found = families(prometheus.render(run, msgspec.structs.replace(score_run(run), index=None)))
    assert "hwlottery_index" not in found
    assert "hwlottery_health_cpu_steal" not in found


def test_no_sample_has_a_time_of_its_own_which_the_collector_refuses(run: Run) -> None:
    found = families(prometheus.render(run, score_run(run)))
    assert all(each.timestamp is None for family in found.values() for each in family.samples)
    assert found["hwlottery_run_start_timestamp_seconds"].samples[0].value == 1795874520.0


def test_no_metric_of_the_catalogue_takes_the_name_of_another_family(run: Run) -> None:
    own = {name for name in families(prometheus.render(run, score_run(run))) if "." not in name}
    named = [prometheus._name(each.name) for each in CATALOGUE]
    assert len(set(named)) == len(named)
    assert not {each for each in own if each not in named} & set(named)


@given(st.text(max_size=40))
@settings(max_examples=40, deadline=None)
def test_hostile_words_stay_within_their_label(words: str) -> None:
    header, records = make_run(nodes=1, accelerators=1)
    header = msgspec.structs.replace(header, provider=words + HOSTILE, cluster=words)
    from generated_runs import as_run

    whole = as_run(
        header, [*records, measured(metric="memory.copy", subject="n00", samples=[1.0], params={"x": words})]
    )
    text = prometheus.render(whole, score_run(whole))
    assert "x" not in families(text)
    for line in text.splitlines():
        assert line.startswith(("hwlottery_", "# HELP hwlottery_", "# TYPE hwlottery_"))


def test_the_file_is_replaced_in_one_step_and_readable_by_the_collector(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "hwlottery.prom"
    place.write_text("old")
    before = place.stat().st_ino
    result = CliRunner().invoke(cli, ["export", str(run.path), "--format", "prometheus", "-o", str(place)])
    assert result.exit_code == 0, result.output
    assert place.stat().st_ino != before, "another file was put in its place"
    assert stat.S_IMODE(place.stat().st_mode) == 0o644
    assert [entry.name for entry in tmp_path.iterdir()] == ["hwlottery.prom"]
    families(place.read_text())


def test_a_link_of_the_users_is_followed_and_a_pipe_stays_a_pipe(run: Run, tmp_path: Path) -> None:
    (tmp_path / "link.prom").symlink_to(tmp_path / "real.prom")
    (tmp_path / "real.prom").write_text("old")
    args = ["export", str(run.path), "--format", "exclude", "-o"]
    assert CliRunner().invoke(cli, [*args, str(tmp_path / "link.prom")]).exit_code == 0
    assert (tmp_path / "link.prom").is_symlink()
    assert (tmp_path / "real.prom").read_text() == "n01,n02\n"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert CliRunner().invoke(cli, [*args, str(tmp_path / "pipe")]).exit_code == 0
    assert os.read(reader, 100) == b"n01,n02\n"
    os.close(reader)


def test_the_same_run_gives_the_same_bytes(tmp_path: Path, run: Run) -> None:
    header, records = make_run(nodes=2, accelerators=1)
    again = read_run(write_records(tmp_path / "run", header, records))
    for one in (run, again):
        assert prometheus.render(one, score_run(one)) == prometheus.render(one, score_run(one))
