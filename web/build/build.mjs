// Makes dist/ from src/: the button and the client (served, and published to npm),
// the demo page and the console (served). The same source gives the same bytes.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { build } from "vite";

const limits = { "button.js": 6 * 1024, "client.js": 3 * 1024 }; // bytes after gzip

const root = fileURLToPath(new URL("..", import.meta.url));
process.chdir(root);

function run(program, ...args) {
  execFileSync(process.execPath, [`node_modules/${program}`, ...args], { stdio: "inherit" });
}

const base = { root, configFile: false, logLevel: "warn", publicDir: false };

/** One self-contained module. It is built like a page: Vite's library mode leaves the white space in. */
function library(name) {
  return build({
    ...base,
    build: {
      target: "es2022",
      outDir: "dist/button",
      emptyOutDir: false,
      modulePreload: false,
      rolldownOptions: {
        input: `src/${name}.ts`,
        preserveEntrySignatures: "strict",
        output: { entryFileNames: `${name}.js`, comments: false },
      },
    },
  });
}

/** A page with hashed files beside it; it finds them below any path, and has no inline script. */
function page(name) {
  return build({
    ...base,
    root: `${root}/src/${name}`,
    base: "./",
    build: {
      target: "es2022",
      outDir: `${root}/dist/${name}`,
      emptyOutDir: true,
      assetsInlineLimit: 0,
      modulePreload: false,
      rolldownOptions: { input: { [name]: `${root}/src/${name}/index.html` }, output: { comments: false } },
    },
  });
}

function checkSizes() {
  for (const [name, limit] of Object.entries(limits)) {
    const size = gzipSync(readFileSync(`dist/button/${name}`), { level: 9 }).length;
    console.log(`${name}: ${size} of ${limit} bytes after gzip`);
    if (size > limit) throw new Error(`${name} has ${size} bytes after gzip, the limit is ${limit}`);
  }
}

async function checkPackage() {
  const { messages, pkg } = await publint({ pkgDir: root, strict: true });
  for (const message of messages) console.error(formatMessage(message, pkg));
  if (messages.length > 0) throw new Error("publint is not content with package.json");
}

run("typescript/bin/tsc", "-p", ".");
run("../build/types.mjs", "--check");
rmSync("dist", { recursive: true, force: true });
await library("button");
await library("client");
const button = readFileSync("dist/button/button.js");
const hash = createHash("sha256").update(button).digest("hex").slice(0, 10);
writeFileSync(`dist/button/button-${hash}.js`, button);
await page("demo");
await page("console");
run("typescript/bin/tsc", "-p", "tsconfig.types.json");
run("@custom-elements-manifest/analyzer/cem.js", "analyze", "--quiet", "--globs", "src/button/element.ts", "src/button.ts", "--outdir", "dist");
checkSizes();
await checkPackage();
