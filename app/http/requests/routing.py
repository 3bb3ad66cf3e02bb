"""Routes with strict bodies, no unknown query parameters, and documented problems."""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any

from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as StarletteRoute

from app.context import get_current
from app.errors import Fault, InvalidRequest
from app.http.errors.openapi import make_problem_responses
from app.http.errors.validation_errors import make_parameter_pointer
from app.http.requests.bodies import JsonRequest

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Route(APIRoute):
    """A route that refuses every input that it does not declare."""

    refuses_query = True
    """Whether query parameters that are not declared are refused."""

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()
        model = _body_model(self)
        declared = frozenset(_query_parameters(self.dependant))
        template, status = self.path_format, self.status_code or 200

        async def handle_strictly(request: Request) -> Response:
            if (context := get_current()) is not None:
                context.route, context.status = template, status
            if self.refuses_query:
                check_query(request, declared)
            return await handle(request if model is None else JsonRequest(request, model))

        return handle_strictly


def make_router(prefix: str, tag: str, *problems: str) -> APIRouter:
    """Make the router of a feature.

    Args:
        prefix: the path prefix of all its routes.
        tag: groups its operations in the OpenAPI document.
        problems: error codes that any of its routes may answer with.
    """
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=Route,
        responses=make_problem_responses(*problems, "invalid_request", "internal"),
        generate_unique_id_function=_operation_id,
    )


def _operation_id(route: APIRoute) -> str:
    """Return the name of the endpoint's function, which is a verb and its object."""
    return route.name


def _body_model(route: APIRoute) -> type[BaseModel] | None:
    annotation = None if route.body_field is None else route.body_field.field_info.annotation
    if annotation is None:
        return None
    assert isinstance(annotation, type), "a body is one model"
    assert issubclass(annotation, BaseModel), "a body is one model"
    return annotation


def _query_parameters(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for dependency in dependant.dependencies:
        yield from _query_parameters(dependency)


def check_query(request: Request, declared: frozenset[str]) -> None:
    """Refuse query parameters that the route does not declare, or that occur twice.

    Raises:
        InvalidRequest: it names the declared parameters, and none that was sent.
    """
    sent = request.query_params.multi_items()
    counts = Counter(name for name, _ in sent)
    for name, value in sent:
        if counts[name] > 1 or "\0" in value:
            where = make_parameter_pointer("query", name) if name in declared else "/query"
            raise InvalidRequest(faults=(Fault(where, "Send each query parameter once, without null characters."),))
    if not declared.issuperset(name for name, _ in sent):
        names = ", ".join(sorted(declared)) or "none"
        raise InvalidRequest(faults=(Fault("/query", f"Unknown query parameter. This address accepts: {names}."),))


def find_matching(routes: Iterable[BaseRoute], path: str) -> Iterator[StarletteRoute]:
    """Return the routes whose address is ``path``, with any method."""
    return (route for route in routes if isinstance(route, StarletteRoute) and route.path_regex.match(path))


def find_methods(routes: Iterable[BaseRoute], path: str) -> frozenset[str]:
    """Return the HTTP methods of ``path``; GET implies HEAD."""
    methods = {method for route in find_matching(routes, path) for method in route.methods or ()}
    return frozenset(methods | {"HEAD"} if "GET" in methods else methods)
