"""What happens in a session: small pieces of a day's work that a plan strings together, most of them with a mishap."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count

from dashboard.demo.codebase import Project, shorten_wish
from dashboard.demo.talks import OPUS, SONNET, Talk

AUTO_LINE_TOKENS = 167_000  # of a window of 200,000, as the client draws it
BLOCKING_LINE_TOKENS = 177_000
LATE_TOKENS = 197_500
TURN_EVERY = timedelta(minutes=2)  # of a talk that goes on; longer than a turn takes
WARNING_TOKENS = 133_000  # with the earlier warning of a team that asked for it
Beat = Callable[[Talk], None]


def work(talk: Talk) -> None:
    """One turn: looks, changes, tests, answers."""
    talk.ask()
    for _ in range(talk.random.randrange(1, 4)):
        talk.read_file(talk.random.randrange(1_200, 4_500))
    talk.edit()
    talk.run_tests()
    talk.reply()


def read_much(talk: Talk) -> None:
    """A turn that fills the window: large files, one of them twice."""
    talk.ask()
    file = talk.random.choice(talk.project.files)
    for name in (file, "", "", file):
        talk.read_file(talk.random.randrange(6_000, 9_500), name)
    talk.reply()


def read_everything(talk: Talk) -> None:
    """Many such turns, for windows of a million."""
    for _ in range(3):
        talk.ask()
        for _ in range(4):
            talk.read_file(talk.random.randrange(17_000, 23_000))
        talk.reply()


def talk_on(talk: Talk) -> None:
    talk.ask()
    talk.reply()


def _lose_after(change: Beat, kept_share: float = 0.08) -> Beat:
    def beat(talk: Talk) -> None:
        change(talk)
        talk.lose(kept_share)
        work(talk)

    return beat


def _drink_coffee(talk: Talk) -> None:
    talk.wait(minutes=7 + 12 * talk.random.random())


def _have_lunch(talk: Talk) -> None:
    talk.wait(minutes=75 + 30 * talk.random.random())


def _switch_model(talk: Talk) -> None:
    talk.model = SONNET if talk.model == OPUS else OPUS


def _switch_speed(talk: Talk) -> None:
    talk.speed = "" if talk.speed else "fast"


def _update_client(talk: Talk) -> None:
    talk.version = "2.1.131"


def _switch_lifetime(talk: Talk) -> None:
    talk.ttl = "1h" if talk.ttl == "5m" else "5m"


def _restart_client(talk: Talk) -> None:
    talk.write(
        "progress", data={"type": "hook_progress", "hookEvent": "SessionStart", "hookName": "SessionStart:resume"}
    )


def _start_skill(talk: Talk) -> None:
    words = "<command-message>release-notes is running…</command-message>"
    talk.write("user", isMeta=True, message={"role": "user", "content": words})


def _do_nothing(talk: Talk) -> None:
    talk.wait(seconds=5)


def lose_at_end(talk: Talk) -> None:
    """The last call misses, and the status line says why."""
    talk.ask()
    talk.lose(0.05)
    talk.reply()


def near_warning(talk: Talk) -> None:
    talk.ask()
    while talk.context_tokens < WARNING_TOKENS:
        talk.read_file(min(9_000, max(1_000, WARNING_TOKENS + 500 - talk.context_tokens)))
    talk.reply()


def fill_window(talk: Talk) -> None:
    """Beyond the last line: the client takes no more prompts."""
    talk.ask()
    while talk.context_tokens < BLOCKING_LINE_TOKENS:
        talk.read_file(min(9_000, max(1_000, BLOCKING_LINE_TOKENS + 900 - talk.context_tokens)))
    talk.reply()


def lose_without_reason(talk: Talk) -> None:
    """The API says that it missed, and not why."""
    talk.lose(0.1, reason="unavailable")
    work(talk)


def hear_from_api(talk: Talk) -> None:
    """The API says why: a server of tools came in the middle of the session."""
    talk.lose(0.0, reason="tools_changed")
    work(talk)


def work_without_thinking(talk: Talk) -> None:
    """A long turn in which the model does not think, and a prompt after it that finds the conversation gone."""
    talk.ask()
    for _ in range(10):
        talk.read_file(talk.random.randrange(400, 900))
    talk.reply()
    talk.lose(0.25)
    work(talk)


def shorten_prompt(talk: Talk) -> None:
    """Old results leave the prompt, and the client does not write it down."""
    talk.shorten()
    work(talk)


def drop_thinking(talk: Talk) -> None:
    """Older models let go of their thinking at a new prompt."""
    talk.thinks = True
    work(talk)
    talk.lose(0.55)
    work(talk)


def rewind(talk: Talk) -> None:
    """Back to the answer before the last prompt, and on from there another way."""
    place, cached = talk.parent, talk.cached_tokens
    read_much(talk)
    talk.parent, talk.cached_tokens, talk.new_tokens = place, cached, 0
    work(talk)


def compact_at_line(talk: Talk) -> None:
    """On its own, at the line, in the middle of a turn."""
    talk.ask()
    while talk.context_tokens < AUTO_LINE_TOKENS:
        missing = AUTO_LINE_TOKENS + 800 - talk.context_tokens
        talk.read_file(min(9_000, max(1_000, missing)))
    talk.compact("auto")
    talk.run_tests()
    talk.reply()


def compact_early(talk: Talk) -> None:
    """On its own, far below the line."""
    talk.compact("auto")
    work(talk)


def compact_late(talk: Talk) -> None:
    """On its own, beyond the line."""
    talk.ask()
    while talk.context_tokens < LATE_TOKENS:
        talk.read_file(min(9_000, max(1_000, LATE_TOKENS + 500 - talk.context_tokens)))
    talk.reply()
    talk.compact("auto")
    work(talk)


def compact_by_hand(talk: Talk) -> None:
    talk.compact("manual", after_tokens=9_000)
    work(talk)


def clear_results(talk: Talk) -> None:
    talk.clear_results()
    work(talk)


def fail_to_compact(talk: Talk) -> None:
    talk.fail_to_compact()
    work(talk)


def fail_once(talk: Talk) -> None:
    """The API is overloaded, and the client tries again."""
    error = {"status": 529, "error": {"type": "error", "error": {"type": "overloaded_error"}}}
    talk.write("system", subtype="api_error", error=error, retryInMs=1_100, retryAttempt=1, maxRetries=10)
    work(talk)


BEATS: Mapping[str, Beat] = {
    "work": work,
    "read much": read_much,
    "read everything": read_everything,
    "talk": talk_on,
    "coffee": _lose_after(_drink_coffee),
    "lunch": _lose_after(_have_lunch, 0.0),
    "another model": _lose_after(_switch_model, 0.0),
    "fast mode": _lose_after(_switch_speed, 0.12),
    "update": _lose_after(_update_client, 0.0),
    "restart": _lose_after(_restart_client, 0.2),
    "lifetime": _lose_after(_switch_lifetime, 0.0),
    "skill": _lose_after(_start_skill, 0.15),
    "riddle": _lose_after(_do_nothing, 0.3),
    "server silent": lose_at_end,
    "to the warning": near_warning,
    "to the brim": fill_window,
    "no reason": lose_without_reason,
    "no thinking": work_without_thinking,
    "shorter": shorten_prompt,
    "tools came": hear_from_api,
    "thinking": drop_thinking,
    "rewind": rewind,
    "auto": compact_at_line,
    "early": compact_early,
    "late": compact_late,
    "manual": compact_by_hand,
    "micro": clear_results,
    "failed": fail_to_compact,
    "overloaded": fail_once,
}


@dataclass(frozen=True, slots=True)
class Script:
    """`plan` names beats, or steps of a proxied client. `wish` opens it and is its title; `is_open`: it stops while a
    tool runs."""

    name: str
    project: Project
    plan: tuple[str, ...]
    wish: str
    model: str = OPUS
    ttl: str = "5m"
    is_open: bool = False


def tell(script: Script, *, end_at: datetime) -> Talk:
    """A talk that ends then. Written twice: how long it takes is known when it is over."""
    rehearsal = _perform(script, start=end_at)
    return _perform(script, start=end_at - (rehearsal.now - end_at))


def _perform(script: Script, *, start: datetime) -> Talk:
    talk = Talk(script.name, script.project, start=start, model=script.model)
    talk.ttl = script.ttl
    talk.ask(script.wish)
    talk.thinks = True
    talk.read_file(2_500)
    talk.thinks = False
    talk.reply()
    for beat in script.plan:
        BEATS[beat](talk)
    if script.is_open:
        talk.ask()
        talk.read_file(2_000)
        talk.edit()
    talk.title(shorten_wish(script.wish))
    return talk


def go_on(talk: Talk, *, now: datetime) -> Iterator[bytes]:
    """The lines of each turn that an open talk has taken since, the last one begun by then and over."""
    end_at = talk.now
    for number in count():
        begin_at, known = end_at + number * TURN_EVERY, len(talk.lines)
        if begin_at + TURN_EVERY > now:
            return
        talk.now = max(talk.now, begin_at)
        _take_another_turn(talk)
        if talk.now > now:
            return
        yield b"".join(talk.lines[known:])


def _take_another_turn(talk: Talk) -> None:
    """Small, so that hours of it fit; it stops while a tool runs, as an open talk does."""
    if talk.model == OPUS and talk.context_tokens >= AUTO_LINE_TOKENS:
        talk.compact("auto")
    talk.reply()
    talk.ask()
    talk.read_file(400)


def tell_agent(talk: Talk, agent_id: str, words: str, *, start: datetime) -> Talk:
    """What a sub-agent of that talk does, in its own file."""
    agent = Talk(talk.name, talk.project, start=start, model=talk.model, agent_id=agent_id)
    agent.ask(words)
    for _ in range(4):
        agent.read_file(agent.random.randrange(1_500, 5_000))
    agent.reply()
    return agent
