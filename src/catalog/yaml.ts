import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type Document,
  type ErrorCode,
  type Node,
  visit,
  type YAMLError,
} from 'yaml'
import type { Path } from './fault.ts'

/** A place in the text. Lines and columns count from 1. */
export type TextPlace = { readonly line: number; readonly column: number }

export type SyntaxFault = TextPlace & { readonly problem: string; readonly advice: string }

/** A YAML text as plain data, with the place of each value in the text. */
export type YamlText = {
  readonly value: unknown
  /**
   * Returns the place of a value, or the place of its key. If the text doesn't have the value, returns the
   * place of the innermost value that would contain it.
   */
  place(path: Path, of: 'key' | 'value'): TextPlace
}

/**
 * Reads a text with one YAML 1.2 document. `on` and `off` are read as strings, even if a `%YAML` line names
 * another version. Anchors and aliases are allowed, and tags aren't. A fault never quotes the text, because
 * the text may be a secret. Never throws.
 */
export function readYaml(
  text: string,
): ({ ok: true } & YamlText) | { ok: false; faults: readonly SyntaxFault[] } {
  const lines = new LineCounter()
  const placeAt = (offset: number): TextPlace => {
    const { line, col } = lines.linePos(Math.min(offset, text.length))
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  try {
    const document = parseDocument(text, {
      schema: 'core',
      version: '1.2',
      stringKeys: true,
      resolveKnownTags: false,
      prettyErrors: false,
      logLevel: 'error',
      lineCounter: lines,
      // The parser would compare each key with all keys before it. For 32,000 keys, this takes half a minute.
      uniqueKeys: false,
    })
    // A warning reports text that has no effect (a tag, a directive). Such text counts as a fault too.
    const found = [...document.errors, ...document.warnings, ...repeatedKeys(document)]
    // If the text is nested too deeply, the parser reports all further text as faults.
    const tooDeep = found.filter(({ code }) => code === 'RESOURCE_EXHAUSTION')
    const errors = tooDeep.length > 0 ? tooDeep.slice(0, 1) : found
    if (errors.length > 0) {
      return {
        ok: false,
        faults: errors.map(({ code, pos }) => ({ ...placeAt(pos[0]), ...explain[code] })),
      }
    }
    const value: unknown = document.toJS({ maxAliasCount: 1000 })
    // An alias may stand inside of the value that it names. This call throws if the data contains itself.
    if (text.includes('*')) JSON.stringify(value)
    return {
      ok: true,
      value,
      place: (path, of) => placeAt(offsetOf(document, path, of)),
    }
  } catch (error) {
    // For some faults, the parser throws an error: aliases without an anchor, too many aliases, and too deep
    // nesting.
    const what =
      error instanceof ReferenceError
        ? 'has an alias without an anchor before it, or too many aliases'
        : error instanceof TypeError
          ? 'has an alias inside of the value that it names'
          : 'is nested too deep'
    return { ok: false, faults: [{ line: 1, column: 1, problem: what, advice: 'write the values out' }] }
  }
}

function repeatedKeys(document: Document.Parsed): Pick<YAMLError, 'code' | 'pos'>[] {
  const found: Pick<YAMLError, 'code' | 'pos'>[] = []
  visit(document, {
    Map(_, { items }) {
      const keys = new Set<unknown>()
      for (const { key } of items) {
        if (!isScalar(key)) continue
        const [start = 0, end = 0] = key.range ?? []
        if (keys.has(key.value)) found.push({ code: 'DUPLICATE_KEY', pos: [start, end] })
        keys.add(key.value)
      }
    },
  })
  return found
}

function offsetOf(document: Document.Parsed, path: Path, of: 'key' | 'value'): number {
  let node: Node | null = document.contents
  let offset = node?.range?.[0] ?? 0
  for (const [index, step] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document) ?? null
    if (isSeq(node) && typeof step === 'number') {
      node = nodeOf(node.items[step])
    } else if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))
      const key = nodeOf(pair?.key)
      const value = nodeOf(pair?.value)
      node = of === 'key' && index === path.length - 1 ? key : (value ?? key)
    } else {
      return offset
    }
    if (node === null) return offset
    offset = node.range?.[0] ?? offset
  }
  return offset
}

function nodeOf(value: unknown): Node | null {
  return isScalar(value) || isMap(value) || isSeq(value) || isAlias(value) ? value : null
}

type Explanation = { readonly problem: string; readonly advice: string }

const quote: Explanation = { problem: 'is not valid YAML here', advice: 'put the value in quotes' }
const indent: Explanation = {
  problem: 'is not indented as YAML needs it',
  advice: 'indent with spaces, the same for each key of a block',
}
const oneValue: Explanation = {
  problem: 'has an anchor, tag or alias too many',
  advice: 'keep one, or write the value out',
}
const noTags: Explanation = {
  problem: 'has a tag or a directive, which mean nothing here',
  advice: 'remove it',
}

/**
 * Sluice's own description of each error of the parser. The parser's descriptions quote the text, so they
 * can't be used.
 */
const explain: Record<ErrorCode, Explanation> = {
  ALIAS_PROPS: oneValue,
  BAD_ALIAS: { problem: 'is not an alias', advice: 'put a value that begins with * or & in quotes' },
  BAD_DIRECTIVE: noTags,
  BAD_DQ_ESCAPE: {
    problem: 'has an unknown \\ escape',
    advice: 'write \\\\ for a backslash, or use single quotes',
  },
  BAD_INDENT: indent,
  BAD_PROP_ORDER: oneValue,
  BAD_SCALAR_START: quote,
  BLOCK_AS_IMPLICIT_KEY: { problem: 'has a second ": " in one line', advice: 'put the value in quotes' },
  BLOCK_IN_FLOW: { problem: 'has a block inside of [ ] or { }', advice: 'use [ ] and { } all the way down' },
  DUPLICATE_KEY: { problem: 'is a key that was written before', advice: 'keep one of the two' },
  IMPOSSIBLE: quote,
  KEY_OVER_1024_CHARS: { problem: 'is a key of more than 1024 characters', advice: 'write a shorter key' },
  MISSING_CHAR: {
    problem: 'lacks a character before here',
    advice: 'close the quote or bracket, or add the missing : or ,',
  },
  MULTILINE_IMPLICIT_KEY: {
    problem: 'is a key over several lines',
    advice: 'write the key in one line, followed by ": "',
  },
  MULTIPLE_ANCHORS: oneValue,
  MULTIPLE_DOCS: { problem: 'begins a second document', advice: 'remove the --- and keep one document' },
  MULTIPLE_TAGS: oneValue,
  NON_STRING_KEY: { problem: 'is a key that is not plain text', advice: 'write a plain key' },
  RESOURCE_EXHAUSTION: { problem: 'is nested too deep', advice: 'write the values out' },
  TAB_AS_INDENT: { problem: 'is indented with a tab', advice: 'indent with spaces' },
  TAG_RESOLVE_FAILED: noTags,
  UNEXPECTED_TOKEN: {
    problem: 'was not expected here',
    advice: 'check the indentation and the line before, or put the value in quotes',
  },
  BAD_COLLECTION_TYPE: noTags,
}
