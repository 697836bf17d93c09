"""The page of a comparison: one or two sheets to take into a negotiation. It runs no script at all."""

from markupsafe import Markup

from ..scoring.comparison_model import Comparison
from .comparison_chart import charts
from .comparison_tables import contrasts_table, differences_table, figures_table, ranking_table, runs_table
from .comparison_words import alike_in, headline, method, name_of
from .page import asset, content_policy, environment


def render_comparison(found: Comparison, version: str) -> str:
    """The whole page. It makes no request, runs nothing, and escapes whatever the runs hold."""
    style = asset("page.css") + asset("comparison.css")
    marked = [(name_of(run), run.marks) for run in found.runs if run.marks]
    return (
        environment(("comparison.html.j2", "parts.html.j2"))
        .get_template("comparison.html.j2")
        .render(
            found=found,
            version=version,
            headline=headline(found),
            marked=marked,
            runs=runs_table(found),
            ranking=ranking_table(found),
            charts=charts(found),
            figures=figures_table(found),
            contrasts=contrasts_table(found),
            differences=differences_table(found),
            alike=alike_in(found),
            method=tuple(method(found)),
            style=Markup(style),  # noqa: S704  # our own files
            policy=content_policy(style),
        )
    )
