import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

/**
 * `node bench/profile.ts FILE.cpuprofile [--deliveries N] [--top N]` prints where the time of a V8 CPU
 * profile went, by part and by function. Self time is the time in a function itself. Total time includes the
 * time in the functions that it called. Times are in milliseconds, or, with `--deliveries`, in microseconds a
 * delivery. Idle time is left out.
 */

type Frame = { functionName: string; url: string; lineNumber: number }
type Node = { id: number; callFrame: Frame; children?: number[] }
type Profile = { nodes: Node[]; samples: number[]; timeDeltas: number[] }

type Times = { self: number; total: number }

const idle = new Set(['(idle)', '(root)'])

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { deliveries: { type: 'string' }, top: { type: 'string', default: '40' } },
})
const [file = ''] = positionals
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the format of V8's profiles
const profile = JSON.parse(readFileSync(file, 'utf8')) as Profile
const unit = values.deliveries === undefined ? 1_000 : Number(values.deliveries)
const top = Number(values.top)

const selfUs = selfTimes(profile)
const parts = new Map<string, Times>()
const functions = new Map<string, Times>()
const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
const children = new Set(profile.nodes.flatMap((node) => node.children ?? []))
for (const node of profile.nodes) if (!children.has(node.id)) visit(node, [], [])

print('part', parts)
console.log('')
print('function', functions)

function selfTimes({ samples, timeDeltas }: Profile): Map<number, number> {
  const times = new Map<number, number>()
  for (const [index, id] of samples.entries()) {
    // A delta is the time before its sample. The function in a sample runs until the next sample.
    times.set(id, (times.get(id) ?? 0) + (timeDeltas[index + 1] ?? 0))
  }
  return times
}

/**
 * Adds up the times of a call tree, and returns the total time of its root. The names above the root are
 * passed down, so that the total time of a name that calls itself counts once.
 */
function visit(node: Node, partsAbove: readonly string[], functionsAbove: readonly string[]): number {
  const { callFrame } = node
  if (idle.has(callFrame.functionName) && callFrame.functionName !== '(root)') return 0
  const part = partOf(callFrame)
  const name = nameOf(callFrame)
  const self = selfUs.get(node.id) ?? 0
  let total = self
  for (const id of node.children ?? []) {
    const child = nodes.get(id)
    if (child !== undefined) total += visit(child, [...partsAbove, part], [...functionsAbove, name])
  }
  add(parts, part, self, partsAbove.includes(part) ? 0 : total)
  add(functions, name, self, functionsAbove.includes(name) ? 0 : total)
  return total
}

function add(times: Map<string, Times>, name: string, self: number, total: number): void {
  const sum = times.get(name) ?? { self: 0, total: 0 }
  times.set(name, { self: sum.self + self, total: sum.total + total })
}

/**
 * Returns the part that a function belongs to: a package, a folder in `src`, a module of Node, or a name that
 * V8 uses, such as `(garbage collector)`.
 */
function partOf({ functionName, url }: Frame): string {
  if (url === '') return functionName.startsWith('(') ? functionName : 'built in'
  const inPackage = /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]
  if (inPackage !== undefined) return inPackage
  return url.startsWith('node:') ? url : (/\/(src\/[^/]+)/.exec(url)?.[1] ?? url)
}

function nameOf({ functionName, url, lineNumber }: Frame): string {
  const shortUrl = url.replace(/^.*\/(?=node_modules\/|src\/)/, '').replace('node_modules/', '')
  return `${functionName === '' ? '(anonymous)' : functionName} ${shortUrl}${url === '' ? '' : `:${lineNumber + 1}`}`
}

function print(heading: string, times: Map<string, Times>): void {
  console.log(`${'self'.padStart(9)}${'total'.padStart(9)}  ${heading}`)
  const rows = [...times].toSorted(([, a], [, b]) => b.self - a.self).slice(0, top)
  for (const [name, { self, total }] of rows) {
    console.log(`${(self / unit).toFixed(2).padStart(9)}${(total / unit).toFixed(2).padStart(9)}  ${name}`)
  }
}
