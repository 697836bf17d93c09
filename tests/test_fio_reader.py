"""fio's output, as many fios wrote it: numbers only where a job did its work."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwlottery.readers.fio import FioError, parse


def read(recorded, name):
    return parse((recorded / "fio_json" / name).read_text())


def test_percentiles_are_found_under_lat_where_clat_has_none(recorded):
    report = read(recorded, "01_fio316_randrw.json")
    (job,) = report.jobs
    assert (report.version, job.name, job.error) == ("3.16", "rand_read_write", 0)
    assert (job.read.bytes_per_s, job.read.iops) == (348743777, 85138.890741)
    assert job.read.percentiles_s[99.0] == pytest.approx(2244608e-9)
    assert (job.write.bytes_per_s, job.write.iops) == (348450387, 85066.128925)
    assert job.write.percentiles_s[99.0] == pytest.approx(2072576e-9)


def test_bytes_a_second_are_taken_from_bw_bytes_and_not_from_kib(recorded):
    (job,) = read(recorded, "02_fio326_randrw.json").jobs
    assert (job.read.bytes_per_s, job.write.bytes_per_s) == (7876980, 8876980)
    assert (job.read.iops, job.write.iops) == (2160.561601, 2167.231601)
    assert job.read.percentiles_s[99.0] == pytest.approx(263192e-9)
    assert job.write.percentiles_s[99.0] == pytest.approx(264192e-9)


def test_a_job_that_only_wrote_has_no_read_figures(recorded):
    report = read(recorded, "03_fio326dev_write_only.json")
    (job,) = report.jobs
    assert report.version == "3.26-19-ge7e53"
    assert job.read is None
    assert (job.write.bytes_per_s, job.write.iops) == (192599430, 734.70852)
    assert job.write.percentiles_s[99.0] == pytest.approx(114819072e-9)


def test_a_failed_job_gives_no_number_though_fio_printed_some(recorded):
    report = read(recorded, "04_fio313_error_lines_before_json.txt")
    assert report.failed.error == 42
    assert (report.failed.read, report.failed.write) == (None, None)
    assert len(report.messages) == 2
    assert "Illegal byte sequence" in report.messages[0]


def test_the_bins_of_json_plus_do_not_confuse(recorded):
    (job,) = read(recorded, "08_fio333_jsonplus_bins.json").jobs
    assert (job.read.bytes_per_s, job.read.iops, job.read.runtime_s) == (262144000, 4000.0, 0.008)
    assert job.read.percentiles_s[99.0] == pytest.approx(415744e-9)


def test_a_full_disk_is_a_failure_and_not_a_slow_disk(recorded):
    report = read(recorded, "09_fio333_enospc_stderr_mixed.txt")
    assert (report.failed.name, report.failed.error, report.failed.write) == ("wr", 28, None)
    assert any("No space left on device" in line for line in report.messages)


def test_every_recorded_output_is_read(recorded):
    names = sorted(path.name for path in (recorded / "fio_json").iterdir())
    assert len(names) >= 6
    for name in names:
        assert read(recorded, name).jobs


def operation(**more):
    return {"io_bytes": 1 << 20, "bw_bytes": 1000, "bw": 1, "iops": 1.0, "runtime": 10, "total_ios": 4, **more}


def document(**job):
    return {"fio version": "fio-3.33", "jobs": [{"jobname": "j", "error": 0, "write": operation(), **job}]}


def test_fio_2_counts_latency_in_microseconds_and_rates_in_kib():
    old = operation(clat={"percentile": {"99.000000": 5}})
    del old["bw_bytes"]
    (job,) = parse(json.dumps(document(write=old))).jobs
    assert job.write.percentiles_s == {99.0: pytest.approx(5e-6)}
    assert job.write.bytes_per_s == 1024


def test_missing_percentiles_are_none():
    (job,) = parse(json.dumps(document())).jobs
    assert job.write.percentiles_s is None


@pytest.mark.parametrize("field", ["error", "jobname"])
def test_a_job_without_its_error_or_name_is_no_report(field):
    broken = document()
    del broken["jobs"][0][field]
    with pytest.raises(FioError):
        parse(json.dumps(broken))


@pytest.mark.parametrize(
    "text", ["", "fio: command not found", "{}", '{"jobs": []}', '{"jobs": 3}', "[1, 2]", "{" * 500]
)
def test_text_without_a_report_is_refused(text):
    with pytest.raises(FioError):
        parse(text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_not_finite_is_refused(number):
    with pytest.raises(FioError):
        parse(json.dumps(document()).replace("1000", number))


@given(st.data())
def test_a_report_cut_short_anywhere_is_refused(data):
    whole = json.dumps(document(), indent=1)
    with pytest.raises(FioError):
        parse(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(st.text(max_size=40), st.text(max_size=40))
def test_text_around_the_json_changes_no_number(before, after):
    plain = parse(json.dumps(document()))
    assert parse(f"{before}\n{json.dumps(document())}\n{after}").jobs == plain.jobs
