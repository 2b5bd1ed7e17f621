import { isRecord, recordOf } from '../catalog/plain-data.ts'
import { type KeptRecord, keptHead, keptObject, type KeptRead, readKept } from './kept-record.ts'
import type { CatalogLog } from './log.ts'
import type { RecordSeals } from './record.ts'

// A sealed export has one JSON object a line: first what it is, then the records of the catalog's topic, as
// they are signed and sealed there. So it has everything, and is of no use without the keys.

const kind = 'sealed export of a Sluice catalog'

/** Writes all objects of a log, with the tokens. `undefined`: the log has no change yet. */
export function sealedExport(
  log: Pick<CatalogLog, 'all' | 'head' | 'next'>,
  seals: RecordSeals,
  installation: string,
): string | undefined {
  const { head, next } = log
  if (head === undefined) return undefined
  const { revision, counts } = head
  const about = { kind, format: 1, installation, revision, counts, exportedAt: new Date().toISOString() }
  const objects = [...log.all.values()].map((object) => keptObject(seals, object))
  return [about, ...objects, keptHead(seals, head, next)].map((line) => `${JSON.stringify(line)}\n`).join('')
}

/** Reads a sealed export. The problem says what is wrong with it. */
export function readSealedExport(text: string, seals: RecordSeals, installation: string): KeptRead {
  const [first, ...lines] = text.split('\n').filter((line) => line !== '')
  const about = recordOf(parsed(first ?? ''))
  if (about['kind'] !== kind)
    return { ok: false, problem: 'it is no sealed export: `sluice catalog export --sealed FILE` writes one' }
  if (about['format'] !== 1)
    return { ok: false, problem: 'a later version of Sluice wrote it: update this one' }
  if (about['installation'] !== installation)
    return {
      ok: false,
      problem: `it is of the topic ${String(about['installation'])}, and this installation has ${installation}: secrets are sealed for their installation`,
    }
  const records: KeptRecord[] = []
  for (const [index, line] of lines.entries()) {
    const record = parsed(line)
    if (!isKept(record))
      return { ok: false, problem: `line ${index + 2} is no record: the file was cut off or edited` }
    records.push(record)
  }
  return readKept(seals, records)
}

function isKept(value: unknown): value is KeptRecord {
  return (
    isRecord(value) &&
    ['key', 'value', 'revision', 'mac'].every((name) => typeof value[name] === 'string') &&
    typeof value['offset'] === 'number'
  )
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
