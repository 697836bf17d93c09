"""Runs signed with real ssh keys: who signed is named, what was altered is refused, what is unsigned is said."""

import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from generated_runs import write_run

from hwlottery.cli import cli
from hwlottery.commands.answers import sign_measured
from hwlottery.evidence import read_run
from hwlottery.evidence.plain_files import NotPlain, small_file
from hwlottery.evidence.signatures import SigningError, sign, signature_of, try_key
from hwlottery.evidence.writing import write_checksums


def make_key(place: Path, passphrase: str = "") -> Path:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "alice@example.org", "-f", str(place)]
    subprocess.run(command, check=True)
    return place


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the keys of alice and bob, and one with a passphrase."""
    place = tmp_path_factory.mktemp("keys")
    make_key(place / "alice")
    make_key(place / "bob")
    make_key(place / "locked", "secret")
    (place / "allowed").write_text(f"alice@example.org {(place / 'alice.pub').read_text()}")
    (place / "only_bob").write_text(f"bob@example.org {(place / 'bob.pub').read_text()}")
    return place


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("signed") / "run", nodes=2, accelerators=1)


@pytest.fixture
def run(tmp_path: Path, original: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "run"))


def ask(command: str, *words: object) -> Result:
    return CliRunner().invoke(cli, [command, *map(str, words)])


def test_a_signed_run_says_with_which_key_and_by_whom(run: Path, keys: Path) -> None:
    assert ask("sign", run, "--key", keys / "alice").exit_code == 0
    told = ask("verify", run)
    assert told.exit_code == 0
    assert "signed with ED25519 key SHA256:" in told.stdout
    assert "alice" not in told.stdout, "a comment in a key names nobody"
    known = ask("verify", run, "--allowed-signers", keys / "allowed")
    assert known.exit_code == 0
    assert "signed by alice@example.org, ED25519 key SHA256:" in known.stdout
    assert ask("verify", run, "--signer", keys / "alice.pub").exit_code == 0


def test_ssh_keygen_itself_checks_the_signature_as_the_docs_say(run: Path, keys: Path) -> None:
    sign(run, keys / "alice")
    command = ["ssh-keygen", "-Y", "check-novalidate", "-n", "hwlottery", "-s", str(run / "SHA256SUMS.sig")]
    done = subprocess.run(command, input=(run / "SHA256SUMS").read_bytes(), capture_output=True, check=False)
    assert done.returncode == 0


def test_an_unsigned_run_says_so_and_is_refused_only_where_a_signature_is_asked_for(run: Path, keys: Path) -> None:
    told = ask("verify", run)
    assert (told.exit_code, told.stdout.splitlines()[-1]) == (0, "not signed")
    assert ask("verify", run, "--allowed-signers", keys / "allowed").exit_code == 6
    assert ask("verify", run, "--signer", keys / "alice.pub").exit_code == 6


def test_a_record_altered_with_its_checksums_made_anew_is_refused(run: Path, keys: Path) -> None:
    sign(run, keys / "alice")
    (run / "logs" / "burn_in-1.log").write_text("step 1 loss 0.1\n")
    write_checksums(run)
    assert not read_run(run).problems, "the checksums alone say nothing"
    told = ask("verify", run)
    assert told.exit_code == 6
    assert "signature refused" in told.stdout


def test_the_key_of_somebody_else_is_refused(run: Path, keys: Path) -> None:
    sign(run, keys / "bob")
    for trusted in (("--allowed-signers", keys / "allowed"), ("--signer", keys / "alice.pub")):
        told = ask("verify", run, *trusted)
        assert told.exit_code == 6
        assert "none who is trusted" in told.stdout
    assert ask("verify", run, "--allowed-signers", keys / "only_bob").exit_code == 0


def test_a_signature_made_for_something_else_does_not_fit(run: Path, keys: Path) -> None:
    command = ["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", str(keys / "alice")]
    done = subprocess.run(command, input=(run / "SHA256SUMS").read_bytes(), capture_output=True, check=True)
    (run / "SHA256SUMS.sig").write_bytes(done.stdout)
    assert signature_of(run).state == "bad"


@pytest.mark.parametrize("content", [b"", b"garbage", b"\xff" * 100, b"-----BEGIN SSH SIGNATURE-----\n" * 3])
def test_what_is_no_signature_is_refused(run: Path, content: bytes) -> None:
    (run / "SHA256SUMS.sig").write_bytes(content)
    assert ask("verify", run).exit_code == 6


def test_a_link_a_pipe_or_a_huge_file_in_the_place_of_a_signature_is_refused_and_not_read(run: Path) -> None:
    place = run / "SHA256SUMS.sig"
    place.symlink_to("/etc/hostname")
    assert "not followed" in ask("verify", run).stdout
    place.unlink()
    os.mkfifo(place)
    assert "no plain file" in ask("verify", run).stdout
    place.unlink()
    with place.open("wb") as huge:
        huge.truncate(10**12)
    assert "over 64 KiB" in ask("verify", run).stdout


def test_a_signature_without_checksums_is_refused(run: Path, keys: Path) -> None:
    sign(run, keys / "alice")
    (run / "SHA256SUMS").unlink()
    assert signature_of(run).state == "bad"


def test_json_tells_the_signature(run: Path, keys: Path) -> None:
    sign(run, keys / "alice")
    told = msgspec.json.decode(ask("verify", run, "--json", "--signer", keys / "alice.pub").stdout)
    assert told["signature"]["state"] == "trusted"
    assert told["signature"]["key"].startswith("ED25519 key SHA256:")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none", "no such key"),
        ("locked", "ssh-add"),
        ("open", "chmod 600"),
        ("noise", "no ssh key"),
        ("lone.pub", "agent"),
    ],
)
def test_a_key_that_cannot_sign_is_one_line_that_says_what_to_do(run: Path, keys: Path, name: str, why: str) -> None:
    if name == "open":
        shutil.copy(keys / "bob", keys / name)
        shutil.copy(keys / "bob.pub", keys / "open.pub")
        (keys / name).chmod(0o644)
    elif name == "noise":
        (keys / name).write_bytes(os.urandom(200))
        (keys / name).chmod(0o600)
    elif name == "lone.pub":
        shutil.copy(keys / "bob.pub", keys / name)
    with pytest.raises(SigningError, match=why):
        try_key(keys / name)
    told = ask("sign", run, "--key", keys / name)
    assert (told.exit_code, told.stderr.count("\n")) == (2, 1)
    assert not (run / "SHA256SUMS.sig").exists()


def test_a_key_in_an_agent_signs_by_its_public_part(run: Path, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    values = dict(part.split("=", 1) for part in agent.replace("\n", ";").split(";") if "=" in part)
    try:
        for name, value in values.items():
            monkeypatch.setenv(name.strip(), value)
        subprocess.run(["ssh-add", "-q", str(keys / "bob")], check=True, capture_output=True)
        shutil.copy(keys / "bob.pub", keys / "held.pub")
        sign(run, keys / "held.pub")
        assert signature_of(run, signer=keys / "bob.pub").state == "trusted"
    finally:
        subprocess.run(["ssh-agent", "-k"], check=True, capture_output=True)


def test_a_run_that_is_not_whole_is_not_signed(tmp_path: Path, run: Path, keys: Path) -> None:
    (run / "facts.jsonl").write_bytes((run / "facts.jsonl").read_bytes() + b"x")
    told = ask("sign", run, "--key", keys / "alice")
    assert (told.exit_code, "is not whole" in told.stderr) == (2, True)
    cut = write_run(tmp_path / "cut", nodes=2, accelerators=1, faults=["unfinished@cluster"])
    with pytest.raises(SigningError, match="did not finish"):
        sign(cut, keys / "alice")


def test_a_key_that_fails_after_the_run_costs_the_signature_alone(
    run: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sign_measured(run, keys / "gone")
    assert f"hwlottery sign {run}" in capsys.readouterr().err
    assert not read_run(run).problems


def test_a_run_does_not_begin_with_a_key_that_cannot_sign(tmp_path: Path, keys: Path) -> None:
    told = ask("run", "--profile", "smoke", "--out", tmp_path / "out", "--sign", keys / "locked")
    assert (told.exit_code, told.stderr.count("\n")) == (2, 1)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["", "no key", "-----BEGIN OPENSSH PRIVATE KEY-----\nx", "ssh-ed25519 AAAA\nx y"])
def test_what_is_no_public_key_is_refused_as_the_signer(run: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "k.pub").write_text(text)
    told = ask("verify", run, "--signer", tmp_path / "k.pub")
    assert (told.exit_code, told.stderr.count("\n")) == (2, 1)


def test_a_small_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 10)
    assert small_file(tmp_path / "f", 10) == b"x" * 10
    with pytest.raises(NotPlain):
        small_file(tmp_path / "f", 9)
    with pytest.raises(NotPlain):
        small_file(tmp_path, 9)


@pytest.mark.slow
def test_a_real_run_is_signed_when_it_has_finished(tmp_path: Path, keys: Path) -> None:
    told = ask(
        "run", "--profile", Path(__file__).parent / "profiles" / "tiny.yaml", "--policy", "smoke",
        "--only", "matmul", "--scratch", tmp_path, "--out", tmp_path / "out", "--sign", keys / "alice",
    )  # fmt: skip
    assert told.exit_code in (0, 3, 4, 5), told.output
    assert signature_of(tmp_path / "out", signer=keys / "alice.pub").state == "trusted"
