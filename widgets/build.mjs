// SPDX-License-Identifier: Apache-2.0
// Builds the panels into tilekit/static: one ES module and one style sheet each, complete in themselves, since anywidget
// hands a module over as text and a relative import in it could not be resolved. Each begins with the digest of all that
// it was built from, which tests/repository/test_widgets.py compares.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const panels = ["bar", "passes", "report", "source"];
const inputs = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json"];

/** Every file under a folder, with `/` in its name, in the order of its bytes. */
function filesUnder(folder) {
  return readdirSync(join(here, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(here, join(entry.parentPath ?? entry.path, entry.name)).split(sep).join("/"));
}

function digest() {
  const hash = createHash("sha256");
  for (const name of [...inputs, ...filesUnder("src")].sort()) {
    const content = readFileSync(join(here, name));
    hash.update(`${name}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

const banner = `/* tilekit panels ${digest()} */`;
const bundles = {
  absWorkingDir: here,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
  banner: { js: banner, css: banner },
  outdir: "../tilekit/static",
  entryPoints: panels.flatMap((name) => [
    { in: `src/${name}/index.ts`, out: name },
    { in: `src/${name}/${name}.css`, out: name },
  ]),
};
const tests = {
  absWorkingDir: here,
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20",
  logLevel: "warning",
  outdir: "build/test",
  entryNames: "[name]",
  entryPoints: filesUnder("test").filter((name) => name.endsWith(".test.ts")),
};

/** The licenses of the packages whose code went into the bundles, which must go where that code goes. */
function writeLicenses({ metafile }) {
  const folders = Object.keys(metafile.inputs).flatMap((file) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []);
  const notices = [...new Set(folders)].sort().map((folder) => {
    const { name, version } = JSON.parse(readFileSync(join(here, folder, "package.json"), "utf8"));
    const license = readdirSync(join(here, folder)).find((file) => /^licen[cs]e/i.test(file));
    if (!license) throw new Error(`${name} has no license file`);
    return `${name} ${version}\n\n${readFileSync(join(here, folder, license), "utf8").trim()}\n`;
  });
  const head = "The panels' bundles hold code of these packages:\n\n";
  writeFileSync(join(here, bundles.outdir, "licenses.txt"), head + notices.join(`\n${"-".repeat(80)}\n\n`));
}

if (process.argv.includes("--watch")) await (await esbuild.context({ ...bundles, minify: false })).watch();
else if (process.argv.includes("--tests")) await esbuild.build(tests);
else writeLicenses(await esbuild.build(bundles));
