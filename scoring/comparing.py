"""What changed since an earlier run, figure by figure: regressions apart from noise, for the verdict to list."""

from ..evidence import Metric
from .baselines import Before, against
from .layers import Judged
from .policy_model import Check
from .scope import Target
from .values import ParamsKey, Value, params_key
from .verdict import BaselineName, Change, Compared

MOST_CHANGES = 1000  # in the verdict; the worst first


class Comparing:
    """Keeps each figure that was compared, once, as it was judged last."""

    def __init__(self) -> None:
        self._changes: dict[tuple[str, str, ParamsKey], Change | None] = {}

    def keep(  # noqa: PLR0917  # a value with all that it is compared by
        self, check: Check, target: Target, value: Value, before: Before, described: Metric, judged: Judged
    ) -> None:
        """Keep one figure beside the earlier run's. None stands for one that cannot be compared."""
        key = (described.name, target.subject, params_key(value.params))
        if key in self._changes:  # earlier attempts are looked at after the last, which counts
            return
        if value.value is None or before.value is None or before.value.value is None:
            self._changes[key] = None
            return
        told = against(value, value.value, before, described)
        if told is None:
            self._changes[key] = None
            return
        self._changes[key] = Change(
            check=check.check,
            metric=described.name,
            subject=target.subject,
            params=value.params,
            before=before.value.value,
            now=value.value,
            unit=described.unit,
            share=told.share,
            low=told.low,
            high=told.high,
            told="worse" if told.worse else "better" if told.low > 1 else "noise",
            decided=judged.result,
            suspects=before.suspects,
        )

    def told(self, baseline: BaselineName) -> Compared:
        """All of it, the worst first."""
        found = [change for change in self._changes.values() if change is not None]
        changes = sorted((c for c in found if c.told != "noise"), key=lambda c: (c.share, c.metric, c.subject))
        return Compared(
            baseline=baseline,
            figures=len(found),
            noise=len(found) - len(changes),
            not_comparable=len(self._changes) - len(found),
            changes=tuple(changes[:MOST_CHANGES]),
        )
