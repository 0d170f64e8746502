"""The picture of a session: every row and figure it has, worked out from its facts alone. No Django here.

The same facts give the same picture, whatever order and pieces they came in: `record` only writes what differs.
"""

from dashboard.ingest.picture.drawing import SessionPicture, draw_picture
from dashboard.ingest.picture.past_policies import PastPolicies, PolicyAt, pick_policy
from dashboard.ingest.picture.totals import Totals, add_totals

__all__ = [
    "PastPolicies",
    "PolicyAt",
    "SessionPicture",
    "Totals",
    "add_totals",
    "draw_picture",
    "pick_policy",
]
