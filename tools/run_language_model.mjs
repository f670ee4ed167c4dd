// Ask TensorFlow.js itself what the model of @vscode/vscode-languagedetection says.  Needs Node.
//
//     npm pack @vscode/vscode-languagedetection@1.0.23 && tar xzf vscode-*.tgz
//     node tools/run_language_model.mjs package FILE...
//
// Prints a line of JSON per file: languages and confidences.  From these lines, and the labels in
// the model's own order, tests/models/answers/languagedetection.npz was made.

import fs from "fs";
import path from "path";
import { createRequire } from "module";

const [folder, ...files] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const { ModelOperations } = require(path.resolve(folder, "dist/lib/index.js"));
const model = path.resolve(folder, "model");
const operations = new ModelOperations({
  modelJsonLoaderFunc: async () =>
    JSON.parse(fs.readFileSync(path.join(model, "model.json"), "utf8")),
  weightsLoaderFunc: async () => {
    const bytes = fs.readFileSync(path.join(model, "group1-shard1of1.bin"));
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  },
  minContentSize: 1,
  maxContentSize: 1e9,
});
for (const file of files) {
  console.log(JSON.stringify(await operations.runModel(fs.readFileSync(file, "utf8"))));
}
