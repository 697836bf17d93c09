"""A provider.yaml to fill in, with what the run knows already."""

from importlib import resources

import yaml

from ..evidence import Run
from .plain_text import printable


def render(run: Run) -> str:
    """The template, which is itself a valid record: what is unknown stands in comments."""
    known = {"provider": run.header.provider, "cluster": run.header.cluster}
    head = {key: printable(value, 200) for key, value in known.items() if value}
    text = resources.files(__package__).joinpath("templates", "provider.yaml").read_text(encoding="utf-8")
    filled = yaml.safe_dump(head, allow_unicode=True, sort_keys=False) if head else ""
    return text.replace("#KNOWN\n", filled).replace("#NODES", str(len(run.header.promised)))
