// Writes src/types/*.ts from the JSON Schemas, and the OpenAPI description, of what the page is given: `npm run build` does it first.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { compile } from "json-schema-to-typescript";

const schemas = "../../configs/schemas";
mkdirSync("src/types", { recursive: true });
for (const [name, type] of [["results", "Results"], ["run-details", "RunDetails"], ["compare", "Comparison"], ["history", "History"]]) {
  await write(name, type, JSON.parse(readFileSync(`${schemas}/${name}.schema.json`, "utf8")));
}
const described = readFileSync("../../docs/reference/openapi.json", "utf8").replaceAll("#/components/schemas/", "#/$defs/");
const { RunList, ListedRun } = JSON.parse(described).components.schemas;
await write("run-list", "RunList", { ...RunList, $defs: { ListedRun } });

async function write(name, type, schema) {
  const text = await compile({ ...schema, title: type }, type, { additionalProperties: false });
  writeFileSync(`src/types/${name}.ts`, text);
}
