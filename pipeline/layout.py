"""Where the build keeps what: one file or folder for each thing that a stage hands to the next."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from handler.bundle.layout import MODEL, SUMS, TOKENIZER

# The description of a model, beside its graph and its tokenizer.
MODEL_SPEC = "model.json"


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths below the build folder."""

    root: Path

    @property
    def pages_folder(self) -> Path:
        """The exported pages of all sites."""
        return self.root / "pages"

    def pages(self, site: str) -> Path:
        """The list of a site's exported pages; the pages themselves stand in the folder beside it."""
        return self.pages_folder / f"{site}.json"

    @property
    def snapshots(self) -> Path:
        """Markdown that is in no bundle: a folder for each snapshot."""
        return self.root / "snapshots"

    @property
    def local_index(self) -> Path:
        """An index for the local chat alone, which the person fills."""
        return self.root / "local.db"

    def chunks(self, site: str) -> Path:
        """A site's chunks, one JSON object a line."""
        return self.root / "chunks" / f"{site}.jsonl"

    @property
    def gathered(self) -> Path:
        """The sites that make up the bundle."""
        return self.root / "index" / "sites.json"

    @property
    def model_folder(self) -> Path:
        """The embedding model: model.json, model.onnx, tokenizer.json."""
        return self.root / "model"

    @property
    def model_spec(self) -> Path:
        """The model's description, written last."""
        return self.model_folder / MODEL_SPEC

    @property
    def model(self) -> Path:
        """The model's graph."""
        return self.model_folder / MODEL

    @property
    def tokenizer(self) -> Path:
        """The model's tokenizer."""
        return self.model_folder / TOKENIZER

    @property
    def vector_cache(self) -> Path:
        """Every vector that was ever computed here, by model and text."""
        return self.root / "vectors" / "cache.db"

    @property
    def vectors(self) -> Path:
        """The vectors of the bundle's chunks, (n, dim) float32, in the order of the chunks."""
        return self.root / "vectors" / "vectors.npy"

    @property
    def title_vectors(self) -> Path:
        """The vectors of the titles of the bundle's pages, (n, dim) float32, in the order of the titles."""
        return self.root / "vectors" / "titles.npy"

    @property
    def database(self) -> Path:
        """The bundle's rag.db before it is sealed."""
        return self.root / "index" / "rag.db"

    @property
    def gate(self) -> Path:
        """The calibrated gate."""
        return self.root / "index" / "gate.json"

    @property
    def evaluation(self) -> Path:
        """How well the index answers the sites' questions."""
        return self.root / "reports" / "evaluation.json"

    @property
    def current(self) -> Path:
        """The link to the newest sealed bundle."""
        return self.root / "current"

    @property
    def current_sums(self) -> Path:
        """The last file that sealing writes."""
        return self.current / SUMS

    @property
    def plugins(self) -> Path:
        """The marketplace of the plugins, to install them from."""
        return self.root / "plugins"

    @property
    def diagrams(self) -> Path:
        """The drawn maps."""
        return self.root / "diagrams"

    @property
    def package(self) -> Path:
        """What ships to a host."""
        return self.root / "package"

    @property
    def package_sums(self) -> Path:
        """The last file that packaging writes."""
        return self.package / SUMS
