"""Documents in Markdown: whatever a value holds, it stays text on the line where it stands."""

from importlib import resources

from jinja2 import DictLoader, Environment, StrictUndefined

from .plain_text import printable

# What Markdown would make markup of; a line break would end a table's row.
_SPECIAL = str.maketrans({sign: f"\\{sign}" for sign in "\\|`*_<>[]#~"})


def escaped(value: object) -> object:
    """What a template writes for a value: text as one line without markup, code as it is."""
    if isinstance(value, Code) or not isinstance(value, str):
        return value
    return printable(value, 2000).translate(_SPECIAL)


class Code(str):
    """Lines of code, each behind four blanks: nothing in them is markup."""

    __slots__ = ()


def code(lines: str) -> Code:
    """Several lines, already made fit to be shown, as a block of code."""
    return Code("\n".join(f"    {line}" for line in lines.split("\n")))


def rendered(name: str, **values: object) -> str:
    """A template of this package filled in, as Markdown."""
    source = resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")
    environment = Environment(
        loader=DictLoader({name: source}),
        autoescape=False,  # noqa: S701  # Markdown has signs of its own, which `finalize` escapes
        undefined=StrictUndefined,
        finalize=escaped,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(**values)
