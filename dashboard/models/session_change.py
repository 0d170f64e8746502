"""Which sessions changed, in order: open pages ask for what is newer than what they show.

A team counts its changes; a session remembers the count of its last one. Both are written in the transaction of the
change, the count last: whoever has read up to a number has seen every change up to it.
"""

from collections.abc import Collection

from django.db import connection, models, transaction
from django.dispatch import Signal

from dashboard.models.agent_session import AgentSession
from dashboard.models.team import Team

sessions_changed = Signal()  # after the commit, with `team_pk`: other processes can be told

_COUNT = (
    "INSERT INTO {table} (team_id, number) VALUES (%s, 1) "
    "ON CONFLICT (team_id) DO UPDATE SET number = {table}.number + 1 RETURNING number"
)


class ChangeCounter(models.Model):
    """How many changes the sessions of a team have had."""

    team = models.OneToOneField(Team, on_delete=models.CASCADE, primary_key=True, related_name="+")
    number = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.number} changes of team {self.team_id}"


class SessionChanges(models.Manager["SessionChange"]):
    def note(self, team_pk: int, session_pks: Collection[int]) -> None:
        """The last thing a transaction does: others of the team wait from here to its commit, to keep the order."""
        if not session_pks:
            return
        with transaction.atomic():
            number = self.note_removal(team_pk)
            rows = [SessionChange(session_id=pk, team_id=team_pk, number=number) for pk in sorted(set(session_pks))]
            self.bulk_create(rows, update_conflicts=True, unique_fields=["session"], update_fields=["number"])

    def note_removal(self, team_pk: int) -> int:
        """Counted without saying of which session: one that is gone has no row. Pages that show the newest sessions
        of the team ask then which of theirs are left. The number of the change."""
        with connection.cursor() as cursor:
            cursor.execute(_COUNT.format(table=ChangeCounter._meta.db_table), [team_pk])
            (number,) = cursor.fetchone()
        transaction.on_commit(lambda: sessions_changed.send(sender=SessionChange, team_pk=team_pk), robust=True)
        return int(number)


class SessionChange(models.Model):
    """The last change of a session, as a number of its team's count."""

    # Without a constraint: checking it would wait for a session that somebody holds who waits for the count.
    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="+", db_constraint=False
    )
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+", db_index=False)
    number = models.PositiveBigIntegerField()

    objects = SessionChanges()

    class Meta:
        indexes = [
            # What changed since a number, asked several times a second while pages are open.
            models.Index(fields=["team", "number"], name="session_change_order"),
        ]

    def __str__(self) -> str:
        return f"session {self.session_id} at {self.number}"
