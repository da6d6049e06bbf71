"""Embeds the texts of a JSON file with fastembed; prints {"seconds": …, "vectors": the first two}.

Runs in an environment of its own: python fastembed_embed.py FOLDER MODEL_FILE BATCH TEXTS.json
"""

import json
import sys
import time
from pathlib import Path

from fastembed import TextEmbedding  # type: ignore[import-not-found]
from fastembed.common.model_description import ModelSource, PoolingType  # type: ignore[import-not-found]

folder, model_file, batch, texts_file = sys.argv[1:]
texts = json.loads(Path(texts_file).read_text("utf-8"))
TextEmbedding.add_custom_model(
    model="published",
    pooling=PoolingType.CLS,
    normalization=True,
    sources=ModelSource(url="file:///nowhere"),
    dim=384,
    model_file=model_file,
)
model = TextEmbedding("published", specific_model_path=folder)
vectors = [vector.tolist() for vector in model.embed(texts[:2])]

start = time.perf_counter()
list(model.embed(texts, batch_size=int(batch)))
print(json.dumps({"seconds": time.perf_counter() - start, "vectors": vectors}))
