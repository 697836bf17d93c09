"""A run that is stopped by a signal: it ends where it stands, and cannot miss it."""

import contextlib
import signal
from collections.abc import Iterator

_STOPPING = (signal.SIGTERM, signal.SIGHUP)
_AGAIN_S = 0.2


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived. A BaseException, as KeyboardInterrupt is: nothing but the session may swallow it."""

    def __init__(self, signum: int) -> None:
        self.signum = signum
        super().__init__(signal.Signals(signum).name)


@contextlib.contextmanager
def signals_raise() -> Iterator[None]:
    """While this lasts a signal to stop raises Terminated, again and again until it is out of here.

    Once is not enough: what is raised in a callback of the garbage collector, of which Dask has one, or in a destructor
    is swallowed. Such a run went on without its nodes, which were stopped as well, and accused them.
    """

    def terminate(signum: int, _: object) -> None:
        stopped.append(signum)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S, _AGAIN_S)
        raise Terminated(stopped[0])

    def again(_: int, __: object) -> None:
        raise Terminated(stopped[0])

    stopped: list[int] = []
    # nohup and the like have SIGHUP ignored already: it stays so
    ours = [signum for signum in _STOPPING if signal.getsignal(signum) is not signal.SIG_IGN]
    before = {signum: signal.signal(signum, terminate) for signum in ours}
    alarmed = signal.signal(signal.SIGALRM, again)
    try:
        yield
    finally:
        if stopped:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for signum, handler in {**before, signal.SIGALRM: alarmed}.items():
            signal.signal(signum, handler)
