"""Whatever a run directory or a document from somebody else holds: nothing of it runs, nothing outside is touched,
memory stays bounded, and what a user can mend is one line. Every command meets every input, in a process of its own."""

import ctypes
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from generated_runs import START, make_run, write_records, write_run
from odd_files import bound_socket

from hwlottery.cli import cli
from hwlottery.evidence import AnyRecord, Event, Fact, TrialPlan
from hwlottery.evidence.reading import read_run
from hwlottery.evidence.record_file import MOST_UNREADABLE

MOST_MB = 1200  # resident, of which the libraries take some 300
UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
HOSTILE = "</script><img src=x onerror=alert(1)>\x1b]0;owned\x07\x1b[31m[bold]\u202e\n=cmd|'/c x'!A1 --exclude"


# --- the process that runs commands, and what it may touch --------------------------------------------------------


class Outside:
    """A folder that nothing may touch, watched by the kernel, which sees what libraries in C open as well."""

    EVER = 0x00000FFF  # IN_ALL_EVENTS

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "nodes").mkdir(parents=True)
        (folder / "secret").write_text('{"type":"fact","number":1,"subject":"n00","key":"canary","value":"canary"}\n')
        pq.write_table(telemetry(3), folder / "nodes" / "0000.parquet")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._watch = self._libc.inotify_init1(os.O_NONBLOCK)
        for place in (folder, folder / "nodes"):
            assert self._libc.inotify_add_watch(self._watch, os.fsencode(place), self.EVER) >= 0

    def touched(self) -> list[str]:
        """The names of what was opened, read, changed or made since the last question. A folder's own listing too."""
        found = []
        try:
            content = os.read(self._watch, 2**16)
        except BlockingIOError:
            return []
        while content:
            _, _, _, length = struct.unpack_from("iIII", content)
            found.append(content[16 : 16 + length].rstrip(b"\0").decode() or "the folder")
            content = content[16 + length :]
        return found


@dataclass(kw_only=True)
class Answer:
    """How a command ended."""

    code: int
    peak_mb: float
    seen: list[list[str]]
    out: str
    err: str


