// Writes src/api.ts from the OpenAPI document of the server. With --check it only
// compares, and fails when the two differ.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const target = new URL("../src/api.ts", import.meta.url);
const source = new URL("../../internal/httpapi/openapi.yaml", import.meta.url);
// Without the descriptions: rewording one changes no type.
const types = astToString(await openapiTS(source), { formatOptions: { removeComments: true } });
const text = "// Generated from internal/httpapi/openapi.yaml by `npm run types`.\n\n" + types;

if (process.argv.includes("--check")) {
  if ((await readFile(target, "utf8").catch(() => "")) !== text) {
    console.error("src/api.ts does not match internal/httpapi/openapi.yaml: run `npm run types` in web/");
    process.exit(1);
  }
} else {
  await writeFile(target, text);
}
