"""HWLOTTERY_NO_SKIPS=1: where everything must run, a test that was skipped has failed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ONE_TEST = "import pytest\n@pytest.mark.skip(reason='not today')\ndef test_it(): pass\n"
WHOLE_FILE = "import pytest\npytest.skip('not today', allow_module_level=True)\n"
IN_THE_TEST = "import pytest\ndef test_it(): pytest.skip('not today')\n"
EXPECTED_FAILURE = "import pytest\n@pytest.mark.xfail\ndef test_it(): assert False\n"


def run(folder: Path, text: str, no_skips: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text)
    environment = {
        **os.environ,
        "HWLOTTERY_NO_SKIPS": no_skips,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": str(Path(__file__).parent),
    }
    words = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", "test_it.py"]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("text", [ONE_TEST, WHOLE_FILE, IN_THE_TEST])
def test_a_skip_is_a_failure_where_everything_must_run(tmp_path, text):
    done = run(tmp_path, text, "1")
    assert done.returncode in (1, 2)
    assert "not today" in done.stdout
    assert run(tmp_path, text, "0").returncode in (0, 5)


def test_an_expected_failure_is_no_skip(tmp_path):
    assert run(tmp_path, EXPECTED_FAILURE, "1").returncode == 0
