# SPDX-License-Identifier: BSD-2-Clause
"""Compares a JSON document with the schema of ibfabric, in the part of JSON Schema that it uses. Stricter than the
standard in one thing: an object has no member that the schema does not list."""

import json
import re

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
         "null": type(None)}
KEYWORDS = {"$schema", "$defs", "title", "$ref", "const", "enum", "type", "pattern", "items", "properties", "required",
            "additionalProperties"}


def is_of_type(value, name):
    # a bool is an int in Python
    return isinstance(value, TYPES[name]) and isinstance(value, bool) == (name == "boolean")


def faults(value, rule, root, where="document"):
    """What does not fit, a text each."""
    unknown = set(rule) - KEYWORDS
    assert not unknown, f"{where}: the schema uses {unknown}"
    if "$ref" in rule:
        rule = root["$defs"][rule["$ref"].removeprefix("#/$defs/")]
    types = rule.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_of_type(value, name) for name in types):
        yield f"{where}: {value!r} is not {types}"
        return
    if "const" in rule and value != rule["const"] or "enum" in rule and value not in rule["enum"]:
        yield f"{where}: {value!r} is not permitted"
    if "pattern" in rule and isinstance(value, str) and not re.search(rule["pattern"], value):
        yield f"{where}: {value!r} does not match {rule['pattern']}"
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from faults(item, rule.get("items", {}), root, f"{where}[{index}]")
    if isinstance(value, dict):
        for name in rule.get("required", []):
            if name not in value:
                yield f"{where}: {name} is missing"
        for name, member in value.items():
            known = rule["properties"].get(name, rule.get("additionalProperties"))
            if known is None:
                yield f"{where}: {name} is not in the schema"
            else:
                yield from faults(member, known, root, f"{where}.{name}")


def check(document, path):
    """Fails if the document does not fit the schema in this file."""
    with open(path, encoding="utf-8") as file:
        schema = json.load(file)
    found = list(faults(document, schema, schema))
    assert not found, found
