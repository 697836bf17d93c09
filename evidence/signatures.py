"""A run signed with an ssh key: a detached signature over SHA256SUMS, which covers every file of the evidence.

Checksums protect against accidents; against forgery only the signature of whoever ran it does. Made and checked by
`ssh-keygen -Y` (OpenSSH 8.2 or newer), in the namespace "hwlottery": a signature made for anything else does not fit.
By hand: ssh-keygen -Y check-novalidate -n hwlottery -s SHA256SUMS.sig < SHA256SUMS
"""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Literal

from msgspec import Struct

from .errors import HwlotteryError
from .plain_files import NotPlain, small_file
from .reading import LARGEST_HEADER
from .writing import replace_file

NAMESPACE = "hwlottery"
SUMS, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
LARGEST_SIGNATURE = 64 * 2**10
LARGEST_KEYS = 2**20
_DEADLINE_S = 60.0  # a key on a token waits for a touch
_GOOD = re.compile(r"with (?P<key>\S+ key \S+)$")
_PUBLIC = re.compile(r"^(?P<key>[a-z0-9@.-]+ AAAA[A-Za-z0-9+/=]+)( .*)?$")
_SIGNER = "the given key"


class SigningError(HwlotteryError):
    """A run cannot be signed, or a signature not checked; the message says what to do."""


class Signature(Struct, frozen=True, kw_only=True):
    """What is known of a run's signature.

    `state`: unsigned; signed (it fits, by whom was not asked); trusted (it fits, by `signer`); bad (it does not fit, or
    nobody who is trusted made it). `key` is its kind and fingerprint, `detail` why it is bad.
    """

    state: Literal["unsigned", "signed", "trusted", "bad"]
    key: str = ""
    signer: str = ""
    detail: str = ""


def try_key(key: Path) -> None:
    """Sign nothing, to learn before a run whether a key can sign. Raises SigningError."""
    _signed(b"", key)


def sign(run: Path, key: Path) -> Path:
    """Sign a finished run and return the file of the signature; one that stood there is replaced.

    `key`: a private key, or a public one whose private key an ssh-agent holds. Raises SigningError, OSError.
    """
    try:
        sums = small_file(run / SUMS, LARGEST_HEADER)
    except FileNotFoundError:
        raise SigningError(f"{run} has no {SUMS}: the run did not finish; go on with --resume {run}") from None
    except NotPlain as error:
        raise SigningError(f"{run / SUMS}: {error}") from error
    place = run / SIGNATURE
    replace_file(place, _signed(sums, key))
    return place


def signature_of(run: Path, *, allowed: Path | None = None, signer: Path | None = None) -> Signature:
    """What is known of a run's signature: by whom, where a file of allowed signers (man ssh-keygen) or the signer's
    public key is given. Raises SigningError where those cannot be read or ssh-keygen is missing."""
    trusted = _trusted(allowed, signer)
    try:
        signature, sums = small_file(run / SIGNATURE, LARGEST_SIGNATURE), small_file(run / SUMS, LARGEST_HEADER)
    except NotPlain as error:
        return Signature(state="bad", detail=f"{SIGNATURE} or {SUMS}: {error}")
    except FileNotFoundError:
        lost = (run / SIGNATURE).exists()
        return Signature(state="bad", detail=f"no {SUMS}") if lost else Signature(state="unsigned")
    with tempfile.TemporaryDirectory(prefix="hwlottery-signature-") as folder:
        return _checked(Path(folder), sums, signature, trusted)


def _checked(folder: Path, sums: bytes, signature: bytes, trusted: bytes | None) -> Signature:
    """Copies are checked: what stands in the run could be another file by the second look."""
    copy, allowed = folder / "signature", folder / "allowed"
    copy.write_bytes(signature)
    where = ("-s", str(copy))
    whole = _ssh_keygen("check-novalidate", "-n", NAMESPACE, *where, content=sums)
    if whole.returncode != 0:
        return Signature(state="bad", detail=f"it does not fit {SUMS}: altered after it was signed, or no signature")
    key = _key_in(whole.stdout)
    if trusted is None:
        return Signature(state="signed", key=key)
    allowed.write_bytes(trusted)
    found = _ssh_keygen("find-principals", *where, "-f", str(allowed), content=b"")
    for name in found.stdout.decode("utf-8", "replace").splitlines() if found.returncode == 0 else ():
        wanted = ("-n", NAMESPACE, *where, "-f", str(allowed), "-I", name)
        if _ssh_keygen("verify", *wanted, content=sums).returncode == 0:
            return Signature(state="trusted", key=key, signer=name)
    return Signature(state="bad", key=key, detail=f"it fits, but none who is trusted made it ({key})")


def _key_in(said: bytes) -> str:
    found = _GOOD.search(said.decode("utf-8", "replace").strip())
    return found["key"] if found else "a key that ssh-keygen does not name"


def _trusted(allowed: Path | None, signer: Path | None) -> bytes | None:
    """The text of a file of allowed signers, or one made of a public key alone."""
    file = allowed or signer
    if file is None:
        return None
    try:
        content = small_file(file.resolve(), LARGEST_KEYS)
    except (NotPlain, OSError) as error:
        raise SigningError(f"{file}: {getattr(error, 'strerror', None) or error}") from error
    if allowed is not None:
        return content
    found = _PUBLIC.match(content.decode("utf-8", "replace").strip())
    if found is None:
        raise SigningError(f"{file} is no public ssh key: give the .pub file of whoever signs")
    return f'"{_SIGNER}" {found["key"]}\n'.encode()


def _signed(content: bytes, key: Path) -> bytes:
    if not key.exists():
        raise SigningError(f"{key}: no such key (make one: ssh-keygen -t ed25519 -f {key})")
    if not key.is_file():
        raise SigningError(f"{key}: no plain file, so no key")
    done = _ssh_keygen("sign", "-n", NAMESPACE, "-f", str(key), content=content)
    if done.returncode != 0 or not done.stdout.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        raise SigningError(f"{key} cannot sign: {_why(done.stderr.decode('utf-8', 'replace'), key)}")
    return done.stdout


def _why(said: str, key: Path) -> str:
    """What ssh-keygen means, and what to do about it."""
    if "passphrase" in said:
        return f"it has a passphrase; put it into an ssh-agent first: ssh-add {key}"
    if "too open" in said:
        return f"others may read it: chmod 600 {key}"
    if "No private key found" in said:
        return "its private key is neither beside it nor in an ssh-agent"
    if "load public key" in said or "invalid format" in said:
        return "no ssh key"
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith("Signing data")]
    return lines[-1][:300] if lines else "ssh-keygen gave no signature"


def _ssh_keygen(action: str, *arguments: str, content: bytes) -> subprocess.CompletedProcess[bytes]:
    """One call of ssh-keygen, without a terminal: it cannot stop and ask for a passphrase."""
    command = ["ssh-keygen", "-Y", action, *arguments]
    try:
        return subprocess.run(
            command, input=content, capture_output=True, timeout=_DEADLINE_S, start_new_session=True, check=False
        )
    except FileNotFoundError:
        raise SigningError("ssh-keygen is not installed: apt-get install openssh-client") from None
    except subprocess.TimeoutExpired:
        raise SigningError(f"ssh-keygen gave no answer in {_DEADLINE_S:.0f} s") from None
