"""Rendering of pages from templates. All values are escaped, and a missing value is an error."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.auth.caller import Caller
from app.dashboard import wording
from app.dashboard.assets import ASSETS, ROOT
from app.dashboard.policies import POLICY, SCRIPTED_POLICY, TIMED_POLICY

PREFIX: Final = "/dashboard"
_TIMES: Final = "times.mjs"
"""The script of every page with a time."""
_TEMPLATES: Final = Environment(
    loader=FileSystemLoader(ROOT / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)


@dataclass(frozen=True, slots=True)
class Section:
    """A link of the navigation, for callers of some roles."""

    name: str
    path: str
    roles: tuple[str, ...] = ("admin", "auditor", "owner", "analyst")
    others: tuple[str, ...] = ()
    """Paths of further pages of the section, and of those below them."""

    def is_current(self, path: str) -> bool:
        """Whether the page at ``path`` belongs to this section."""
        below = self.others if self.path == PREFIX else (self.path,)
        return path == self.path or any(path == each or path.startswith(f"{each}/") for each in below)


SECTIONS: Final = (
    Section("Budgets", PREFIX, others=tuple(f"{PREFIX}/{name}" for name in ("populations", "datasets", "declare"))),
    Section("Price a job", f"{PREFIX}/price", ("owner", "analyst")),
    Section("Jobs", f"{PREFIX}/jobs"),
    Section("Releases", f"{PREFIX}/releases"),
    Section("Audit log", f"{PREFIX}/audit-log", ("admin", "auditor")),
    Section("Keys", f"{PREFIX}/keys", ("admin",)),
    Section("System", f"{PREFIX}/system", ("admin", "auditor")),
)


@dataclass(frozen=True, slots=True)
class Twin:
    """The call of the API that is equivalent to a page."""

    path: str
    method: str = "GET"
    body: str = ""
    """JSON, or the name of a file with it after ``@``; empty: the call has none."""

    def write_curl(self, origin: str) -> str:
        """Write the call as a command."""
        method = "" if self.method == "GET" or (self.body and self.method == "POST") else f"-X {self.method} "
        content = f"-H 'Content-Type: application/json' -d {shlex.quote(self.body)} " if self.body else ""
        return f'curl {method}-H "Authorization: Bearer $COREVAULT_API_KEY" {content}{shlex.quote(origin + self.path)}'


_TEMPLATES.filters.update(wording.FILTERS)
_TEMPLATES.globals.update(
    prefix=PREFIX,
    sections=SECTIONS,
    stylesheet=f"{PREFIX}/static/{ASSETS['corevault.css'].address}",
    icon=f"{PREFIX}/static/{ASSETS['icon.svg'].address}",
)


def find_origin(request: Request) -> str:
    """Find the address of this server as the browser sees it."""
    behind_tls = request.app.state.services.behind_tls if "app" in request.scope else False
    scheme = "https" if behind_tls else request.url.scheme
    return f"{scheme}://{request.headers.get('host', 'localhost')}"


def render(
    request: Request,
    template: str,
    caller: Caller | None,
    *,
    status: int = 200,
    twins: tuple[str | Twin, ...] = (),
    script: str | None = None,
    **values: Any,
) -> HTMLResponse:
    """Render a page.

    Args:
        request: gives the address of the server for the ``curl`` lines.
        template: name of the template without its suffix.
        caller: whose navigation the page shows; None: of a visitor who is not signed in.
        status: HTTP status of the answer.
        twins: the calls of the API with the same data. A path alone is a GET.
        script: name of the page's script, if it has one. Without scripts, the page shows another way.
        values: the values of the template.
    """
    html = _TEMPLATES.get_template(f"{template}.html").render(
        caller=caller,
        twins=[Twin(each) if isinstance(each, str) else each for each in twins],
        origin=find_origin(request),
        here=quote(request.url.path),
        **values,
    )
    scripts = [each for each in (script, _TIMES if "<time " in html else None) if each is not None]
    policy = POLICY if not scripts else TIMED_POLICY if scripts == [_TIMES] else SCRIPTED_POLICY
    return HTMLResponse(_add_scripts(html, scripts), status, {"Content-Security-Policy": policy})


def _add_scripts(html: str, names: Iterable[str]) -> str:
    """Add the scripts to the head. Values are escaped, so the text has one end of a head."""
    tags = "".join(f'<script type="module" src="{PREFIX}/static/{ASSETS[name].address}"></script>' for name in names)
    return html.replace("</head>", f"{tags}</head>", 1)
