"""The TLS identity of a run: made anew for each, it is what lets a node's worker in.

The scheduler runs any code that is sent to it, so without an identity nothing listens. The identity travels over
stdin; never on a command line, in a log or in the run directory.
"""

from typing import Any

from msgspec import Struct


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
    """A fresh identity for one run."""
    from distributed.security import Security

    made = Security.temporary()
    return Identity(certificate=made.tls_worker_cert, key=made.tls_worker_key)
