"""Whether a bundle's model embeds here as it did on the machine that built the bundle."""

from __future__ import annotations

from handler.bundle.encoder import Encoder, check_unit
from handler.bundle.manifest import Probe
from handler.bundle.types import BundleError

# Processors round int8 products differently; the same model on another one stays well above this.
MIN_PROBE_COSINE = 0.99


def check_probe(encoder: Encoder, probe: Probe) -> float:
    """The cosine of the probe embedded here to its stored vector.

    Raises BundleError when it is another vector: questions would be compared with strangers.
    """
    check_unit(probe.vector, encoder.spec)
    cosine = float(encoder.embed_query(probe.text) @ probe.vector)
    if not cosine >= MIN_PROBE_COSINE:
        raise BundleError(
            f"{encoder.spec.name} embeds its probe to a cosine of {cosine:.4f}, below {MIN_PROBE_COSINE}: "
            "model and vectors are not of one build"
        )
    return cosine
