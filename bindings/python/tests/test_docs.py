"""`help()` has the texts of the types, which editors show."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import offload

STUB = ast.parse((Path(__file__).parent.parent / "python" / "offload" / "_offload.pyi").read_text())
DEFINED = [node for node in STUB.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and hasattr(offload, node.name)]


@pytest.mark.parametrize("node", DEFINED, ids=lambda node: str(node.name))
def test_docstrings_are_those_of_the_types(node: ast.FunctionDef | ast.ClassDef) -> None:
    known = getattr(offload, node.name)
    assert inspect.getdoc(known) == ast.get_docstring(node)
    members = node.body if isinstance(node, ast.ClassDef) else []
    for member in members:
        if isinstance(member, ast.FunctionDef) and (text := ast.get_docstring(member)):
            assert inspect.getdoc(getattr(known, member.name)) == text, member.name


@pytest.mark.parametrize("name", ["images", "match", "thin", "scan"])
def test_functions_have_arguments_errors_and_an_example(name: str) -> None:
    function = getattr(offload, name)
    text = inspect.getdoc(function) or ""
    before, _, after = text.partition("Args:")
    arguments, _, errors = after.partition("Raises:")
    assert ">>> " in before and "Error: " in errors
    named = [line.split(":")[0].strip() for line in arguments.splitlines() if line.startswith("    ") and not line.startswith("     ")]
    assert named == list(inspect.signature(function).parameters)
