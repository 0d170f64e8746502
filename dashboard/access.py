"""Who sees what and may do what: the only place that decides.

Every queryset that a page or an endpoint reads comes from here, already cut to the actor's teams. Somebody else's
team does not exist (404); one's own team with too low a role is refused (403).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404

from dashboard.kept_query import KeptListQuery, KeptQuery, Open, column_names, make_object
from dashboard.models import (
    AgentSession,
    ApiCall,
    ApiKey,
    AuditEvent,
    CacheBreak,
    CompactionRun,
    DeletedSession,
    DeletionReason,
    Drop,
    FollowedFile,
    Invitation,
    Job,
    LineCrossing,
    ListName,
    Membership,
    ObservedCompaction,
    RedactionCount,
    RedactionReport,
    ResumedFile,
    Role,
    SavedView,
    Scope,
    SessionHour,
    Team,
    TeamHour,
    TeamPolicy,
    UnansweredCall,
    User,
    Webhook,
)


class Act(StrEnum):
    SEE = "see metrics"
    INGEST = "send telemetry"
    PROXY = "use the proxy"
    READ_OWN_CONTENT = "read the content of own sessions"
    READ_TEAM_CONTENT = "read the content of the team's sessions"
    RUN_OWN = "run compactions of own sessions"
    RUN_TEAM = "run compactions of the team's sessions"
    KEEP_KEYS = "keep own keys"
    TUNE = "change thresholds and automatic mode"
    MANAGE = "manage members, keys, spending and retention"
    GOVERN = "change roles and content grants, read the audit log"


_VIEWER = frozenset({Act.SEE})
_MEMBER = _VIEWER | {Act.INGEST, Act.PROXY, Act.READ_OWN_CONTENT, Act.RUN_OWN, Act.KEEP_KEYS}
_ADMIN = _MEMBER | {Act.RUN_TEAM, Act.TUNE, Act.MANAGE}
ROLE_ACTS = {Role.VIEWER: _VIEWER, Role.MEMBER: _MEMBER, Role.ADMIN: _ADMIN, Role.OWNER: _ADMIN | {Act.GOVERN}}

SCOPE_ACTS = {
    Scope.INGEST: frozenset({Act.INGEST}),
    Scope.PROXY: frozenset({Act.PROXY}),
    Scope.READ: frozenset({Act.SEE}),
    Scope.CONTENT: frozenset({Act.READ_OWN_CONTENT, Act.READ_TEAM_CONTENT}),
    Scope.COMPACT: frozenset({Act.RUN_OWN, Act.RUN_TEAM}),
    Scope.ADMIN: frozenset({Act.TUNE}),
}


@dataclass(frozen=True)
class Standing:
    """What an actor is in one team."""

    team: Team
    role: Role
    acts: frozenset[Act]

    def may(self, act: Act) -> bool:
        return act in self.acts

    @property
    def reads_team_content(self) -> bool:
        return self.may(Act.READ_TEAM_CONTENT)


@dataclass(frozen=True)
class Actor:
    """A person in a browser, or a key that acts for its owner with fewer rights; standings by team slug."""

    user: User | None
    key: ApiKey | None = None
    standings: dict[str, Standing] = field(default_factory=dict)

    def may(self, act: Act, team: Team) -> bool:
        standing = self.standings.get(team.slug)
        return standing is not None and standing.may(act)

    @property
    def sender(self) -> User | None:
        """The account whose telemetry this is; None for a collector key, which sends for many people."""
        return None if self.key is not None and self.key.is_collector else self.user

    def may_anywhere(self, act: Act) -> bool:
        return any(standing.may(act) for standing in self.standings.values())


NOBODY = Actor(user=None)


_MEMBERSHIP = KeptQuery(
    lambda: Membership.objects.filter(user_id=Open("user"), team_id=Open("team"), user__is_active=True).values_list(
        "role", "content_grant"
    )
)
_STANDINGS = KeptQuery(
    lambda: (
        Membership.objects.filter(user_id=Open("user"))
        .order_by("team__name", "team_id")
        .values_list("role", "content_grant", *column_names(Team, "team__"))
    )
)


def acts_of(role: Role, *, content_grant: bool) -> frozenset[Act]:
    acts = ROLE_ACTS[role]
    return acts | {Act.READ_TEAM_CONTENT} if content_grant else acts


def person(user: User) -> Actor:
    standings = {}
    for role, content_grant, *row in _STANDINGS.read(user=user.pk):
        team = make_object(Team, tuple(row))
        standings[team.slug] = Standing(team, Role(role), acts_of(Role(role), content_grant=content_grant))
    return Actor(user=user, standings=standings)


def program(key: ApiKey) -> Actor:
    """A key never does more than its owner may do now: a demoted or removed owner takes the key along."""
    for told, content_grant in _MEMBERSHIP.read(user=key.owner_id, team=key.team_id):
        role = Role(told)
        acts = scope_acts(Scope(scope) for scope in key.scopes) & acts_of(role, content_grant=content_grant)
        return Actor(user=key.owner, key=key, standings={key.team.slug: Standing(key.team, role, acts)})
    return NOBODY


def scope_acts(scopes: Iterable[Scope]) -> frozenset[Act]:
    given = set(scopes)
    if Scope.READ not in given:
        given.discard(Scope.CONTENT)  # content is read on top of numbers, not instead of them
    return frozenset[Act]().union(*(SCOPE_ACTS[scope] for scope in given))


# --- teams -----------------------------------------------------------------------------------------------------------


def teams(actor: Actor, act: Act = Act.SEE) -> list[Team]:
    return [standing.team for standing in actor.standings.values() if standing.may(act)]


def require_team(actor: Actor, slug: str, act: Act) -> Team:
    standing = actor.standings.get(slug)
    if standing is None:
        raise Http404("Team not found.")
    if not standing.may(act):
        raise PermissionDenied(f"You need permission to {act}.")
    return standing.team


def require_anywhere(actor: Actor, act: Act) -> None:
    """For pages about the whole installation: enough standing in any team opens them."""
    if not actor.may_anywhere(act):
        raise PermissionDenied(f"You need permission to {act}.")


def is_owner(actor: Actor) -> bool:
    """Return whether the actor owns a team. Those of the demo do not count: any admin can make it and owns it then."""
    return any(standing.may(Act.GOVERN) and not standing.team.is_demo for standing in actor.standings.values())


def require_owner(actor: Actor) -> None:
    if not is_owner(actor):
        raise PermissionDenied(f"You need permission to {Act.GOVERN}.")


def may_create_team(actor: Actor, *, local_mode: bool) -> bool:
    """An installation on one's own machine has one team; elsewhere owners found further ones."""
    return not local_mode and actor.key is None and is_owner(actor)


