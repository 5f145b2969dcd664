"""The API's description (OpenAPI 3.1), and whether answers are what it says."""

import re
import urllib.parse

import jsonschema

from . import http


class Description:
    def __init__(self, document: dict):
        self.document = document
        #: (method, path) of each operation.
        self.operations = [(method, path) for path, all in document["paths"].items() for method in all]

    def operation(self, method: str, path: str) -> dict:
        return self.document["paths"][path][method]

    def find(self, method: str, target: str) -> tuple[str, str]:
        """The operation of a request."""
        path = urllib.parse.urlsplit(target).path
        found = [key for key in self.operations if key[0] == method.lower()
                 and re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(key[1])), path)]
        assert found, f"the description has no {method} {path}"
        # The one with fewest places: /sources/{source}/preview beats /sources/{source}/{…}.
        return min(found, key=lambda key: key[1].count("{"))

    def schema(self, reference: str) -> dict:
        """A schema that resolves its references within the document."""
        return {"$ref": reference, "components": self.document["components"]}

    def _resolve(self, part: dict) -> dict:
        while "$ref" in part:
            target = self.document
            for name in part["$ref"].removeprefix("#/").split("/"):
                target = target[name]
            part = target
        return part

    def check(self, answer: http.Response, method: str, target: str) -> tuple[str, str]:
        """AssertionError if the status is not declared, or the body is not of its type and schema. Returns the operation."""
        key = self.find(method, target)
        responses = self.operation(*key)["responses"]
        assert str(answer.status) in responses, f"{method} {target} answers {answer.status}: {answer.body[:300]!r}"
        content = self._resolve(responses[str(answer.status)]).get("content")
        if content is None:
            assert not answer.body, f"{method} {target} answers {answer.body[:300]!r}, and should have no body"
            return key
        kind = answer.headers.get("content-type", "")
        assert kind in content, f"{method} {target}: {kind} instead of {list(content)}"
        schema = content[kind].get("schema")
        if schema and "json" in kind:
            jsonschema.validate(answer.json, {**schema, "components": self.document["components"]},
                                format_checker=jsonschema.FormatChecker())
        return key
