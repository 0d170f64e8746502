"""What this process keeps for the pages that are open in browsers: one of each."""

from django.conf import settings

from dashboard.live.board import Board
from dashboard.live.parts import Parts
from dashboard.live.sight import Sight
from dashboard.live.streams import Streams
from dashboard.live.viewers import Viewers

board = Board(pause_seconds=settings.LIVE_LOOK_SECONDS)
viewers = Viewers()
parts = Parts()
sight = Sight(board, parts)
streams = Streams(board, viewers, most=settings.LIVE_STREAMS)


def forget() -> None:
    """All that was read: for another database in the same process."""
    board.forget()
    viewers.forget()
    sight.forget()
