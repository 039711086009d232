"""The index in everyone's form, a file each.

Every form has a `write(index, **options) -> bytes`, and a `read` where it can be read. A form's
module is imported when it is used.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # and not from typing: a seek in a saved index does without that module
if TYPE_CHECKING:
    from fragdex.seeking.model import Index

__all__ = ["export"]


def export(index: Index, form: str, **options: object) -> bytes:
    """The index in another form.

    Args:
        form: a name in `FORMS`.
        options: what the form's own `write` takes.

    Raises:
        ValueError: there is no such form.
        TypeError: the form has no such option.
        InexactIndex: the form needs samples that this index does not have.

    >>> from fragdex.seeking.model import FileInfo, How, Index
    >>> export(Index(FileInfo(), How("boxes", True), ()), "json")
    b'{}'
    """
    from fragdex.errors import did_you_mean, refuse_unknown
    from fragdex.seeking.forms import FORMS

    if form not in FORMS:
        near = did_you_mean(str(form), FORMS)
        raise ValueError(f"there is no form {form!r}: expected one of {', '.join(FORMS)}{near}")
    refuse_unknown(f"the form {form}", options, FORMS[form].options)
    module = import_module(f"fragdex.{FORMS[form].module}")
    written: bytes = getattr(module, FORMS[form].function)(index, **options)
    return written


def __dir__() -> list[str]:
    return sorted(__all__)
