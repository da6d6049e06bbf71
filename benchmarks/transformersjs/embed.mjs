// Embeds the texts of a JSON file; prints {"seconds": …, "vectors": the first two}.
// node embed.mjs MODELS_FOLDER MODEL fp32|q8 BATCH TEXTS.json
import { readFile } from "node:fs/promises";
import { env, pipeline } from "@huggingface/transformers";

const [folder, model, dtype, batch, textsFile] = process.argv.slice(2);
const texts = JSON.parse(await readFile(textsFile, "utf8"));
env.allowRemoteModels = false;
env.localModelPath = folder;
const embed = await pipeline("feature-extraction", model, { dtype, device: "cpu" });
const options = { pooling: "cls", normalize: true };
const vectors = (await embed(texts.slice(0, 2), options)).tolist();

const start = performance.now();
for (let i = 0; i < texts.length; i += Number(batch)) {
  await embed(texts.slice(i, i + Number(batch)), options);
}
console.log(JSON.stringify({ seconds: (performance.now() - start) / 1000, vectors }));
