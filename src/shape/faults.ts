import { readCondition } from '../conditions/condition.ts'
import type { Mapping } from './definition.ts'
import { MappingFault } from './fault.ts'
import { Shaper } from './shaper.ts'

/** A fault of a mapping. `path`: where it is in the mapping. */
export type FoundFault = {
  readonly path: readonly (string | number)[]
  readonly problem: string
  readonly advice: string
}

/**
 * Finds the faults of a mapping that is valid by its schema. Of the parts of a body, only the first is found.
 */
export function mappingFaults(mapping: Mapping): readonly FoundFault[] {
  const faults: FoundFault[] = []
  const { condition } = mapping
  const read = condition === undefined ? undefined : readCondition(condition)
  if (read?.ok === false) faults.push({ path: ['condition'], ...read.fault })
  try {
    void new Shaper(mapping)
  } catch (error) {
    if (!(error instanceof MappingFault)) throw error
    faults.push({ path: error.path, problem: error.message, advice: error.advice })
  }
  return faults
}
