"""Try whether a tag can be published: check_release.py TAG [--notes].

The version stands in pyproject.toml and CITATION.cff, and CHANGELOG.md has a section of it with a
date; the tag is `v` and that version. With --notes, the section is printed, for the release's page.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """What keeps a tag from being published."""
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    found = []
    if tag != f"v{version}":
        found.append(f"the tag is {tag}, and pyproject.toml says {version}")
    cited = re.search(r"^version: (.*)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    if cited is None or cited[1].strip("\"'") != version:
        found.append(f"CITATION.cff does not say {version}")
    heading, _ = section(version, root)
    if re.fullmatch(rf"{re.escape(version)}, \d{{4}}-\d\d-\d\d", heading) is None:
        found.append(f"CHANGELOG.md has no section '## {version}, YYYY-MM-DD', but {heading!r}")
    return found


def section(version: str, root: Path = ROOT) -> tuple[str, str]:
    """The heading and the text of a version in CHANGELOG.md; both empty where it has none."""
    text = (root / "CHANGELOG.md").read_text("utf-8")
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, rest = part.partition("\n")
        if heading.partition(",")[0] == version:
            return heading.strip(), rest.strip()
    return "", ""


def main() -> int:
    tag, *options = sys.argv[1:]
    if "--notes" in options:
        print(section(tag.removeprefix("v"))[1])
        return 0
    found = problems(tag)
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
