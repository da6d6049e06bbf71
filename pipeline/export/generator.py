"""What a site's own configuration says of pages: files to pass over, values for many pages at once."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import yaml

from pipeline.frontmatter import text_value
from pipeline.site import Site, SiteError


def read_config(site: Site, *names: str) -> Mapping[str, Any]:
    """The first of these files (TOML, YAML or JSON) that the site's source has; empty when it has none.

    Raises SiteError when it cannot be read: what it hides would be published.
    """
    path = next((site.source_path / name for name in names if (site.source_path / name).is_file()), None)
    if path is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8-sig")
        match path.suffix:
            case ".toml":
                return tomllib.loads(text)
            case ".json":
                config = json.loads(text)
            case _:
                config = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise SiteError(f"{path}: cannot be read: {error}") from None
    return config if isinstance(config, dict) else {}


def site_languages(site: Site, default: str, named: object) -> list[str]:
    """The languages of a site, the default one first; none where neither options nor configuration name any.

    `default` and `named`, a table by language, are the configuration's. English is Hugo's default and Zola's.
    """
    listed = site.options.get("languages")
    default = text_value(site.options.get("default_language")) or default
    others = [*(listed if isinstance(listed, list) else ()), *(named if isinstance(named, dict) else ())]
    return [default or "en", *map(str, others)] if default or others else []


def is_below(path: str, patterns: object) -> bool:
    """Whether one of the patterns names a path or a folder above it; `*` stands for slashes too."""
    names = [str(pattern).strip("/") for pattern in patterns] if isinstance(patterns, list) else []
    return any(
        path == name or path.startswith(f"{name}/") or fnmatchcase(path, name) for name in names if name
    )
