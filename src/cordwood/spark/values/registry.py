"""A client for schema registries: schemas by id and by subject, each asked for once.

It uses the REST interface of Confluent's registry, which others have too. A registry that does not answer is not a bad
record's fault: after some attempts the task fails, and Spark repeats it.
"""

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from threading import Event
from typing import Final, NamedTuple

from cordwood.errors import ConfigError, CordwoodError

_TRIES: Final = 5
_TIMEOUT_S: Final = 10.0
_BACKOFF_S: Final = 0.2
_ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
_NOT_FOUND: Final = 404
_SERVER_ERROR: Final = 500
_TOO_MANY: Final = 429
_UNKNOWN_AGAIN_S: Final = 30.0
"""For how long an unknown id is not asked for again: a stream of bad records must not become a stream of requests."""


class RegistryError(CordwoodError):
    """The registry cannot be asked, or its answer cannot be used."""


class UnknownSchema(CordwoodError):
    """The registry does not know the schema."""


class Reference(NamedTuple):
    """Another schema that a schema needs."""

    subject: str
    version: int


class Schema(NamedTuple):
    """A schema as the registry keeps it."""

    text: str
    kind: str
    references: tuple[Reference, ...]


class Registry:
    """One registry. *user* is ``name:password``."""

    def __init__(self, url: str, *, user: str | None = None) -> None:
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise ConfigError(f"schema.registry.url is {url!r}; write an address such as http://127.0.0.1:8081")
        self._url = url.rstrip("/")
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if user is not None:
            self._headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        self._known: dict[str, Schema] = {}
        self._unknown: dict[str, float] = {}

    def by_id(self, number: int) -> Schema:
        """
        Raises:
            UnknownSchema: there is none with this id.
        """
        return self._schema(f"/schemas/ids/{number}", f"schema {number}")

    def latest(self, subject: str) -> Schema:
        """The newest schema of a subject, as it was when it was first asked for."""
        return self._schema(f"/subjects/{_quoted(subject)}/versions/latest", f"subject {subject}")

    def version(self, reference: Reference) -> Schema:
        path = f"/subjects/{_quoted(reference.subject)}/versions/{reference.version}"
        return self._schema(path, f"version {reference.version} of subject {reference.subject}")

    def _schema(self, path: str, what: str) -> Schema:
        if path in self._known:
            return self._known[path]
        if time.monotonic() < self._unknown.get(path, 0.0):
            raise UnknownSchema(f"the registry does not know {what}")
        try:
            answer = self._ask(path)
        except urllib.error.HTTPError as error:
            with error:
                if error.code != _NOT_FOUND:
                    raise RegistryError(f"the registry at {self._url} answers {error.code} for {what}") from error
            self._unknown[path] = time.monotonic() + _UNKNOWN_AGAIN_S
            raise UnknownSchema(f"the registry does not know {what}") from None
        self._known[path] = found = _read(answer, what)
        return found

    def _ask(self, path: str) -> object:
        request = urllib.request.Request(self._url + path, headers=self._headers)
        pause = Event()
        for attempt in range(_TRIES):
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                    return json.loads(answer.read(_ANSWER_BYTES_MAX))
            except urllib.error.HTTPError as error:
                if error.code < _SERVER_ERROR and error.code != _TOO_MANY:
                    raise
                error.close()
                reason: Exception = error
            except (OSError, ValueError) as error:
                reason = error
            pause.wait(_BACKOFF_S * 2**attempt)
        raise RegistryError(f"the registry at {self._url} cannot be asked, {_TRIES} times: {reason}") from reason


def _quoted(subject: str) -> str:
    return urllib.parse.quote(subject, safe="")


def _read(answer: object, what: str) -> Schema:
    if not isinstance(answer, Mapping) or not isinstance(answer.get("schema"), str):
        raise RegistryError(f"the registry's answer for {what} has no schema in it")
    references = [Reference(entry["subject"], int(entry["version"])) for entry in answer.get("references") or ()]
    return Schema(answer["schema"], answer.get("schemaType") or "AVRO", tuple(references))
