"""How services are asked that a snapshot is made of, as the environment says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from handler.bundle.env_file import over_env_file
from pipeline.settings import ROOT
from pipeline.site import SiteError, check_url


@dataclass(frozen=True, slots=True)
class LastFmSettings:
    """How Last.fm is asked. `api_key` is empty when there is none."""

    api_key: str = field(repr=False)
    base_url: str


def read_last_fm_settings(environ: Mapping[str, str], folder: Path = ROOT) -> LastFmSettings:
    """The settings of the environment, and of the folder's `.env` for those that it lacks.

    Raises SiteError when the file cannot be read, or the address is none.
    """
    try:
        values = over_env_file(environ, folder)
    except (OSError, UnicodeDecodeError) as error:
        raise SiteError(f"{folder / '.env'} cannot be read: {error}") from None
    base_url = values.get("LASTFM_BASE_URL") or "https://ws.audioscrobbler.com/2.0/"
    check_url("LASTFM_BASE_URL", base_url)
    return LastFmSettings(values.get("LASTFM_API_KEY") or "", base_url)
