"""The data that a page is given, and the schema that it declares for them.

A page declares what it takes by a JSON Schema in a script of the type `application/schema+json`.
Nothing is drawn before the data agree with it.
"""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Final

from fragdex.errors import PageFailed

__all__ = ["check", "giving"]

_TYPE: Final = "application/schema+json"
_WORDS: Final = 300

# The page may set `fragdex` to an object of its own; the data stay in it.
_GIVE: Final = """(() => {
  const data = JSON.parse(%s);
  let own = { data };
  // where pages look that render themselves
  globalThis.EF_RENDER_DATA = data;
  Object.defineProperty(globalThis, "fragdex", {
    configurable: true, enumerable: true,
    get: () => own,
    set: (value) => {
      own = value;
      if (value !== null && typeof value === "object" && !("data" in value)) {
        try { value.data = data; } catch {}
      }
    },
  });
})();"""


def giving(data: bytes) -> str:
    """The script that gives a page its data, as `fragdex.data` and as `EF_RENDER_DATA`.

    Args:
        data: JSON.
    """
    return _GIVE % json.dumps(data.decode())


def check(page: bytes, data: bytes) -> None:
    """Compare data with the schema that a page declares, if it declares one.

    Args:
        page: its HTML; data: JSON.

    Raises:
        PageFailed: they do not agree, or the schema is none.

    >>> schema = '{"properties": {"title": {"type": "string"}}}'
    >>> html = f'<script type="application/schema+json">{schema}</script>'.encode()
    >>> check(html, b'{"title": "Hello"}')
    >>> check(html, b'{"title": 7}')  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fragdex.errors.PageFailed: the data do not agree ...: /title: 7 is not of type 'string'
    """
    reader = _Schema()
    reader.feed(page.decode("utf-8", "replace"))
    if reader.text is None:
        return
    import jsonschema
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        schema = json.loads(reader.text)
        kind = validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        # an empty registry: what a schema refers to elsewhere is not fetched
        wrong = jsonschema.exceptions.best_match(
            kind(schema, registry=Registry()).iter_errors(json.loads(data))
        )
    except (ValueError, RecursionError, jsonschema.SchemaError, Unresolvable) as error:
        why = str(error).partition("\n")[0][:_WORDS]
        raise PageFailed(f"the page's schema cannot be used: {why}") from None
    if wrong is not None:
        where = "".join(f"/{part}" for part in wrong.absolute_path) or "/"
        raise PageFailed(
            f"the data do not agree with the page's schema: {where}: {wrong.message[:_WORDS]}",
            pointer=f"/data{where if where != '/' else ''}",
        )


class _Schema(HTMLParser):
    """Finds the first schema in a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.text: str | None = None
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A script of its type begins."""
        self._inside = tag == "script" and self.text is None and ("type", _TYPE) in attrs
        if self._inside:
            self.text = ""

    def handle_endtag(self, tag: str) -> None:
        """The script ends."""
        self._inside = False

    def handle_data(self, data: str) -> None:
        """Its text."""
        if self._inside and self.text is not None:
            self.text += data
