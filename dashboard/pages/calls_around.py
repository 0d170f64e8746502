"""The calls of the conversation nearest to a compaction, one per side. Titles, suggestions and the like stand beside
the conversation: what they send says nothing about what a compaction did."""

from collections.abc import Collection
from typing import NamedTuple

from django.db.models import F, Max, Min, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from dashboard.models import ApiCall, CompactionKind, ObservedCompaction
from dashboard.models.api_call import OF_CONVERSATION


class CallsAround(NamedTuple):
    before: ApiCall | None
    after: ApiCall | None

    @property
    def drop_tokens(self) -> int | None:
        """What the window held after the call before, less what the next one sent. What was said since is in it."""
        if self.before is None or self.after is None:
            return None
        sent = self.after.input_tokens + self.after.read_tokens
        return self.before.context_tokens - sent - self.after.write_5m_tokens - self.after.write_1h_tokens


def read_calls_around(compactions: Collection[int]) -> dict[int, CallsAround]:
    """By the compaction's key. Two queries, however many compactions are asked for."""
    own = ApiCall.objects.filter(OF_CONVERSATION, session=OuterRef("session"), agent_id=OuterRef("agent_id"))
    before = own.filter(number__lte=OuterRef("call_number")).order_by("-number")
    after = own.filter(number__gt=OuterRef("call_number")).order_by("number")
    sides = list(
        ObservedCompaction.objects.filter(pk__in=compactions)
        .annotate(before=Subquery(before.values("pk")[:1]), after=Subquery(after.values("pk")[:1]))
        .values_list("pk", "before", "after")
    )
    calls = ApiCall.objects.in_bulk([pk for _, *pair in sides for pk in pair if pk is not None])
    return {pk: CallsAround(calls.get(before), calls.get(after)) for pk, before, after in sides}


def find_neighbours(call: ApiCall) -> tuple[int | None, int | None]:
    """The numbers of the calls of the conversation before and after this one of the same thread."""
    own = ApiCall.objects.filter(OF_CONVERSATION, session_id=call.session_id, agent_id=call.agent_id)
    found = own.aggregate(
        before=Max("number", filter=Q(number__lt=call.number)), after=Min("number", filter=Q(number__gt=call.number))
    )
    return found["before"], found["after"]


def find_compaction_before(session_id: int, agent_id: str, number: int, kind: CompactionKind) -> int | None:
    """The newest of its kind between this call of a thread and the one of the conversation before it."""
    own = ApiCall.objects.filter(OF_CONVERSATION, session=OuterRef("session"), agent_id=agent_id, number__lt=number)
    last = Subquery(own.order_by("-number").values("number")[:1])
    found = ObservedCompaction.objects.filter(
        session_id=session_id, agent_id=agent_id, kind=kind, call_number__lt=number
    ).filter(call_number__gte=Coalesce(last, 0))
    newest = found.order_by("-call_number", F("at").desc(nulls_last=True), "-pk")
    return newest.values_list("pk", flat=True).first()
