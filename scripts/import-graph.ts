import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'

/** An import of a source file. */
export type Import = {
  /** The importing file, relative to the folder that was read, such as `kafka/wire/wire-request.ts`. */
  readonly file: string
  /**
   * The text behind `from`, such as `../wire/wire.ts` or `undici`. For a file outside of the folder that was
   * read, its path from the folder's parent, such as `clients/admin/client.js`.
   */
  readonly specifier: string
  /** The imported file, relative to the folder that was read. `undefined` for a package, and for a file outside. */
  readonly target: string | undefined
  /** True if the import names only types, by `import type`. */
  readonly isType: boolean
}

export type ImportGraph = {
  /** The TypeScript files, relative to the folder that was read. */
  readonly files: readonly string[]
  readonly imports: readonly Import[]
}

const importing =
  /^\s*(?:import|export)\s+(type\s)?[^'"]*?from\s+'([^']+)'|import\(\s*'([^']+)'\s*\)|^import\s+'([^']+)'/gm

/** Reads the imports of all TypeScript files in a folder, those of types and dynamic ones included. */
export function readImports(folder: string): ImportGraph {
  const files = globSync('**/*.{ts,tsx}', { cwd: folder }).sort()
  const imports = files.flatMap((file) =>
    importsIn(readFileSync(posix.join(folder, file), 'utf8')).map((found) => {
      if (!found.specifier.startsWith('.')) return { file, ...found, target: undefined }
      const target = posix.join(posix.dirname(file), found.specifier)
      return target.startsWith('../')
        ? { file, ...found, specifier: target.slice('../'.length), target: undefined }
        : { file, ...found, target }
    }),
  )
  return { files, imports }
}

function importsIn(text: string): readonly Pick<Import, 'specifier' | 'isType'>[] {
  return [...text.matchAll(importing)].map((match) => ({
    specifier: match[2] ?? match[3] ?? match[4] ?? '',
    isType: match[1] !== undefined,
  }))
}

/**
 * Finds the circles of a graph. A circle is a largest set of two or more nodes that all lead to each other
 * (Tarjan's strongly connected components). Each circle is sorted.
 */
export function circlesOf(edges: ReadonlyMap<string, Iterable<string>>): readonly (readonly string[])[] {
  const order = new Map<string, number>()
  const open: string[] = []
  const isOpen = new Set<string>()
  const circles: string[][] = []
  const visit = (node: string): number => {
    const index = order.size
    order.set(node, index)
    open.push(node)
    isOpen.add(node)
    let low = index
    for (const next of edges.get(node) ?? []) {
      if (!order.has(next)) low = Math.min(low, visit(next))
      else if (isOpen.has(next)) low = Math.min(low, order.get(next) ?? low)
    }
    if (low === index) {
      const circle = open.splice(open.indexOf(node))
      for (const one of circle) isOpen.delete(one)
      if (circle.length > 1) circles.push(circle.sort())
    }
    return low
  }
  for (const node of edges.keys()) if (!order.has(node)) visit(node)
  return circles
}

/** Returns the graph of the files: each file with the files that it imports. */
export function fileEdges({ files, imports }: ImportGraph): ReadonlyMap<string, ReadonlySet<string>> {
  const edges = new Map<string, Set<string>>(files.map((file) => [file, new Set()]))
  for (const { file, target } of imports) if (target !== undefined) edges.get(file)?.add(target)
  return edges
}

/** A file's place: its folder (`.` for `src` itself), and its sub-folder (`.` for the folder itself). */
export function placeOf(file: string): { readonly folder: string; readonly room: string } {
  const parts = file.split('/')
  return {
    folder: parts.length > 1 ? (parts[0] ?? '.') : '.',
    room: parts.length > 2 ? (parts[1] ?? '.') : '.',
  }
}