# --- what belongs to a team ------------------------------------------------------------------------------------------


def members(actor: Actor, slug: str, act: Act = Act.SEE) -> QuerySet[Membership]:
    team = require_team(actor, slug, act)
    return Membership.objects.filter(team=team).select_related("user", "team").order_by("user__username")


def invitations(actor: Actor, slug: str) -> QuerySet[Invitation]:
    team = require_team(actor, slug, Act.MANAGE)
    return (
        Invitation.objects.filter(team=team).select_related("created_by", "accepted_by", "team").order_by("-created_at")
    )


def keys(actor: Actor, slug: str) -> QuerySet[ApiKey]:
    """Admins see the team's keys, members their own."""
    team = require_team(actor, slug, Act.KEEP_KEYS)
    visible = ApiKey.objects.filter(team=team).select_related("owner", "team").order_by("-created_at", "-id")
    return visible if actor.may(Act.MANAGE, team) else visible.filter(owner=actor.user)


def webhooks(actor: Actor, slug: str) -> QuerySet[Webhook]:
    """They reach out of the installation with what happens in the team: for those who manage it."""
    team = require_team(actor, slug, Act.MANAGE)
    return Webhook.objects.filter(team=team).select_related("team").order_by("name", "pk")


def audit_events(actor: Actor, slug: str) -> QuerySet[AuditEvent]:
    team = require_team(actor, slug, Act.GOVERN)
    return AuditEvent.objects.filter(team=team).order_by("-id")


