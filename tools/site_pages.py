"""What the site has besides docs/: pages of the repository's root, the reference, the decisions."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
FROM_ROOT = {
    "README.md": "overview.md",  # README.md would be the page that index.md is
    "SECURITY.md": "SECURITY.md",
    "deploy/README.md": "deploy/README.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CODE_OF_CONDUCT.md": "CODE_OF_CONDUCT.md",
    "benchmarks/results.md": "benchmarks/results.md",
    "benchmarks/service/results.md": "benchmarks/service/results.md",
    "benchmarks/service/small-files/results.md": "benchmarks/service/small-files/results.md",
    "benchmarks/fleet/results.md": "benchmarks/fleet/results.md",
    "benchmarks/fleet/costs/results.md": "benchmarks/fleet/costs/results.md",
    "benchmarks/frames/results.md": "benchmarks/frames/results.md",
    "benchmarks/render/results.md": "benchmarks/render/results.md",
    "benchmarks/transcribe/results.md": "benchmarks/transcribe/results.md",
    "benchmarks/transcribe/speakers/results.md": "benchmarks/transcribe/speakers/results.md",
    "benchmarks/transcribe/languages/results.md": "benchmarks/transcribe/languages/results.md",
}
"""Pages outside docs/, and what they are called in the site."""
OTHER_FILES = r"LICENSE|Dockerfile|openapi\.json|[\w-]+\.(?:ya?ml|service|html)"
"""Files that pages link to in a checkout and that the site does not have."""
PICTURES = ("benchmarks/fleet/fleet.svg",)
"""Those of the pages above."""
REFERENCE = {
    "library": "fragdex",
    "boxes": "fragdex.boxes",
    "byterange": "fragdex.byterange",
    "client": "fragdex.client",
    "data": "fragdex.data",
    "digest": "fragdex.digest",
    "errors": "fragdex.errors",
    "frames": "fragdex.frames",
    "media": "fragdex.media",
    "origin": "fragdex.origin",
    "sources": "fragdex.sources",
    "tables": "fragdex.tables",
    "testing": "fragdex.testing",
    "webhook_signature": "fragdex.webhook_signature",
}
"""The public modules, by the page of each below reference/."""


def on_files(files: Any, config: Any) -> Any:
    """Add pages."""
    for name, called in FROM_ROOT.items():
        text = (ROOT / name).read_text("utf-8")
        files.append(File.generated(config, called, content=_from_root(text)))
    for name in PICTURES:
        files.append(File.generated(config, name, content=(ROOT / name).read_bytes()))
    for name, module in REFERENCE.items():
        page = File.generated(config, f"reference/{name}.md", content=reference(module))
        files.append(page)
    for file in files.documentation_pages():
        if file.src_uri.startswith("decisions/0"):  # listed on a page of their own
            file.inclusion = file.inclusion.NOT_IN_NAV
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links lead to pages of the site; a link to another file of the repository is its text."""
    folder = page.file.src_uri.rpartition("/")[0]
    markdown = re.sub(r"<!-- /?[\w-]+ -->\n?", "", markdown)
    markdown = re.sub(r"\]\((\.\./[^)#]+)", lambda m: f"]({_inside(m[1], folder)}", markdown)
    return re.sub(rf"(?<!!)\[([^][]*)\]\((?:[\w./-]+/)?(?:{OTHER_FILES})\)", r"\1", markdown)


def _inside(link: str, folder: str) -> str:
    """A link of docs/ that leads to the repository's root, as one within the site."""
    depth = folder.count("/") + 1 if folder else 0
    out = "../" * (depth + 1)
    if not link.startswith(out):
        return link
    target = link.removeprefix(out)
    return "../" * depth + FROM_ROOT.get(target, target)


def _from_root(text: str) -> str:
    return re.sub(r"\]\((\.\./)?docs/", r"](\1", text)


def reference(module: str) -> str:
    """A page with all public names of a module, from their docstrings.

    A name that is also one of `fragdex` is a link to its description there.
    """
    top = {} if module == "fragdex" else public_names("fragdex")
    entries = []
    for name, home in public_names(module).items():
        if home in top.values():
            entries.append(f"## {module}.{name}\n\nSee [fragdex.{name}](library.md#{home}).")
        else:
            entries.append(f"::: {home}\n    options:\n      heading: {module}.{name}")
    first = (ast.get_docstring(_tree(module)) or "").splitlines()[0]
    return "\n\n".join([f"# `{module}`", first, *entries]) + "\n"


def public_names(module: str) -> dict[str, str]:
    """The names in `__all__`, and where each is defined; modules among them are left out."""
    tree = _tree(module)
    names = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    homes = {
        alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    found = {name: homes.get(name, f"{module}.{name}") for name in ast.literal_eval(names)}
    return {name: home for name, home in found.items() if not _file(home).exists()}


def _tree(module: str) -> ast.Module:
    return ast.parse(_file(module).read_text("utf-8"))


def _file(module: str) -> Path:
    path = ROOT / "src" / Path(*module.split("."))
    package = path / "__init__.py"
    return package if package.exists() else path.with_suffix(".py")
