#!/usr/bin/env node
// Plain JavaScript of any age: it must run on a Node that can't run the rest, to say so.
const major = Number(process.versions.node.split('.')[0])
if (major < 24) {
  process.stderr.write(
    `sluice needs Node.js 24 or newer; this is ${process.version}. In a checkout, run it as: npx sluice\n`,
  )
  process.exit(1)
}
const { existsSync } = await import('node:fs')
// A checkout runs as it is, whatever was built of it before. A package holds the build alone: Node strips no types below node_modules.
const sources = new URL('../src/main.ts', import.meta.url)
await import(existsSync(sources) ? sources.href : new URL('../dist/main.js', import.meta.url).href)
