"""The OpenAPI description as something a page can show: operations by resource, types in words, an example call."""

import json
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
            title=operation["summary"].capitalize(),
            words=operation.get("description", ""),
            parameters=list(self._parameters(operation)),
            body=self._fields(self._resolve(body)) if body else [],
            answers=[self._answer(status, answer) for status, answer in operation["responses"].items()],
            needs_person=operation.get("x-person-only", False),
            example=self._example(method, path, body),
        )

    def _parameters(self, operation: Schema) -> Iterator[Field]:
        for each in operation["parameters"]:
            words = each.get("description") or each["schema"].get("description", "")
            yield Field(each["name"], self.type_of(each["schema"]), bool(each["required"]), words)

    def _answer(self, status: str | int, answer: Schema) -> Answer:
        schema = answer.get("content", {}).get("application/json", {}).get("schema")
        return Answer(str(status), answer["description"], self.type_of(schema) if schema else "nothing")

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
            return f"list of {self.type_of(schema['items'])}"
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
        return " ".join([*parts, f"{self.origin}{path}"])

    def _sample(self, schema: Schema) -> object:
        """A value that fits: the schema's own example, else the plainest one."""
        schema = self._resolve(schema)
        if schema.get("examples"):
            return schema["examples"][0]
        if "anyOf" in schema:
            return self._sample(schema["anyOf"][0])
        if "enum" in schema:
            return schema["enum"][0]
        if "properties" in schema:
            return {name: self._sample(each) for name, each in schema["properties"].items()}
        if schema.get("type") == "array":
            return [self._sample(schema["items"])]
        return {"integer": schema.get("minimum", 1), "number": 1.5, "boolean": True}.get(schema.get("type", ""), "name")


_LIMITS = {"minimum": "from", "maximum": "to", "minLength": "at least", "maxLength": "at most"}
