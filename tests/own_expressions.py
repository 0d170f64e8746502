"""Finding every regular expression of the source, how it is used, and texts that are hard for it."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

# The parser of the standard library is not public; only these tests depend on it.
_parser: Any = importlib.import_module("re._parser")
_constants: Any = importlib.import_module("re._constants")

PACKAGES = ("compaction", "dashboard")
ROOT = Path(__file__).resolve().parents[1]
# Migrations ran on what was stored already; importing the WSGI application turns live streams off.
SKIPPED = ("dashboard.migrations", "dashboard.wsgi")
METHODS = frozenset({"search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn"})
# Characters of a class that is written without naming any.
_CATEGORIES = {
    _constants.CATEGORY_DIGIT: "7",
    _constants.CATEGORY_NOT_DIGIT: "q",
    _constants.CATEGORY_SPACE: " ",
    _constants.CATEGORY_NOT_SPACE: "q",
    _constants.CATEGORY_WORD: "w",
    _constants.CATEGORY_NOT_WORD: "-",
}
_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
_LONGEST_COUNT = 40  # of a repeat that must occur more often
_CHOICES = 3  # branches and members of classes that are tried


@dataclass(frozen=True)
class Expression:
    """A compiled pattern, where it is kept, and the methods that the source calls on it."""

    place: str
    pattern: "re.Pattern[Any]"
    methods: frozenset[str]


def list_modules() -> Iterator[ModuleType]:
    for package in PACKAGES:
        for found in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if not found.name.startswith(SKIPPED) and not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def list_expressions() -> list[Expression]:
    """Every pattern that a module of ours holds, once."""
    seen: set[int] = set()
    expressions = []
    for module in list_modules():
        for name, value in vars(module).items():
            for place, pattern in _find_patterns(f"{module.__name__}.{name}", value, 0):
                if id(pattern) not in seen:
                    seen.add(id(pattern))
                    expressions.append(Expression(place, pattern, _find_methods(module.__name__, name, place)))
    return expressions


def _find_patterns(place: str, value: object, depth: int) -> Iterator[tuple[str, "re.Pattern[Any]"]]:
    if isinstance(value, re.Pattern):
        yield place, value
    elif depth > 4 or isinstance(value, (type, ModuleType, str, bytes)):
        return
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _find_patterns(f"{place}[{key!r}]", each, depth + 1)
    elif isinstance(value, (tuple, list, set, frozenset)):
        for number, each in enumerate(value):
            yield from _find_patterns(f"{place}[{number}]", each, depth + 1)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _find_patterns(f"{place}.{field.name}", getattr(value, field.name, None), depth + 1)


def _find_methods(module: str, name: str, place: str) -> frozenset[str]:
    """What the module that holds a pattern does with it; every method where that cannot be told."""
    nodes = list(ast.walk(_read_tree(module)))
    uses = sum(isinstance(node, ast.Name) and node.id == name for node in nodes)
    called = [
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    ]
    is_private = place == f"{module}.{name}" and name.startswith("_")
    return METHODS & set(called) if is_private and called and uses == len(called) + 1 else METHODS


@cache
def _read_tree(module: str) -> ast.Module:
    path = ROOT / Path(*module.split("."))
    source = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
    return ast.parse(source.read_text())


def list_inner_calls() -> list[str]:
    """Where functions compile or run an expression that no module holds, as module:function."""
    places = []
    for module in list_modules():
        for function in ast.walk(_read_tree(module.__name__)):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                places += [f"{module.__name__}:{function.name}" for node in ast.walk(function) if _is_re_call(node)]
    return sorted(set(places))


def _is_re_call(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in METHODS | {"compile"}
    )


def make_hard_units(pattern: "re.Pattern[Any]") -> list[tuple[str, str]]:
    """Pairs of a start and a unit: a text is the start and then units only, so that nothing ends the match.

    Each repeat of the pattern gives what leads to it and what it repeats. What leads to it is also a unit of its own,
    so that a text has many places where a match may begin.
    """
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = _parser.parse(source, pattern.flags & ~re.UNICODE)
    pairs: dict[tuple[str, str], None] = {}
    for choice in range(_CHOICES):
        whole = _write(tree, choice)
        for text in (whole, whole[:-1], whole[1:]):
            pairs["", text] = None
        for lead, unit in _find_repeats(tree, "", choice):
            pairs |= dict.fromkeys([(lead, unit), ("", unit), ("", lead), ("", lead + unit), ("", lead + unit * 30)])
    return [(lead, unit) for lead, unit in pairs if unit]


def _find_repeats(tree: Any, lead: str, choice: int) -> Iterator[tuple[str, str]]:
    for operator, value in tree:
        if operator in _REPEATS:
            _, most, inner = value
            yield from _find_repeats(inner, lead, choice)
            if most > 1:
                yield lead, _write(inner, choice)
        elif operator is _constants.SUBPATTERN:
            yield from _find_repeats(value[3], lead, choice)
        elif operator is _constants.ATOMIC_GROUP:
            yield from _find_repeats(value, lead, choice)
        elif operator is _constants.BRANCH:
            for branch in value[1]:
                yield from _find_repeats(branch, lead, choice)
        lead += _write([(operator, value)], choice)


def _write(tree: Any, choice: int) -> str:
    return "".join(_write_node(operator, value, choice) for operator, value in tree)


def _write_node(operator: Any, value: Any, choice: int) -> str:
    """A text that the node matches, or nothing: assertions and references are left out. `choice` picks a branch."""
    text = ""
    if operator is _constants.LITERAL:
        text = chr(value)
    elif operator is _constants.NOT_LITERAL:
        text = "q" if value != ord("q") else "r"
    elif operator is _constants.ANY:
        text = "q"
    elif operator is _constants.IN:
        text = _write_class(value, choice)
    elif operator is _constants.BRANCH:
        text = _write(value[1][choice % len(value[1])], choice)
    elif operator is _constants.SUBPATTERN:
        text = _write(value[3], choice)
    elif operator is _constants.ATOMIC_GROUP:
        text = _write(value, choice)
    elif operator in _REPEATS:
        least, _, inner = value
        text = _write(inner, choice) * max(1, min(least, _LONGEST_COUNT))
    return text


def _write_class(items: Any, choice: int) -> str:
    if items[0][0] is _constants.NEGATE:
        named = {chr(value) for operator, value in items if operator is _constants.LITERAL}
        ranges = [value for operator, value in items if operator is _constants.RANGE]
        allowed = [c for c in "q 7-.\n~" if c not in named and not any(low <= ord(c) <= high for low, high in ranges)]
        return allowed[choice % len(allowed)]
    operator, value = items[choice % len(items)]
    if operator is _constants.LITERAL:
        return chr(value)
    if operator is _constants.RANGE:
        return chr(value[0])
    return _CATEGORIES[value]