class Commands:
    """The warm process of tests/hostile_commands.py."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        server = [sys.executable, str(Path(__file__).with_name("hostile_commands.py"))]
        self._process = subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout
        assert json.loads(self._process.stdout.readline())["ready"]

    def run(self, *argv: object) -> Answer:
        assert self._process.stdin
        assert self._process.stdout
        request = {"argv": [str(one) for one in argv], "cwd": str(self.folder), "out": str(self.folder)}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        printed = {name: (self.folder / f"std{name}").read_bytes().decode() for name in ("out", "err")}
        return Answer(**told, **printed)

    def close(self) -> None:
        with self._process:  # closes its pipes, and waits for its end
            pass


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    running = Commands(tmp_path_factory.mktemp("printed"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Outside:
    return Outside(tmp_path_factory.mktemp("outside") / "there")


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("healthy") / "run", nodes=2, accelerators=1)


@pytest.fixture
def run(healthy: Path, tmp_path: Path) -> Iterator[Path]:
    yield shutil.copytree(healthy, tmp_path / "run")
    # pytest's own clearing recurses, and would fail at a later session's end on folders that lie this deep.
    subprocess.run(["rm", "-rf", "--", tmp_path / "run"], check=False)


# --- what commands may answer -------------------------------------------------------------------------------------

HISTORY_FILES = ("-o", "OUT/history.html", "--junit", "OUT/history.xml", "--prometheus", "OUT/history.prom")
JUDGES = frozenset({0, 3, 4, 5})
# Of a command on a run: its arguments, and the codes where the run is whole, and where its record is damaged.
ON_RUNS: dict[str, tuple[list[str], set[int], set[int]]] = {
    "score": (["score", "RUN"], {0, 3, 4, 5}, {3, 4}),
    "score --json": (["score", "RUN", "--json"], {0, 3, 4, 5}, {3, 4}),
    "report": (["report", "RUN", "-o", "OUT/page.html"], {0}, {0}),
    "verify": (["verify", "RUN"], {0, 6}, {6}),
    "csv": (["export", "RUN", "--format", "csv"], {0}, {0}),
    "junit": (["export", "RUN", "--format", "junit"], {0}, {0}),
    "prometheus": (["export", "RUN", "--format", "prometheus"], {0}, {0}),
    "ticket": (["export", "RUN", "--format", "ticket", "-o", "OUT/ticket.zip"], {0, 2}, {0, 2}),
    "ticket in text": (["export", "RUN", "--format", "ticket"], {0, 2}, {0, 2}),
    "claim": (["export", "RUN", "--format", "claim"], {0, 2}, {0, 2}),
    "exclude": (["export", "RUN", "--format", "exclude"], {0, 2}, {0}),
    "hostfile": (["export", "RUN", "--format", "hostfile"], {0, 2, 3, 4}, {3, 4}),
    "compare": (["compare", "RUN", "HEALTHY"], {0, 2, 3, 4, 5}, {0, 2, 3, 4, 5}),
    "history": (["history", "FOLDER", *HISTORY_FILES], {0, 2, 3, 4, 5, 6}, {0, 2, 3, 4, 5, 6}),
    "recheck": (["recheck", "--baseline", "RUN", "--dry-run"], {0, 2}, {0, 2}),
}


def _exists(argv: list[str]) -> bool:
    command = cli.commands.get(argv[0])
    formats = [choice for one in getattr(command, "params", []) for choice in getattr(one.type, "choices", [])]
    return command is not None and ("--format" not in argv or argv[argv.index("--format") + 1] in formats)


THERE = {name: one for name, one in ON_RUNS.items() if _exists(one[0])}


def assert_harmless(answer: Answer, outside: Outside, may_write: tuple[Path, ...], codes: set[int], what: str) -> None:
    """The promises that hold for every command on every input."""
    assert answer.code in codes, f"{what}: exit code {answer.code}: {answer.err[-1500:]}"
    assert outside.touched() == [], what
    assert answer.peak_mb < MOST_MB, f"{what}: {answer.peak_mb:.0f} MB"
    assert "Traceback" not in answer.err
    if answer.code == 2:
        line = answer.err.splitlines()[-1]
        assert answer.err == line + "\n", f"{what}: {answer.err}"
        assert line.startswith("hwlottery: "), f"{what}: {answer.err}"
        assert not UNFIT.search(answer.err.rstrip("\n")), f"{what}: {answer.err!r}"
    places = ("/dev/null", *map(str, may_write))
    for event, *named in answer.seen:
        inside = all(name.startswith(places) or name in ("None", "-1", "0") or name.isdigit() for name in named[:1])
        assert event in ("open", "os.rename", "os.remove", "os.chmod", "os.mkdir"), f"{what}: {event} {named}"
        assert inside, f"{what}: {event} {named}"


def meet_all(
    run: Path, commands: Commands, outside: Outside, healthy: Path, kind: str, *, page: bool = True
) -> dict[str, Answer]:
    """Every command on a run; `kind` says what it must answer. Without `page` none is drawn, which takes longest."""
    answers = {}
    for name, (argv, whole, damaged) in THERE.items():
        if name == "report" and kind == "damaged" and not page:
            continue
        codes = {"refused": {2}, "damaged": damaged, "whole": whole, "unjudged": {2, 6} if name == "verify" else {0, 2}}
        places = {"RUN": run, "HEALTHY": healthy, "FOLDER": run.parent}
        filled = [str(places[one]) if one in places else one.replace("OUT/", f"{commands.folder}/") for one in argv]
        expected = codes[kind] if name != "history" else damaged
        answers[name] = commands.run(*filled)
        assert_harmless(answers[name], outside, (run, commands.folder), expected, f"{name} of {kind} {run}")
    return answers


# --- run directories ----------------------------------------------------------------------------------------------

ON_THE_PAGE = ("logs", "telemetry", "folders", "verdict and the page", "numbered")
Make = Callable[[Path, Outside], None]
INPUTS: dict[str, tuple[str, Make]] = {}


def hostile(kind: str) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        INPUTS[make.__name__.replace("_", " ")] = (kind, make)
        return make

    return add


def sparse(file: Path, size: int) -> None:
    with file.open("ab") as opened:
        opened.truncate(size)


def in_header(run: Path, **changed: Any) -> None:
    header = json.loads((run / "run.json").read_bytes())
    (run / "run.json").write_text(json.dumps(header | changed))


def instead(place: Path, make: Callable[[Path], Any]) -> None:
    shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    make(place)


@hostile("refused")
def a_header_nested_a_million_deep(run: Path, _: Outside) -> None:
    (run / "run.json").write_bytes(b'{"format":2,"profile":' + b"[" * 1_000_000)


@hostile("refused")
def a_header_of_a_terabyte(run: Path, _: Outside) -> None:
    sparse(run / "run.json", 2**40)


@hostile("refused")
def a_pipe_for_a_header(run: Path, _: Outside) -> None:
    instead(run / "run.json", os.mkfifo)


@hostile("refused")
def a_link_for_a_header(run: Path, outside: Outside) -> None:
    instead(run / "run.json", lambda place: place.symlink_to(outside.folder / "secret"))


@hostile("refused")
def a_header_in_another_encoding(run: Path, _: Outside) -> None:
    (run / "run.json").write_bytes((run / "run.json").read_text().encode("utf-16"))


@hostile("refused")
def a_seed_of_a_thousand_digits(run: Path, _: Outside) -> None:
    text = (run / "run.json").read_text()
    (run / "run.json").write_text(re.sub(r'"seed":\s*\d+', '"seed":' + "9" * 1000, text))


@hostile("refused")
def a_promise_of_two_hundred_thousand_nodes(run: Path, _: Outside) -> None:
    in_header(run, promised=[{"node": f"m{n}", "device": "cuda", "ranks": ["gpu0"]} for n in range(200_000)])


@hostile("refused")
def a_node_of_a_million_accelerators(run: Path, _: Outside) -> None:
    in_header(run, promised=[{"node": "n00", "device": "cuda", "ranks": ["gpu0"] * 1_000_000}])


def document(text: str, name: str = "x") -> dict[str, str]:
    return {"name": name, "sha256": "0" * 64, "text": text}


@hostile("unjudged")
def a_policy_of_aliases_in_the_header(run: Path, _: Outside) -> None:
    laughs = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else 'x'}]\n" for n in range(12))
    in_header(run, policy=document(laughs))


@hostile("unjudged")
def a_policy_in_the_header_that_names_a_python_object(run: Path, _: Outside) -> None:
    in_header(run, policy=document("!!python/object/apply:os.system ['touch owned']"))


@hostile("unjudged")
def a_policy_in_the_header_that_extends_a_file(run: Path, outside: Outside) -> None:
    in_header(run, policy=document(f"name: x\nextends: {outside.folder / 'secret'}\n"))


@hostile("unjudged")
def references_of_fifteen_megabytes_in_the_header(run: Path, _: Outside) -> None:
    in_header(run, references=document("# " + "x" * 15_000_000))


@hostile("damaged")
def a_record_numbered_beyond_all_others(run: Path, _: Outside) -> None:
    text = (run / "facts.jsonl").read_text()
    (run / "facts.jsonl").write_text(re.sub(r'"number":\d+', '"number":1000000000000000', text, count=1))


@hostile("damaged")
def a_line_without_end(run: Path, _: Outside) -> None:
    sparse(run / "facts.jsonl", 2**27)


@hostile("damaged")
def records_of_a_terabyte(run: Path, _: Outside) -> None:
    for name in ("facts.jsonl", "measurements.jsonl", "events.jsonl", "plan.jsonl"):
        sparse(run / name, 2**40)


@hostile("damaged")
def a_pipe_and_a_socket_for_records(run: Path, _: Outside) -> None:
    instead(run / "facts.jsonl", os.mkfifo)
    instead(run / "plan.jsonl", bound_socket)


@hostile("damaged")
def links_for_records(run: Path, outside: Outside) -> None:
    for name in ("facts.jsonl", "measurements.jsonl"):
        instead(run / name, lambda place: place.symlink_to(outside.folder / "secret"))


@hostile("damaged")
def a_device_for_records(run: Path, _: Outside) -> None:
    instead(run / "facts.jsonl", lambda place: place.symlink_to("/dev/zero"))


@hostile("damaged")
def a_folder_for_records_and_sums(run: Path, _: Outside) -> None:
    for name in ("events.jsonl", "SHA256SUMS", "verdict.json"):
        instead(run / name, Path.mkdir)


@hostile("damaged")
def a_million_lines_that_cannot_be_read(run: Path, _: Outside) -> None:
    with (run / "events.jsonl").open("ab") as more:
        more.write(b"x\n" * 1_000_000)


@hostile("damaged")
def lines_nested_deep_or_of_numbers_without_end(run: Path, _: Outside) -> None:
    head = b'{"type":"measurement","number":9,"metric":"memory.copy","subject":"n00/gpu0",'
    with (run / "measurements.jsonl").open("ab") as more:
        more.write(b"[" * 1_000_000 + b"\n" + b'{"type":' * 100_000 + b"\n" + b"9" * 3_000_000 + b"\n")
        more.write(head + b'"value":1e400}\n' + head + b'"value":' + b"9" * 500 + b"}\n")
        more.write(head + b'"samples":[' + b"1," * 1_900_000 + b"1]}\n")


@hostile("damaged")
def records_in_other_encodings(run: Path, _: Outside) -> None:
    text = (run / "facts.jsonl").read_text()
    (run / "facts.jsonl").write_bytes(text.encode("utf-16") + b"\n\xff\xfe\xc0\x80\n\xed\xa0\x80\n")


@hostile("damaged")
def links_out_of_logs_and_telemetry(run: Path, outside: Outside) -> None:
    trial = msgspec.json.decode((run / "plan.jsonl").read_bytes().splitlines()[0])["trial"]
    (run / "logs" / f"{trial}.log").symlink_to(outside.folder / "secret")
    (run / "telemetry" / "n00").symlink_to(outside.folder / "nodes")
    (run / "telemetry" / "n01").mkdir()
    (run / "telemetry" / "n01" / "0000.parquet").symlink_to(outside.folder / "nodes" / "0000.parquet")


@hostile("damaged")
def logs_and_telemetry_that_are_links(run: Path, outside: Outside) -> None:
    instead(run / "logs", lambda place: place.symlink_to(outside.folder))
    instead(run / "telemetry", lambda place: place.symlink_to(outside.folder))


@hostile("damaged")
def a_thousand_folders_one_in_another(run: Path, _: Outside) -> None:
    for place in (run / "logs", run / "telemetry"):
        for depth in range(1, 1001):  # mkdir(parents=True) recurses, and how deep is left for it depends on pytest
            place.joinpath(*["d"] * depth).mkdir()


@hostile("damaged")
def a_log_of_a_terabyte(run: Path, _: Outside) -> None:
    sparse(run / "logs" / "burn_in-1.log", 2**40)


@hostile("damaged")
def pipes_among_logs_and_telemetry(run: Path, _: Outside) -> None:
    trial = msgspec.json.decode((run / "plan.jsonl").read_bytes().splitlines()[0])["trial"]
    os.mkfifo(run / "logs" / f"{trial}.log")
    (run / "telemetry" / "n00").mkdir()
    os.mkfifo(run / "telemetry" / "n00" / "0000.parquet")


@hostile("damaged")
def sums_of_files_elsewhere(run: Path, outside: Outside) -> None:
    with (run / "SHA256SUMS").open("a") as sums:
        for name in (outside.folder / "secret", f"../../{outside.folder.parent.name}/there/secret", "/etc/passwd"):
            sums.write("0" * 64 + f"  {name}\n")


@hostile("damaged")
def sums_of_a_terabyte(run: Path, _: Outside) -> None:
    sparse(run / "SHA256SUMS", 2**40)


@hostile("whole")
def links_where_the_verdict_and_the_page_are_written(run: Path, outside: Outside) -> None:
    (run / "verdict.json").symlink_to(outside.folder / "made")
    (run / "report.html").symlink_to(outside.folder / "secret")


def telemetry(rows: int, *, word: str = "temperature", **more: pa.Array) -> pa.Table:
    """A part as the sensors write it."""
    names = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([word]))
    minute = pa.array([datetime(2026, 11, 28, tzinfo=UTC)] * rows)
    values = {name: pa.array([60.0] * rows) for name in ("minimum", "mean", "maximum")}
    subject = pa.array(["n00/gpu0"] * rows)
    return pa.table({"subject": subject, "quantity": names.cast(pa.string()), "minute": minute, **values, **more})


def part(run: Path, node: str, table: pa.Table) -> None:
    (run / "telemetry" / node).mkdir()
    pq.write_table(table, run / "telemetry" / node / "0000.parquet", compression="zstd")


@hostile("damaged")
def telemetry_that_unpacks_to_gigabytes(run: Path, _: Outside) -> None:
    part(run, "n00", telemetry(3_000_000))
    part(run, "n01", telemetry(2_000, word="temperature" * 50_000))
    part(run, "n02", telemetry(3, word="\x1b[31m\u202e</script>"))
    part(run, "n03", telemetry(2).set_column(2, "minute", pa.array([[1.0] * 9] * 2)))
    for size in (0, 3, 10):
        (run / "telemetry" / "n00" / f"000{size}x.parquet").write_bytes(b"PAR1" + b"\xff" * 2**size + b"PAR1")


@pytest.mark.slow
@pytest.mark.parametrize("name", INPUTS)
def test_every_command_survives(name: str, run: Path, commands: Commands, outside: Outside, healthy: Path) -> None:
    kind, make = INPUTS[name]
    make(run, outside)
    outside.touched()
    meet_all(run, commands, outside, healthy, kind, page=any(word in name for word in ON_THE_PAGE))


def test_what_cannot_be_read_ends_the_reading_of_a_file(run: Path, outside: Outside) -> None:
    a_million_lines_that_cannot_be_read(run, outside)
    assert len(read_run(run).problems) < MOST_UNREADABLE + 100


# --- names --------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Named:
    """A whole run of which some names are hostile."""

    node: str = "n01"
    word: str = HOSTILE
    trial: str = "t"
    more: list[AnyRecord] = field(default_factory=list)

    def write(self, place: Path) -> Path:
        header, records = make_run(nodes=2, accelerators=1)
        text = msgspec.json.encode(header).decode().replace("n01", json.dumps(self.node)[1:-1])
        header = msgspec.json.decode(text, type=type(header))
        header = msgspec.structs.replace(header, run_id=self.word[:100], provider=self.word, cluster=self.word)
        renamed = [msgspec.json.decode(self._renamed(record), type=AnyRecord) for record in records]
        word = Fact(subject=self.node, key="software.kernel", value=self.word)
        event = Event(time=START, kind="xid", severity="error", subject=self.node, detail=self.word)
        return write_records(place, header, [*renamed, word, event, *self.more])

    def _renamed(self, record: AnyRecord) -> bytes:
        text = msgspec.json.encode(record).decode().replace("n01", json.dumps(self.node)[1:-1])
        plan = isinstance(record, TrialPlan)
        return text.replace('"trial":"matmul', f'"trial":"{self.trial}').encode() if plan else text.encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("node", "trial"),
    [
        (HOSTILE, "t"),
        ("n01\nn00 slots=9", "t"),
        ("--exclude=n00,n02", "t"),
        ("../../there/nodes", "../../there/secret"),
        ("n01", "../../../../../../../../etc/passwd"),
        ("\u202en01", "/dev/zero"),
        ("n01", "."),
    ],
)
def test_every_command_takes_names_as_words_alone(
    tmp_path: Path, node: str, trial: str, commands: Commands, outside: Outside, healthy: Path
) -> None:
    run = Named(node=node, trial=trial).write(tmp_path / "run")
    answers = meet_all(run, commands, outside, healthy, "whole")
    for name in ("score", "verify", "ticket in text", "exclude", "hostfile"):
        assert not UNFIT.search(answers[name].out), f"{name}: {answers[name].out!r}"
    json.loads(answers["score --json"].out)
    ET.fromstring(answers["junit"].out)
    ET.parse(commands.folder / "history.xml")
    assert not UNFIT.search((commands.folder / "history.prom").read_text())
    if answers["hostfile"].code == 0:
        assert {line.split()[0] for line in answers["hostfile"].out.splitlines()} <= {"n00", node}
    for file in ("page.html", "history.html"):
        page = (commands.folder / file).read_text()
        assert page.count("</script>") == page.count("<script")
        assert "<img" not in page
        assert not UNFIT.search(page)
        assert "canary" not in page
        assert "root:" not in page


# --- documents ----------------------------------------------------------------------------------------------------

TEXTS: dict[str, str | bytes | Callable[[Path], Any]] = {
    "aliases": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{c}: &{c} [{','.join([f'*{p}'] * 9)}]\n" for p, c in ("ab", "bc", "cd", "de")),
    "a python object": "!!python/object/apply:os.system ['touch owned']\n",
    "a python name": "name: !!python/name:os.system\n",
    "a tag that PyYAML itself stumbles over": "name: !!bool x\n",
    "nested deep": "[" * 100_000,
    "nested deep by keys": "? " * 100_000,
    "very many values": "checks: [" + "1," * 100_000 + "]",
    "a number of a hundred thousand digits": "name: " + "9" * 100_000,
    "a number to the base of sixty": "name: 1" + ":59" * 80_000,
    "a terabyte": lambda file: sparse(file, 2**40),
    "a pipe": os.mkfifo,
    "a socket": bound_socket,
    "a folder": Path.mkdir,
    "a device": lambda file: file.symlink_to("/dev/zero"),
    "another encoding": "name: x\n".encode("utf-16"),
    "no text": b"\xff\xfe\x00\x01\x02",
    "control characters": b"name: \x1b[31mred\x00\n",
    "control characters written out": '"\\e]0;owned\\a\\x1b[31m\\u202e\\n": 1\nname: "\\e[31m"\n',
    "markup": "'</script><img src=x onerror=alert(1)>': 1\n",
    "a key twice": "name: a\nname: b\n",
    "another file": "extends: /etc/passwd\nname: x\nchecks: []\n",
    "a file upwards": "extends: ../../../../etc/passwd\nname: x\n",
    "nothing": "",
    "just a word": "hello\n",
    "numbers that are none": "name: .nan\nslots: .inf\n",
    "keys that are none": "? {a: 1}\n: 2\n",
    "a date that is none": "name: 2026-99-99\n",
}
ON_DOCUMENTS: dict[str, list[str]] = {
    "score by a policy": ["score", "RUN", "--policy", "FILE"],
    "annex": ["annex", "--policy", "FILE"],
    "run by a policy": ["run", "--dry-run", "--policy", "FILE"],
    "run by a profile": ["run", "--dry-run", "--profile", "FILE"],
    "score by references": ["score", "RUN", "--references", "FILE"],
    "explain": ["explain", "h100-sxm-80", "--references", "FILE"],
    "score with costs": ["score", "RUN", "--costs", "FILE"],
}
# An empty file of references or costs says nothing wrong.
MAY_BE_EMPTY = ("score by references", "explain", "score with costs")


@pytest.mark.parametrize("what", TEXTS)
def test_a_hostile_document_is_one_line_in_every_command(
    what: str, healthy: Path, tmp_path: Path, commands: Commands, outside: Outside
) -> None:
    make = TEXTS[what]
    file = tmp_path / "theirs.yaml"
    if callable(make):
        make(file)
    else:
        file.write_bytes(make.encode() if isinstance(make, str) else make)
    for name, argv in ON_DOCUMENTS.items():
        filled = [{"RUN": str(healthy), "FILE": str(file)}.get(one, one) for one in argv]
        answer = commands.run(*filled)
        codes = {2} | (JUDGES if what == "nothing" and name in MAY_BE_EMPTY else set())
        assert_harmless(answer, outside, (healthy, commands.folder), codes, f"{name} of {what}")
        if answer.code == 2:
            assert "theirs.yaml" in answer.err
    assert not (commands.folder / "owned").exists()