def policies(actor: Actor, slug: str) -> QuerySet[TeamPolicy]:
    """Every version of the team's policy, newest first. Lines are metrics: whoever sees the team sees them."""
    team = require_team(actor, slug, Act.SEE)
    return TeamPolicy.objects.filter(team=team).order_by("-version")


def redaction_counts(actor: Actor, slug: str) -> QuerySet[RedactionCount]:
    """Marks in the team's stored text, by rule and day: numbers, for everybody who sees the team."""
    team = require_team(actor, slug, Act.SEE)
    return RedactionCount.objects.filter(team=team)


def redaction_reports(actor: Actor, slug: str) -> QuerySet[RedactionReport]:
    """Newest first. They say what people typed, so those who see the team see them."""
    team = require_team(actor, slug, Act.SEE)
    return RedactionReport.objects.filter(team=team).select_related("team").order_by("-id")


def deleted_sessions(actor: Actor, slug: str) -> QuerySet[DeletedSession]:
    """What people deleted, newest first; what retention deleted comes back by itself when it goes on."""
    team = require_team(actor, slug, Act.MANAGE)
    return DeletedSession.objects.filter(team=team, reason=DeletionReason.PERSON).order_by("-deleted_at", "-id")


def jobs(actor: Actor) -> QuerySet[Job]:
    """Admins see the jobs of their teams, and those of the whole installation, which belong to no team."""
    require_anywhere(actor, Act.MANAGE)
    visible = Q(team__in=teams(actor, Act.MANAGE)) | Q(team=None)
    return Job.objects.filter(visible).select_related("team").order_by("-id")


def can_control_job(actor: Actor, job: Job) -> bool:
    """Return whether the actor may cancel and retry a job: admins their team's, owners also the installation's."""
    return is_owner(actor) if job.team is None else actor.may(Act.MANAGE, job.team)


def require_job_control(actor: Actor, job: Job) -> None:
    if not can_control_job(actor, job):
        raise PermissionDenied("Only owners can cancel and retry jobs of the whole installation.")


def drops(actor: Actor) -> QuerySet[Drop]:
    """What was not kept of what the actor's teams sent, and what came from nobody known."""
    require_anywhere(actor, Act.MANAGE)
    visible = Q(team__in=teams(actor, Act.MANAGE)) | Q(team=None)
    return Drop.objects.filter(visible).select_related("team").order_by("-last_at")


def followed_files(actor: Actor) -> QuerySet[FollowedFile]:
    require_anywhere(actor, Act.MANAGE)
    return FollowedFile.objects.filter(team__in=teams(actor, Act.MANAGE))


# --- what was observed -----------------------------------------------------------------------------------------------


def sessions(actor: Actor, act: Act = Act.SEE) -> QuerySet[AgentSession]:
    return AgentSession.objects.filter(team__in=teams(actor, act))


_LARGEST_PK = 2**63 - 1  # that a database can look for
_SESSION = KeptQuery(lambda: AgentSession.objects.filter(pk=Open("pk")).values_list(*column_names(AgentSession)))


def find_session(actor: Actor, pk: int) -> AgentSession:
    """With its team."""
    found = [make_object(AgentSession, row) for row in _SESSION.read(pk=pk)] if pk <= _LARGEST_PK else []
    for team in teams(actor):
        if found and found[0].team_id == team.pk:
            found[0].team = team
            return found[0]
    raise Http404("Session not found.")


def session_hours(actor: Actor) -> QuerySet[SessionHour]:
    return SessionHour.objects.filter(team__in=teams(actor))


def team_hours(actor: Actor) -> QuerySet[TeamHour]:
    return TeamHour.objects.filter(team__in=teams(actor))


def calls(actor: Actor) -> QuerySet[ApiCall]:
    return ApiCall.objects.filter(team__in=teams(actor))


