"""The OpenAPI description as something a page can show: operations by resource, types in words, an example of each
call and of its answer."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Field:
    name: str
    type: str
    is_required: bool
    words: str


@dataclass(frozen=True)
class Answer:
    status: str
    meaning: str
    type: str


@dataclass(frozen=True)
class Operation:
    anchor: str
    method: str
    path: str
    title: str
    words: str
    parameters: list[Field]
    body: list[Field]
    answers: list[Answer]
    needs_person: bool  # a key is refused
    example: str
    answer_example: str  # empty where nothing, or a file, is answered


@dataclass(frozen=True)
class Resource:
    name: str
    operations: list[Operation]


@dataclass(frozen=True)
class Shape:
    """A named type of the description."""

    name: str
    words: str
    fields: list[Field]


class Reference:
    def __init__(self, description: Schema, *, origin: str) -> None:
        self.description = description
        self.origin = origin
        self.named: Schema = description["components"]["schemas"]

    def resources(self) -> list[Resource]:
        grouped: dict[str, list[Operation]] = {}
        for path, methods in self.description["paths"].items():
            for method, operation in methods.items():
                grouped.setdefault(operation["tags"][0], []).append(self._operation(method.upper(), path, operation))
        return [Resource(name, operations) for name, operations in grouped.items()]

    def shapes(self) -> list[Shape]:
        objects = {name: schema for name, schema in self.named.items() if "properties" in schema}
        return [Shape(name, schema.get("description", ""), self._fields(schema)) for name, schema in objects.items()]

    def _operation(self, method: str, path: str, operation: Schema) -> Operation:
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        return Operation(
            anchor=operation["operationId"],
            method=method,
            path=path,
            title=operation["summary"],
            words=operation.get("description", ""),
            parameters=list(self._parameters(operation)),
            body=self._fields(self._resolve(body)) if body else [],
            answers=[self._answer(status, answer) for status, answer in operation["responses"].items()],
            needs_person=operation.get("x-person-only", False),
            example=self._example(method, path, body),
            answer_example=self._answer_example(operation["responses"]),
        )

    def _parameters(self, operation: Schema) -> Iterator[Field]:
        for each in operation["parameters"]:
            words = each.get("description") or each["schema"].get("description", "")
            yield Field(each["name"], self.type_of(each["schema"]), bool(each["required"]), words)

    def _answer(self, status: str | int, answer: Schema) -> Answer:
        schema = answer.get("content", {}).get("application/json", {}).get("schema")
        return Answer(str(status), answer["description"], self.type_of(schema) if schema else "no body")

    def _fields(self, schema: Schema) -> list[Field]:
        required = schema.get("required", ())
        return [
            Field(name, self.type_of(each), name in required, each.get("description", ""))
            for name, each in schema.get("properties", {}).items()
        ]

    def type_of(self, schema: Schema) -> str:
        """`string or null`, `list of KeyOut`, `one of viewer, member`."""
        if "$ref" in schema:
            named = self._resolve(schema)
            return self.type_of(named) if "enum" in named else str(named["title"])
        if "anyOf" in schema:
            return " or ".join(self.type_of(each) for each in schema["anyOf"])
        if "enum" in schema:
            return f"one of {', '.join(map(str, schema['enum']))}"
        if schema.get("type") == "array":
            kinds = " and ".join(self.type_of(each) for each in schema.get("prefixItems", ()))
            return kinds or f"list of {self.type_of(schema.get('items', {}))}"
        limits = [f"{word} {schema[key]}" for key, word in _LIMITS.items() if key in schema]
        kind = str(schema.get("format") or schema.get("type", "anything"))
        return f"{kind} ({', '.join(limits)})" if limits else kind

    def _resolve(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            schema = self.named[schema["$ref"].rsplit("/", 1)[-1]]
        return schema

    def _example(self, method: str, path: str, body: Schema | None) -> str:
        parts = ['curl -H "Authorization: Bearer $PLIMSOLL_KEY"']
        if method != "GET":
            parts.append(f"-X {method}")
        if body:
            sample = json.dumps(self._sample(body))
            parts.append(f"-H 'Content-Type: application/json' -d '{sample}'")
        return " ".join([*parts, f"{self.origin}{fill_path(path)}"])

    def _answer_example(self, responses: Schema) -> str:
        done: Schema = next((answer for status, answer in responses.items() if status.startswith("2")), {})
        schema = done.get("content", {}).get("application/json", {}).get("schema")
        return json.dumps(self._sample(schema, _ANSWERED), indent=2, ensure_ascii=False) if schema else ""

    def _sample(self, schema: Schema, known: Schema | None = None, name: str = "") -> object:
        """A value that fits: the schema's own example, else one `known` for the field's name or its kind."""
        schema = self._resolve(schema)
        if "anyOf" in schema:
            return self._sample(schema["anyOf"][0], known, name)
        if offered := schema.get("examples") or schema.get("enum"):
            return offered[0]
        if "properties" in schema:
            return {key: self._sample(each, known, key) for key, each in schema["properties"].items()}
        if schema.get("type") == "array":
            return [self._sample(each, known, name) for each in schema.get("prefixItems") or [schema.get("items", {})]]
        return {} if schema.get("type") == "object" else _choose(schema, known, name)


def fill_path(path: str) -> str:
    """An address with the names and numbers of an invented team in it."""
    return _PLACEHOLDER.sub(lambda found: str(_IN_PATHS.get(found[1], 7)), path)


def _choose(schema: Schema, known: Schema | None, name: str) -> object:
    kind = schema.get("type", "")
    plain = {"integer": schema.get("minimum", 1), "number": 1.5, "boolean": True}.get(kind, "name")
    if known is None:
        return plain
    for ending, value in known.items():
        if name.endswith(ending) and isinstance(value, _KINDS.get(kind, ())):
            return value
    return {"date-time": "2026-11-02T09:30:00Z", "date": "2026-11-02"}.get(schema.get("format", ""), plain)


_PLACEHOLDER = re.compile(r"{(\w+)}")
_IN_PATHS = {
    "slug": "harbour",
    "session_id": 1284,
    "second_id": 1301,
    "break_id": 97,
    "compaction_id": 41,
    "run_id": 12,
    "version": 3,
}
_KINDS: dict[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float), "boolean": (bool,), "string": (str,)}
# What answers hold, by how the name of a field ends; the first that fits.
_ANSWERED: dict[str, object] = {
    "window_tokens": 200_000,
    "line_tokens": 167_000,
    "_tokens": 51_200,
    "_usd": "0.42",
    "_seconds": 41,
    "_count": 3,
    "session_id": 1284,
    "external_id": "4f6c1f0e-5a1b-4c7e-9d42-0b7f6f0a1c55",
    "percent_left": 64,
    "hit_rate": 0.94,
    "model": "claude-sonnet-4-5",
    "project_path": "/home/mia/webshop",
    "project": "webshop",
    "branch": "main",
    "developer": "mia",
    "client_version": "2.1.325",
    "team": "harbour",
    "slug": "harbour",
    "thread": "main",
    "title": "Fix the login form",
    "level": "ok",
    "cause": "ttl_expired_5m",
    "trigger": "auto",
    "path": "/home/mia/webshop/login.py",
    "number": 12,
    "version": 3,
    "id": 97,
}
_LIMITS = {"minimum": "from", "maximum": "to", "minLength": "at least", "maxLength": "at most"}
