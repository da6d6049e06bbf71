// Bundles editor.js with each of the two builds of Excalidraw: node build.mjs FOLDER
import { build } from "esbuild";
import fs from "node:fs";
import path from "node:path";

const PAGE = `<!doctype html><meta charset="utf-8"><title>Excalidraw</title>
<link rel="stylesheet" href="editor.css"><style>html, body, #root { margin: 0; height: 100% }</style>
<div id="root"></div>
<script>window.EXCALIDRAW_ASSET_PATH = location.origin + "/"</script>
<script type="module" src="editor.js"></script>
`;

for (const name of ["release", "master"]) {
  const folder = path.join(process.argv[2], name);
  await build({
    entryPoints: ["editor.js"],
    outdir: folder,
    alias: { excalidraw: `excalidraw-${name}` },
    bundle: true,
    splitting: true,
    format: "esm",
    conditions: ["production"],
    define: { "process.env.NODE_ENV": '"production"', "process.env.IS_PREACT": '"false"' },
    external: ["*.woff2"],
    loader: { ".woff2": "file", ".ttf": "file" },
    logLevel: "error",
  });
  fs.cpSync(`node_modules/excalidraw-${name}/dist/prod/fonts`, path.join(folder, "fonts"), { recursive: true });
  fs.writeFileSync(path.join(folder, "index.html"), PAGE);
}