def unanswered_calls(actor: Actor) -> QuerySet[UnansweredCall]:
    return UnansweredCall.objects.filter(team__in=teams(actor))


def breaks(actor: Actor) -> QuerySet[CacheBreak]:
    """Expected rebuilds too; `kind` tells them apart."""
    return CacheBreak.objects.filter(team__in=teams(actor))


def compactions(actor: Actor) -> QuerySet[ObservedCompaction]:
    return ObservedCompaction.objects.filter(team__in=teams(actor))


def runs(actor: Actor, act: Act = Act.SEE) -> QuerySet[CompactionRun]:
    """Compactions that Plimsoll did or does. Numbers are for everybody in the team, words as `reads_content` says."""
    return CompactionRun.objects.filter(team__in=teams(actor, act))


def crossings(actor: Actor, act: Act = Act.SEE) -> QuerySet[LineCrossing]:
    """Lines that were crossed, and what was done about it."""
    return LineCrossing.objects.filter(team__in=teams(actor, act))


def may_run(actor: Actor, session: AgentSession) -> bool:
    """Start, cancel, edit and resume compactions of this session."""
    if actor.may(Act.RUN_TEAM, session.team):
        return True
    is_own = actor.user is not None and session.owner_id == actor.user.pk
    return is_own and actor.may(Act.RUN_OWN, session.team)


def require_run(actor: Actor, session: AgentSession) -> None:
    if not may_run(actor, session):
        raise PermissionDenied(f"You need permission to {Act.RUN_TEAM}.")


def require_telling(actor: Actor, session: AgentSession) -> None:
    """Messages that come with a run are added to sessions of one's own alone, whatever else one may run."""
    require_run(actor, session)
    if actor.user is None or session.owner_id != actor.user.pk:
        raise PermissionDenied("A session with this name belongs to another account. Choose another name.")


def resumed_files(actor: Actor, act: Act = Act.SEE) -> QuerySet[ResumedFile]:
    return ResumedFile.objects.filter(team__in=teams(actor, act))


def require_resumed(actor: Actor, resumed: ResumedFile) -> None:
    """Taking back a transcript that was written: whoever may run the session it came from."""
    if resumed.origin is not None:
        require_run(actor, resumed.origin)
    elif not actor.may(Act.RUN_TEAM, resumed.team):
        raise PermissionDenied(f"You need permission to {Act.RUN_TEAM}.")


def require_personal_sender(actor: Actor) -> None:
    """Transcripts can be compacted and resumed, so they are taken from people and their own keys only."""
    if actor.sender is None:
        raise PermissionDenied(
            "Collector keys can send OTLP, hooks, status lines and proxied calls. Send transcripts with a personal key."
        )


def owns_session(actor: Actor, session: AgentSession) -> bool:
    """The person themselves, in a browser: a key acts for them, but is given away."""
    return actor.key is None and actor.user is not None and session.owner_id == actor.user.pk


def require_content(actor: Actor, session: AgentSession) -> None:
    if not reads_content(actor, session):
        raise PermissionDenied("You need permission to read the content of this session.")


def reads_content(actor: Actor, session: AgentSession) -> bool:
    """One's own sessions, or everybody's with the grant. Whether there is content to read is another question."""
    return reads_content_of(actor, session.team, session.owner_id)


def reads_content_of(actor: Actor, team: Team, owner_id: int | None) -> bool:
    if actor.may(Act.READ_TEAM_CONTENT, team):
        return True
    is_own = actor.user is not None and owner_id == actor.user.pk
    return is_own and actor.may(Act.READ_OWN_CONTENT, team)


def saved_views(actor: Actor) -> QuerySet[SavedView]:
    """One's own, and those that people of one's teams share."""
    return SavedView.objects.filter(Q(owner=actor.user) | Q(team__in=teams(actor))).select_related("owner", "team")


_VIEW, _VIEW_OWNER, _VIEW_TEAM = column_names(SavedView), column_names(User, "owner__"), column_names(Team, "team__")
_VIEWS = KeptListQuery(
    "team_id",
    lambda ours: (
        SavedView.objects.filter(Q(owner_id=Open("owner")) | ours, list_name=Open("list_name"))
        .order_by("name", "id")
        .values_list(*_VIEW, *_VIEW_OWNER, *_VIEW_TEAM)
    ),
)


