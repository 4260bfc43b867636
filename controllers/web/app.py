"""The application: pages and static files, read-only, behind a guard. Pages load only files of `static/`, and have no script inline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from jinja2 import Environment
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cluster.pages import STYLE, environment
from components.drawing.style import DRAWING_STYLE, LIVE_STYLE, SVG_STYLE
from controllers.metering import colours
from controllers.web.facts import Sight, Site
from controllers.web.guards import Admitted, Asked, Guard, Refusal
from controllers.web.pages import PAGES, Links, Page, Visit
from operations.record.model import RESULTS, ago

EVERY_S = 10
"""Seconds between two refreshes of a page that somebody looks at."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every answer. Without a referrer, no link leaks the secret in the path."""
READS = ("GET", "HEAD")
BILLS = ("bill",)
"""The words of the page that everybody has who may read anything."""
_FOLDER = Path(__file__).parent
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def application(site: Site, guard: Guard) -> ASGIApp:
    """Return the application for a server of ASGI."""
    templates = environment(_FOLDER / "templates")
    routes = [Route(f"/{page.path}", _endpoint(page, site, templates)) for page in PAGES]
    routes += [Route(f"/static/{name}", _static(name, text)) for name, text in static_files().items()]
    handlers = {HTTPException: _missing(site, templates)}
    return _Guarded(Starlette(routes=routes, exception_handlers=handlers), guard)


def static_files() -> Mapping[str, str]:
    """Return name -> text of the files that pages load."""
    files = {file.name: file.read_text(encoding="utf-8") for file in sorted((_FOLDER / "static").iterdir())}
    # The drawing's own style comes first: pages overrule it.
    return {
        **files,
        "page.css": "".join((SVG_STYLE, DRAWING_STYLE, LIVE_STYLE, STYLE, colours.style(), files["page.css"])),
    }


def _static(name: str, text: str) -> Callable[[Request], Response]:
    return lambda _: Response(text, media_type=_TYPES[Path(name).suffix])


def _endpoint(page: Page, site: Site, templates: Environment) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        links, sight = Links(request.scope["path"]), _sight(request)
        if page.whole and not sight.whole:
            if not page.path:  # the first page of who sees only bills
                return RedirectResponse(links(*BILLS))
            raise HTTPException(HTTPStatus.FORBIDDEN, sight.lacks)
        values = page.view(Visit(site, request.path_params, sight))
        if values is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return HTMLResponse(templates.get_template(page.template).render(_shared(site, request, page.name), **values))

    return answer


def _missing(site: Site, templates: Environment) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
        why = error.detail if isinstance(error, HTTPException) and status == HTTPStatus.FORBIDDEN else ""
        values = _shared(site, request, "")
        text = templates.get_template("missing.html.j2").render(values, title=HTTPStatus(status).phrase, why=why)
        return HTMLResponse(text, status)

    return answer


def _sight(request: Request) -> Sight:
    sight: Sight = request.scope["sight"]
    return sight


def _shared(site: Site, request: Request, page: str) -> dict[str, Any]:
    """Return what every template gets."""
    sight = _sight(request)
    return {
        "link": Links(request.scope["path"]),
        "page": page,
        "pages": tuple(each for each in PAGES if each.nav and (sight.whole or not each.whole)),
        "sight": sight,
        "now_s": site.clock(),
        "ago": ago,
        "result": lambda word: RESULTS.get(word, word),
        "every_s": EVERY_S,
        "release": _release(),
    }


def _release() -> str:
    try:
        return version("menagerie")
    except PackageNotFoundError:
        return ""


class _Guarded:
    """Lets only reading requests through that the guard accepts, and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app, self._guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        sender = _with_headers(send)
        decided = await self._decide(scope)
        if isinstance(decided, Refusal):
            await _answer(decided)(scope, receive, sender)
        else:
            path = decided.path
            allowed = {**scope, "path": path, "raw_path": path.encode(), "sight": decided.sight}
            await self._app(allowed, receive, sender)

    async def _decide(self, scope: Scope) -> Refusal | Admitted:
        if scope["method"] not in READS:
            text = "these pages only show; nothing can be changed here"
            return Refusal(HTTPStatus.METHOD_NOT_ALLOWED, text, (("Allow", ", ".join(READS)),))
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        return await self._guard.check(Asked(scope["path"], headers))


def _answer(refusal: Refusal) -> Response:
    answer = PlainTextResponse(f"{refusal.text}\n", refusal.status)
    for name, value in refusal.headers:
        answer.headers.append(name, value)
    return answer


def _with_headers(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return sent
