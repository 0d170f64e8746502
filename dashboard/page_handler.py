"""Django behind ASGI with one hop into a thread for each request.

Django's own handler changes between the event loop and a thread at every middleware that knows only one of them.
"""

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase


class PageHandler(ASGIHandler):
    """Streamed answers are sent as ever; an async view runs in a loop of its own in the request's thread."""

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: ARG002, FBT001 (Django's signature)
        super().load_middleware(is_async=False)

    async def run_get_response(self, request: HttpRequest) -> HttpResponseBase:
        response = await sync_to_async(self.get_response, thread_sensitive=True)(request)
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        return response