def list_saved_views(actor: Actor, list_name: ListName) -> list[SavedView]:
    """Those of one list, by name, with their owners and teams."""
    found = []
    owner_pk = actor.user.pk if actor.user else 0
    for row in _VIEWS.read([team.pk for team in teams(actor)], owner=owner_pk, list_name=list_name.value):
        view = make_object(SavedView, row[: len(_VIEW)])
        view.owner = make_object(User, row[len(_VIEW) : -len(_VIEW_TEAM)])
        view.team = make_object(Team, row[-len(_VIEW_TEAM) :]) if view.team_id else None
        found.append(view)
    return found


def may_remove_view(actor: Actor, view: SavedView) -> bool:
    """Whoever saved it; admins also what is shared with their team."""
    if actor.user is not None and view.owner_id == actor.user.pk:
        return True
    return view.team is not None and actor.may(Act.MANAGE, view.team)


def require_remove_view(actor: Actor, view: SavedView) -> None:
    if not may_remove_view(actor, view):
        raise PermissionDenied(f"You need permission to {Act.MANAGE}.")


# --- who may own a session -------------------------------------------------------------------------------------------


def owners_to_assign(actor: Actor, session: AgentSession) -> QuerySet[User]:
    """Accounts that the actor may make the owner of this session: an owner reads its content.

    Admins assign sessions that have no owner; only owners of the team move a session from one person to another."""
    if session.owner_id is not None and not actor.may(Act.GOVERN, session.team):
        return User.objects.none()
    return people_to_assign(actor, session.team)


def people_to_assign(actor: Actor, team: Team) -> QuerySet[User]:
    """Members that sessions can be assigned to; nobody gets to read content by assigning sessions to themselves."""
    if actor.key is not None or not actor.may(Act.MANAGE, team):
        return User.objects.none()
    roles = [role for role, acts in ROLE_ACTS.items() if Act.READ_OWN_CONTENT in acts]
    people = User.objects.filter(is_active=True, memberships__team=team, memberships__role__in=roles)
    if actor.user is not None and not (actor.may(Act.GOVERN, team) or actor.may(Act.READ_TEAM_CONTENT, team)):
        people = people.exclude(pk=actor.user.pk)
    return people.order_by("username")


# --- who may give what -----------------------------------------------------------------------------------------------


def roles_to_give(actor: Actor, team: Team) -> list[Role]:
    """Owners give every role; admins invite people below their own."""
    if actor.may(Act.GOVERN, team):
        return list(Role)
    return [Role.VIEWER, Role.MEMBER] if actor.may(Act.MANAGE, team) else []


def can_be_accepted(invitation: Invitation) -> bool:
    """Return whether whoever made the invitation may still give its role: an invitation ends with that right."""
    team = invitation.team
    if invitation.created_by_id is None:
        return False
    for value, content_grant in _MEMBERSHIP.read(user=invitation.created_by_id, team=team.pk):
        standing = Standing(team, Role(value), acts_of(Role(value), content_grant=content_grant))
        maker = Actor(user=invitation.created_by, standings={team.slug: standing})
        return Role(invitation.role) in roles_to_give(maker, team)
    return False


def scopes_to_give(actor: Actor, team: Team) -> list[Scope]:
    """A key cannot be given what its owner may not do."""
    standing = actor.standings.get(team.slug)
    if standing is None or actor.key is not None or not standing.may(Act.KEEP_KEYS):
        return []
    return [scope for scope in Scope if SCOPE_ACTS[scope] & standing.acts]


def may_remove(actor: Actor, membership: Membership) -> bool:
    """Owners remove anybody, admins those below them; everybody may leave."""
    if actor.key is None and actor.user is not None and membership.user_id == actor.user.pk:
        return True
    return Role(membership.role) in roles_to_give(actor, membership.team)
