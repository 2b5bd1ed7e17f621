import { isJsonObject, type JsonObject } from '../conditions/json-value.ts'
import { directives } from './directives.ts'
import { MappingFault } from './fault.ts'
import { mappingLimits } from './limits.ts'
import { type Make, type Parts, type Place, put } from './part.ts'

/** Reads parts of one mapping, and counts them. Throws a `MappingFault` if a part can't be used. */
export class Compiler implements Parts {
  #nodes = 0

  /** Reads a part: a directive, or an object, a list or a value that may have directives in it. */
  part(part: unknown, place: Place): Make {
    this.#nodes++
    if (this.#nodes > mappingLimits.nodes)
      throw new MappingFault(place, `is one of more than ${mappingLimits.nodes} parts`, 'map less')
    if (place.length > mappingLimits.depth)
      throw new MappingFault(place, `is deeper than ${mappingLimits.depth} levels`, 'nest less')
    if (Array.isArray(part)) return this.#list(part, place)
    if (!isJsonObject(part)) return constant(part)
    const names = Object.keys(part)
    return names.some((name) => name.startsWith('@'))
      ? this.#directive(part, names, place)
      : this.#object(part, place)
  }

  #list(items: readonly unknown[], place: Place): Make {
    const makes = items.map((item, index) => this.part(item, [...place, index]))
    return (payload, steps) => {
      steps.take(makes.length + 1)
      return makes.map((make) => make(payload, steps))
    }
  }

  #object(object: JsonObject, place: Place): Make {
    const members = Object.entries(object).map(
      ([name, part]) => [name, this.part(part, [...place, name])] as const,
    )
    return (payload, steps) => {
      steps.take(members.length + 1)
      const made: Record<string, unknown> = {}
      for (const [name, make] of members) put(made, name, make(payload, steps))
      return made
    }
  }

  #directive(part: JsonObject, names: readonly string[], place: Place): Make {
    const [name = '', ...others] = names.filter((one) => one !== '_metadata')
    if (others.length > 0) {
      const known = [name, ...others].map((one) => JSON.stringify(one)).join(', ')
      throw new MappingFault(
        place,
        `has a directive beside other keys: ${known}`,
        'give the directive an object of its own',
      )
    }
    const read = directives.get(name)
    if (read !== undefined) return read(this, part[name], [...place, name])
    const known = [...directives.keys()].join(', ')
    throw new MappingFault([...place, name], 'is not a directive that Sluice has', `use one of ${known}`)
  }
}

function constant(value: unknown): Make {
  return (_payload, steps) => {
    steps.take(1)
    return value
  }
}
