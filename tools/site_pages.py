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
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "benchmarks/results.md": "benchmarks/results.md",
    "benchmarks/service/results.md": "benchmarks/service/results.md",
    "benchmarks/service/small-files/results.md": "benchmarks/service/small-files/results.md",
    "benchmarks/fleet/results.md": "benchmarks/fleet/results.md",
    "benchmarks/fleet/costs/results.md": "benchmarks/fleet/costs/results.md",
    "benchmarks/render/results.md": "benchmarks/render/results.md",
    "benchmarks/transcribe/results.md": "benchmarks/transcribe/results.md",
}
"""Pages outside docs/, and what they are called in the site."""
PICTURES = ("benchmarks/fleet/fleet.svg",)
"""Those of the pages above."""
REFERENCE = {"library": "fragdex", "client": "fragdex.client"}


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
    return files


def on_nav(nav: Any, config: Any, files: Any) -> Any:
    """Decisions are many, and listed on a page of their own."""
    for file in files.documentation_pages():
        if file.src_uri.startswith("decisions/0"):
            file.inclusion = file.inclusion.NOT_IN_NAV
    return nav


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links lead to pages of the site, or to nothing that it has."""
    folder = page.file.src_uri.rpartition("/")[0]
    markdown = re.sub(r"<!-- /?\w+ -->\n?", "", markdown)
    return re.sub(r"\]\((\.\./[^)#]+)", lambda m: f"]({_inside(m[1], folder)}", markdown)


def _inside(link: str, folder: str) -> str:
    """A link of docs/ that leads to the repository's root, as one within the site."""
    depth = folder.count("/") + 1 if folder else 0
    out = "../" * (depth + 1)
    if not link.startswith(out):
        return link
    target = link.removeprefix(out)
    return "../" * depth + FROM_ROOT.get(target, target)


def _from_root(text: str) -> str:
    return re.sub(r"\]\(docs/", "](", text)


def reference(module: str) -> str:
    """A page with all public names of a module, from their docstrings."""
    path = ROOT / "src" / Path(*module.split(".")) / "__init__.py"
    tree = ast.parse(path.read_text("utf-8"))
    named = next(
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
    entries = [
        f"::: {homes[name]}\n    options:\n      heading: {module}.{name}"
        for name in ast.literal_eval(named)
        if name != "api"
    ]
    first = (ast.get_docstring(tree) or "").splitlines()[0]
    return "\n\n".join([f"# `{module}`", first, *entries]) + "\n"
