"""Who may talk to a run: those with its TLS identity and nobody else, shown at its real sockets."""

import contextlib
import re
import socket
import ssl
import subprocess

import psutil
import pytest

from hwlottery.cluster.control import ControlPlane
from hwlottery.cluster.identity import Identity, new_identity
from hwlottery.cluster.network import address_towards, host_and_port, interface_of
from hwlottery.cluster.node import NodeConfig


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plane")
    before = listening({psutil.Process().pid})
    with ControlPlane() as control:
        control.ports_before = before
        config = NodeConfig(name="n01", run_id="t", device="cpu", ranks=("slot0",), scratch=str(folder))
        control.start_local(config, folder / "node.log")
        assert control.wait_joined(("n01",), 60) == ("n01",)
        yield control


def listening(pids):
    """The TCP ports at which these processes listen."""
    return {
        connection.laddr.port
        for pid in pids
        for connection in psutil.Process(pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }


@pytest.fixture(scope="module")
def doors(plane):
    """The ports at which head and node worker listen."""
    (worker,) = plane._started._processes.values()
    pids = {psutil.Process().pid, worker.pid}
    ports = listening(pids) - plane.ports_before
    scheduler = host_and_port(plane._cluster.scheduler_address)[1]
    assert scheduler in ports
    assert len(ports) == 2, "one for the scheduler and one for the node's worker"
    return sorted(ports)


def context_of(identity, folder):
    """TLS as a client speaks it; without a certificate where there is no identity."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if identity is not None:
        (folder / "cert").write_text(identity.certificate)
        (folder / "key").write_text(identity.key)
        context.load_cert_chain(folder / "cert", folder / "key")
    return context


def greeting(port, context=None):
    """What a door says to whoever knocks in this way; empty where it says nothing or shuts."""
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        stream = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=3))
        if context is None:
            stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
        else:
            stream = stack.enter_context(context.wrap_socket(stream))
        return stream.recv(4096)
    return b""


def test_with_the_runs_identity_a_door_answers(plane, doors, tmp_path):
    for port in doors:
        assert greeting(port, context_of(plane._identity, tmp_path)) != b"", "so that silence below means refusal"


def test_a_tls_client_without_a_certificate_is_refused(doors, tmp_path):
    for port in doors:
        assert greeting(port, context_of(None, tmp_path)) == b""


def test_a_tls_client_with_another_runs_identity_is_refused(doors, tmp_path):
    for port in doors:
        assert greeting(port, context_of(new_identity(), tmp_path)) == b""


def test_a_client_in_the_clear_is_told_nothing(doors):
    for port in doors:
        assert b"HTTP" not in greeting(port)


def test_another_runs_client_of_the_control_plane_itself_cannot_connect(plane):
    from distributed import Client

    with pytest.raises((OSError, TimeoutError)):
        Client(plane._cluster.scheduler_address, security=new_identity().security(), timeout=3, set_as_default=False)


def test_a_node_trusts_only_a_head_with_the_runs_identity(tmp_path):
    one, other = new_identity(), new_identity()
    assert Identity(certificate=one.certificate, key=one.key) == one
    assert one.certificate != other.certificate
    assert one.security().get_connection_args("worker")["ssl_context"].verify_mode == ssl.CERT_REQUIRED


def test_the_certificate_is_valid_on_a_node_whose_clock_is_a_year_off(tmp_path):
    (tmp_path / "cert").write_text(new_identity().certificate)
    for way in ("-", "+"):
        at = subprocess.run(
            ["date", "-d", f"{way}365 days", "+%s"], capture_output=True, text=True, check=True
        ).stdout.strip()
        said = subprocess.run(
            ["openssl", "verify", "-x509_strict", "-attime", at, "-CAfile", "cert", "cert"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        assert said.returncode == 0, said.stderr


def test_an_identity_does_not_print_its_key():
    identity = new_identity()
    assert "PRIVATE" not in f"{identity!r} {identity} {[identity]}"
    assert not re.search(r"[A-Za-z0-9+/]{40}", repr(identity))


def test_the_address_towards_a_host_lies_on_the_interface_that_has_it():
    assert address_towards("127.0.0.1") == "127.0.0.1"
    assert interface_of("127.0.0.1") == "lo"
    assert interface_of("192.0.2.77") is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("tls://10.0.0.1:4711", ("10.0.0.1", 4711)),
        ("10.0.0.1", ("10.0.0.1", 0)),
        ("[fd00::1]:4711", ("fd00::1", 4711)),
        ("fd00::1", ("fd00::1", 0)),
        ("head.example:80", ("head.example", 80)),
    ],
)
def test_an_address_is_taken_apart(text, parts):
    assert host_and_port(text) == parts
