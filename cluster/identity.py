"""The TLS identity of a run: made anew for each, it is what lets a node's worker in.

The scheduler runs any code that is sent to it, so without an identity nothing listens. The identity travels over
stdin, or a launcher brings it in an environment variable or a file; never on a command line, in a log or in the run
directory.
"""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ..evidence import RunError
from ..evidence.plain_files import NotPlain, small_file

IDENTITY = "HWLOTTERY_IDENTITY"
IDENTITY_FILE = "HWLOTTERY_IDENTITY_FILE"
_IN_POD = "KUBERNETES_SERVICE_HOST"

# A node whose clock is wrong shall join and be named: the certificate is valid long before and after its making.
_VALID_AROUND = timedelta(days=400)
_NAME = "hwlottery-run"
_MOST = 1 << 16


class Identity(Struct, frozen=True, kw_only=True):
    """A certificate and its private key, both PEM. One pair serves all roles, as in distributed's own."""

    certificate: str
    key: str

    def __repr__(self) -> str:
        """Without the key: a repr ends up in logs."""
        return "Identity(…)"

    def security(self) -> Any:
        """The `distributed.security.Security` that requires it on every connection."""
        from distributed.security import Security

        roles = {
            f"tls_{role}_{part}": value
            for role in ("scheduler", "worker", "client")
            for part, value in (("cert", self.certificate), ("key", self.key))
        }
        return Security(require_encryption=True, tls_ca_file=self.certificate, **roles)


def new_identity() -> Identity:
    """A fresh identity for one run: an elliptic key (P-256) and its own certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, _NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _VALID_AROUND)
        .not_valid_after(now + _VALID_AROUND)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    return Identity(certificate=certificate.public_bytes(pem).decode(), key=private.decode())


def _usage() -> Any:
    """It signs itself and speaks for every role."""
    from cryptography import x509

    uses = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign")
    never = dict.fromkeys((*uses, "encipher_only", "decipher_only"), False)
    return x509.KeyUsage(digital_signature=True, key_cert_sign=True, **never)


def take_identity(env: "os._Environ[str]" = os.environ) -> Identity:
    """The run's identity as a launcher brought it; it is taken out of the environment, which child processes inherit.

    Raises RunError where there is none, or where others may read its file: nothing listens without one.
    """
    given, file = env.pop(IDENTITY, None), env.pop(IDENTITY_FILE, None)
    if given is None and file is not None:
        given = _private(Path(file), in_pod=_IN_POD in env)
    if given is None:
        raise RunError(
            f"no identity for this run, so nothing may listen: set {IDENTITY}, or {IDENTITY_FILE} to a file of mode "
            "0600 that all nodes see (hwlottery launch slurm and kubernetes do; else python -m "
            "hwlottery.cluster.identity makes one)"
        )
    try:
        return msgspec.json.decode(given, type=Identity)
    except msgspec.MsgspecError:
        raise RunError(
            f"{IDENTITY} or its file holds no identity: make one with python -m hwlottery.cluster.identity"
        ) from None


def forget_identity(env: "os._Environ[str]" = os.environ) -> None:
    """Take an identity that nobody needs out of the environment, which child processes inherit."""
    for name in (IDENTITY, IDENTITY_FILE):
        env.pop(name, None)


def _private(file: Path, *, in_pod: bool) -> str:
    """What only this user may read. In a pod its group may too: that is the pod's own (fsGroup), and it gets Kubernetes
    to add the group's right to every file of a Secret."""
    try:
        if file.stat().st_mode & (0o037 if in_pod else 0o077):
            raise RunError(f"{file} may be read by others: chmod 600 {file}")
        return small_file(Path(os.path.realpath(file)), _MOST).decode("utf-8")  # a Secret's files are links
    except NotPlain as error:
        raise RunError(f"{file}: {error}") from error
    except OSError as error:
        raise RunError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError:
        return ""  # no identity, and said so


if __name__ == "__main__":
    # For a job script: HWLOTTERY_IDENTITY=$(python -m hwlottery.cluster.identity). One line of JSON.
    import sys

    sys.stdout.write(msgspec.json.encode(new_identity()).decode() + "\n")
