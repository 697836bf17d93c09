"""What tests share: the recorded tool outputs, made-up /proc and /sys trees, and skips that count where they must."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
NO_SKIPS = os.environ.get("HWLOTTERY_NO_SKIPS") == "1"


@pytest.fixture(scope="session")
def recorded() -> Path:
    """Outputs of real tools, kept beside the repository: they are not ours to copy into it."""
    folder = Path(os.environ.get("HWLOTTERY_RECORDED") or ROOT.parent / "shared" / "recorded")
    if not (folder / "EXPECTED.md").is_file():
        pytest.skip(f"no recorded outputs at {folder}: set HWLOTTERY_RECORDED")
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., Path]:
    """Make a tree of files, links ("-> target") and folders (names that end in "/") as /proc and /sys have them."""

    def make(files: Mapping[str, str | bytes]) -> Path:
        for name, content in files.items():
            _make(tmp_path / "host" / name, name, content)
        return tmp_path / "host"

    return make


def _make(path: Path, name: str, content: str | bytes) -> None:
    if name.endswith("/"):
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str) and content.startswith("-> "):
        path.symlink_to(content[3:])
    elif isinstance(content, str):
        path.write_text(content + "\n")
    else:
        path.write_bytes(content)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """With HWLOTTERY_NO_SKIPS=1 a test that skips has failed: what was not run is no proof."""
    report = yield
    return _refuse_skip(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    """The same for a whole file that skips itself."""
    report = yield
    return _refuse_skip(report)


def _refuse_skip(report: Any) -> Any:
    if NO_SKIPS and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"HWLOTTERY_NO_SKIPS=1 and this did not run: {reason}"
    return report
