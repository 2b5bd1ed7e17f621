import { idPattern } from '../catalog/entry-id.ts'
import type { Note } from './note.ts'

/** A source or a destination as a file of the catalog has it. */
export type Definition = Readonly<Record<string, unknown>>

/** An entry of the catalog that was made of a part of a workspace. */
export type Entry = {
  readonly definition: Definition
  /** What it was made of, by its kind and its name at Segment. */
  readonly about: string
  /** Its secrets by the names of their variables. `undefined`: the file doesn't have the secret. */
  readonly variables: ReadonlyMap<string, string | undefined>
  readonly notes: readonly Note[]
}

const wellFormed = new RegExp(idPattern)

/** Gives ids that are unique. */
export class Ids {
  readonly #taken = new Set<string>()

  /** Returns an id that is like a name. `otherwise`: for a name without any letter or digit. */
  of(name: string, otherwise: string): string {
    const spelled = wellFormed.test(name) ? name : slugOf(name) || slugOf(otherwise) || 'unnamed'
    let id = spelled.slice(0, 90)
    for (let number = 2; this.#taken.has(id.toLowerCase()); number++) id = `${spelled.slice(0, 90)}-${number}`
    this.#taken.add(id.toLowerCase())
    return id
  }
}

function slugOf(name: string): string {
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
}

/** The secrets of a destination, of which the catalog has only the names. */
export class Secrets {
  readonly values = new Map<string, string | undefined>()
  readonly #id: string

  constructor(id: string) {
    this.#id = id
  }

  /** Keeps a secret, and returns what the catalog has instead. `use`: what it is for, such as SECRET. */
  put(use: string, secret: string): string {
    const plain = `CATALOG_${this.#id}_${use}`.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')
    let name = plain
    for (let number = 2; this.values.has(name); number++) name = `${plain}_${number}`
    this.values.set(name, isMasked(secret) ? undefined : secret)
    return `\${${name}}`
  }

  /** The names of the secrets that the file doesn't have. */
  get missing(): readonly string[] {
    return [...this.values].filter(([, value]) => value === undefined).map(([name]) => name)
  }
}

/** Programs that show settings show secrets as dots or stars. */
function isMasked(secret: string): boolean {
  return /^[•*●]+/.test(secret)
}

/** Returns a text so that the catalog takes it literally in a place where variables are filled in. */
export function literal(text: string): string {
  return text.replaceAll('${', () => '$${')
}
