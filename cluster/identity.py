"""The TLS identity of a run: made anew for each, it is what lets a node's worker in.

The scheduler runs any code that is sent to it, so without an identity nothing listens. The identity travels over
stdin; never on a command line, in a log or in the run directory.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

# A node whose clock is wrong shall join and be named: the certificate is valid long before and after its making.
_VALID_AROUND = timedelta(days=400)
_NAME = "hwlottery-run"


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


if __name__ == "__main__":
    # For a job script: HWLOTTERY_IDENTITY=$(python -m hwlottery.cluster.identity). One line of JSON.
    import sys

    import msgspec

    sys.stdout.write(msgspec.json.encode(new_identity()).decode() + "\n")
