"""The one reader of YAML: plain data within limits, or one line that says what is wrong and where."""

import math
import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hwlottery.evidence.plain_yaml import LARGEST, UnsafeYaml, plain_documents, plain_text

scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
plain = st.recursive(
    scalars | st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4),
    max_leaves=20,
)


def refusal(text: str) -> str:
    with pytest.raises(UnsafeYaml) as refused:
        plain_documents(text)
    told = str(refused.value)
    assert "\n" not in told
    assert len(told) < 500
    return told


@given(plain)
def test_plain_data_comes_back_as_it_was_written(data: Any) -> None:
    assert plain_documents(yaml.safe_dump(data)) == [data]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: &a [x, x]\nc: [*a, *a]\n", "line 3: aliases (*name) are not allowed"),
        ("a: 1\nb: !!python/object/apply:os.system ['true']\n", "line 2: tags (!name) are not allowed"),
        ("!!bool maybe", "tags"),  # PyYAML's own constructors raise KeyError, IndexError and AttributeError on these
        ("!!int ''", "tags"),
        ("!!timestamp x", "tags"),
        ("a: {b: 1, b: 2}", "line 1: key 'b' stands twice"),
        ("a: 1\nb: 2\na: 3\n", "line 1: key 'a' stands twice"),
        ("[" * 13 + "]" * 13, "line 1: nested deeper than 12"),
        ("? " * 13, "line 1: nested deeper than 12"),
        ("a: [" + "1," * 20_000 + "]", "over 20000 values"),
        ("#" * (LARGEST + 1), "over 256 KiB"),
        ("x: .nan", "line 1: '.nan' is no finite number of 64 bits"),
        ("x: 1.0e+999", "is no finite number"),
        ("x: -.inf", "'-.inf' is no finite number"),
        ("x: 9223372036854775808", "is no finite number"),
        ("x: 0x" + "f" * 100_000, "is no finite number"),
        ("x: 1" + ":59" * 80_000, "is no finite number"),
        ("x: 2026-13-45", "no valid YAML: month must be in 1..12"),
        ("? [a]\n: b", "no valid YAML: while constructing a mapping"),
        ("\x00", "no valid YAML: unacceptable character"),
        ("a: [", "no valid YAML: while parsing"),
    ],
)
def test_what_could_do_harm_or_mean_two_things_is_refused_with_its_line(text: str, told: str) -> None:
    began = time.process_time()
    message = refusal(text)
    assert told in message
    assert time.process_time() - began < 20


_TOKENS = [*"-?:,[]{}#&*!|>'\"%@`~ \n\tab_19",
    "b: ", "- ", "---\n", "...\n", "<<: ", "!!", "!<x>", ":59", ".inf", "e+9",
    "2026-01-01", "T25:00:00+99:99", "0x", "0b",
    "true", "null", "\\x", "\u202e", "\ufeff", "int ", "binary ",
]  # fmt: skip
_words = st.sampled_from(_TOKENS)


@settings(max_examples=500, deadline=None)
@given(st.lists(_words, max_size=24).map("".join) | st.binary(max_size=100).map(lambda raw: raw.decode("latin-1")))
def test_any_text_is_plain_finite_data_or_one_line(text: str) -> None:
    try:
        documents = plain_documents(text)
    except UnsafeYaml as error:
        told = str(error)
        assert "\n" not in told
        return
    for value in _leaves(documents):
        assert not isinstance(value, float) or math.isfinite(value)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for one in (*value, *value.values()) for leaf in _leaves(one)]
    return [leaf for one in value for leaf in _leaves(one)] if isinstance(value, list | tuple) else [value]


# --- files --------------------------------------------------------------------------------------------------------


def unreadable(file: Path) -> str:
    with pytest.raises(UnsafeYaml) as refused:
        plain_text(file)
    return str(refused.value)


def test_only_plain_files_are_read_and_pipes_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert unreadable(tmp_path / "pipe") == "no plain file: not read"
    assert unreadable(Path("/dev/zero")) == "no plain file: not read"
    assert unreadable(tmp_path) == "no plain file: not read"
    assert unreadable(tmp_path / "none") == "cannot be read: No such file or directory"
    assert unreadable(Path("a\x00b")) == "cannot be read: embedded null byte"
    (tmp_path / "ring").symlink_to("ring")
    assert unreadable(tmp_path / "ring") == "a link: not followed"


def test_a_users_own_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there.yaml").write_text("a: 1\n")
    (tmp_path / "link.yaml").symlink_to("there.yaml")
    assert plain_text(tmp_path / "link.yaml") == "a: 1\n"


def test_a_file_that_is_too_large_or_no_text_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as sparse:
        sparse.truncate(2**40)
    assert unreadable(tmp_path / "large") == "over 256 KiB: not read"
    (tmp_path / "latin").write_bytes("a: Gr\xf6\xdfe".encode("latin-1"))
    assert unreadable(tmp_path / "latin") == "cannot be read: not UTF-8 text (byte 5)"
    (tmp_path / "utf-16").write_bytes("a: 1".encode("utf-16"))
    assert unreadable(tmp_path / "utf-16") == "cannot be read: not UTF-8 text (byte 0)"
