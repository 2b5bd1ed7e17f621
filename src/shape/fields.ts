import { isJsonObject } from '../conditions/json-value.ts'
import type { Steps } from './fault.ts'
import { put } from './part.ts'
import { stepsOf } from './path.ts'

/** The fields of a list of paths as a tree. A name with the value `true` stands for the whole field. */
type Tree = Map<string, Tree | true>

/** Reads paths such as `properties.email`. A path that leads through a list means each of its items. */
export function fieldTree(paths: readonly string[]): Tree {
  const tree: Tree = new Map()
  for (const path of paths) {
    const steps = stepsOf(path)
    let level = tree
    for (const [index, step] of steps.entries()) {
      const known = level.get(step)
      if (known === true) break
      if (index === steps.length - 1) level.set(step, true)
      else {
        const next: Tree = known ?? new Map()
        level.set(step, next)
        level = next
      }
    }
  }
  return tree
}

/** Returns a copy with only these fields. */
export function onlyFields(value: unknown, tree: Tree, steps: Steps): unknown {
  return copied(value, tree, steps, true)
}

/** Returns a copy without these fields. */
export function withoutFields(value: unknown, tree: Tree, steps: Steps): unknown {
  return copied(value, tree, steps, false)
}

function copied(value: unknown, tree: Tree, steps: Steps, areKept: boolean): unknown {
  steps.take(1)
  if (Array.isArray(value)) return value.map((item: unknown) => copied(item, tree, steps, areKept))
  if (!isJsonObject(value)) return value
  const copy: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value)) {
    steps.take(1)
    const below = tree.get(name)
    if (below === undefined ? areKept : below === true && !areKept) continue
    put(copy, name, below instanceof Map ? copied(member, below, steps, areKept) : member)
  }
  return copy
}
