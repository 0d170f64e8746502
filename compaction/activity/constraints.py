"""Constraints in messages of people: sentences that forbid, demand or bind, in common languages."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from compaction.activity.sentences import drop_code_blocks, has_cjk, is_log_line, split_sentences
from compaction.activity.user_messages import UserMessage

# Words by which people bind an agent. A question is no constraint.
_ENGLISH = (
    r"must(?:n't)?|never|always|do not|don't|dont|should(?:n't| not| always| only)|make sure|ensure|avoid"
    r"|at (?:most|least)|no more than|only (?:use|change|touch|edit|do|in|on|if|when|the)|not allowed|forbidden"
    r"|required?|without (?:changing|touching|using|adding|breaking)|instead of|rather than|stick (?:to|with)"
    r"|keep (?:the|it|all)|leave .{1,40} (?:alone|as)"
    r"|from now on|important:|prefer|under no circumstances|no (?:emojis?|comments?|mocks?|new|external)"
)
_GERMAN = (
    r"muss|müssen|musst|darf|dürfen|darfst|niemals|nie|immer|nicht|kein(?:e[nrms]?)?|soll(?:st|te[nst]*|en)?|ohne|statt"
    r"|unbedingt|höchstens|mindestens|achte darauf|stelle? sicher|vermeide|verboten|ab jetzt|nur noch"
)
_FRENCH = (
    r"jamais|toujours|doit|doivent|devez|dois|il faut|évite[zr]?|uniquement|seulement|au (?:moins|plus)"
    r"|assure-toi|assurez-vous|interdit|obligatoire|sans (?:changer|toucher|modifier|utiliser|casser|ajouter)"
    r"|n(?:e |')[\w' -]{1,40} (?:pas|plus|rien|que)|au lieu d[e']"
)
_SPANISH = (
    r"nunca|jamás|siempre|debe[ns]?|hay que|evita[r]?|solo (?:usa|cambia|toca|en|si)|solamente|únicamente|al menos"
    r"|como máximo|asegúrate|prohibido|obligatorio|sin (?:cambiar|tocar|usar|modificar|romper|añadir)|en lugar de"
    r"|no (?:uses|cambies|toques|modifiques|hagas|borres|añadas|debe[ns]?|quiero)"
)
_WESTERN = re.compile(rf"\b(?:{_ENGLISH}|{_GERMAN}|{_FRENCH}|{_SPANISH})\b", re.IGNORECASE)
# These languages put no spaces between words.
_EASTERN = re.compile(
    r"不要|不得|不能|不可|不许|不允许|不应|禁止|严禁|必须|必須|务必|務必|应该|應該|应当|應當|只能|只需|仅限|始终|始終|一定|确保|確保|避免|请勿|請勿|切勿"
    r"|至少|最多|优先|優先|而不是|别"
    r"|必ず|しないで|ないでください|いけません|してはならない|なければ|べき|ようにして|だけ|のみ|絶対|避けて"
    r"|반드시|하지 ?마|금지|항상|절대"
)
_LONGEST = 400  # a sentence beyond this is pasted text, not a constraint
_SHORTEST, _SHORTEST_CJK = 8, 4
_MOST = 60


@dataclass(frozen=True, slots=True)
class Constraint:
    """One binding sentence and the entry of its message."""

    text: str
    entry_uuid: str | None


def is_binding(sentence: str) -> bool:
    """Return whether the sentence forbids, demands or binds."""
    shortest = _SHORTEST_CJK if has_cjk(sentence) else _SHORTEST
    if not shortest <= len(sentence) <= _LONGEST or sentence.endswith(("?", "\uff1f")):
        return False
    return bool(_WESTERN.search(sentence) or _EASTERN.search(sentence))


def list_constraints(messages: Iterable[UserMessage]) -> tuple[Constraint, ...]:
    """Return the binding sentences in order, each once; the newest ones where there are very many."""
    constraints: dict[str, Constraint] = {}
    for message in messages:
        for line in drop_code_blocks(message.text).splitlines():
            if is_log_line(line) or line.lstrip().startswith(("|", "//", "[code: ")):
                continue
            for sentence in split_sentences(line):
                if is_binding(sentence):
                    constraints.setdefault(sentence.casefold(), Constraint(sentence, message.entry_uuid))
    return tuple(constraints.values())[-_MOST:]
