"""One answer of the API: its tokens, what it cost, and who told us. Several reports of one call make one row."""

from functools import reduce
from operator import or_

from django.db import models
from django.db.models import Q

from compaction.transcripts.client_protocol import CONVERSATION_SOURCES
from dashboard.models.agent_session import AgentSession, usd_field
from dashboard.models.team import Team

# Calls that belong to the conversation: the negation of client_protocol.is_beside_conversation.
OF_CONVERSATION = reduce(or_, (Q(query_source__startswith=name) for name in CONVERSATION_SOURCES), Q(query_source=""))


class ApiCall(models.Model):
    # Without indexes of their own: those below begin with the same columns, and every one takes time at every call.
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+", db_index=False)
    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="calls", db_index=False)
    agent_id = models.CharField(max_length=200, blank=True)  # empty: the main conversation
    number = models.PositiveIntegerField()  # place in its thread, from 1
    call_id = models.CharField(max_length=200)  # the API's message id, else the request's, else the line's
    request_id = models.CharField(max_length=200, blank=True)
    # A resumed or forked session repeats calls of its origin: only one of the copies counts for dollars and tokens.
    is_counted = models.BooleanField(default=True)

    at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    turn = models.PositiveIntegerField(default=0)
    model = models.CharField(max_length=200, blank=True)
    client_version = models.CharField(max_length=60, blank=True)
    query_source = models.CharField(max_length=80, blank=True)
    stop_reason = models.CharField(max_length=60, blank=True)
    input_tokens = models.PositiveBigIntegerField(default=0)  # plain input, neither read from nor written to the cache
    read_tokens = models.PositiveBigIntegerField(default=0)
    write_5m_tokens = models.PositiveBigIntegerField(default=0)
    write_1h_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    is_output_estimated = models.BooleanField(default=False)
    context_tokens = models.PositiveBigIntegerField(default=0)  # what the window held after the answer
    cost_usd = usd_field(null=True, blank=True)  # at the team's own price, else list price; None: neither is known
    duration_seconds = models.FloatField(null=True, blank=True)
    ttft_seconds = models.FloatField(null=True, blank=True)
    provenance = models.JSONField(default=dict)  # where a figure is not the transcript's: field -> source
    added = models.CharField(max_length=60, blank=True)  # what the proxy added to the request, by the team's wish
    miss_reason = models.CharField(max_length=60, blank=True)  # why the cache was missed, in the API's own word
    cleared_tokens = models.PositiveBigIntegerField(default=0)  # left out of the prompt by an edit of the context

    class Meta:
        constraints = [
            # A batch that comes again changes the row it made; two processes cannot make two.
            models.UniqueConstraint(fields=["session", "call_id"], name="call_once_per_session"),
            # No call is paid for twice, whatever copies of it arrive.
            models.UniqueConstraint(
                fields=["team", "call_id"], condition=models.Q(is_counted=True), name="call_counted_once_per_team"
            ),
        ]
        indexes = [
            # The timeline, in order.
            models.Index(fields=["session", "agent_id", "number"], name="call_of_thread"),
            # Which copy counts when the one that did is deleted. Few calls have copies, so it costs others nothing.
            models.Index(fields=["team", "call_id"], condition=models.Q(is_counted=False), name="call_copies"),
        ]

    def __str__(self) -> str:
        return f"call {self.call_id}"
