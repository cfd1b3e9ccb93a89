// Writes src/types/*.ts from the JSON Schemas of what the page is given: `npm run types`.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { compile } from "json-schema-to-typescript";

const schemas = "../../configs/schemas";
const note = "/* Written by `npm run types` from the JSON Schema; change the struct in Python and run it again. */";
mkdirSync("src/types", { recursive: true });
for (const [name, type] of [["results", "Results"], ["run-details", "RunDetails"], ["compare", "Comparison"]]) {
  const schema = JSON.parse(readFileSync(`${schemas}/${name}.schema.json`, "utf8"));
  const text = await compile({ ...schema, title: type }, type, { additionalProperties: false, bannerComment: note });
  writeFileSync(`src/types/${name}.ts`, text);
}
