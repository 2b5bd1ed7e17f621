import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { otherProgram, readAll } from './kafka.ts'

/**
 * What a run has written, said or answered, by the place where it was found. The text of a file or a record is
 * in Latin-1.
 */
export type Said = { readonly where: string; readonly text: string }

/** Texts that may be nowhere, by what they are. */
export type PlantedTexts = Readonly<Record<string, string>>

/**
 * Expects that no planted text is at any place, in any form that `formsOf` knows. `mayHave`: the only texts
 * that a place may have, by what they are, such as a new secret in the answer of the call that has made it.
 */
export function expectNowhere(
  planted: PlantedTexts,
  said: readonly Said[],
  mayHave: (where: string, what: string) => boolean = () => false,
): void {
  const forms = Object.entries(planted).map(([what, text]) => ({ what, forms: formsOf(text) }))
  const found = said.flatMap(({ where, text }) =>
    forms
      .filter(({ what, forms: all }) => all.some((form) => text.includes(form)) && !mayHave(where, what))
      .map(({ what }) => `${what} is in ${where}`),
  )
  expect(found).toEqual([])
}

/**
 * Returns how a text may be written: as it is, escaped for JSON, for a URL or a form, in hex, and in base64 as
 * a part of a longer text.
 */
function formsOf(text: string): readonly string[] {
  const escaped = JSON.stringify(text).slice(1, -1)
  return [
    ...new Set([
      text,
      escaped,
      JSON.stringify(escaped).slice(1, -1),
      encodeURIComponent(text),
      new URLSearchParams({ text }).toString().slice('text='.length),
      Buffer.from(text).toString('hex'),
      ...base64Forms(text),
    ]),
  ]
}

/** Leaves out the digits that depend on what comes before or after the text. */
function base64Forms(text: string): readonly string[] {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(text)])
    const whole = bytes.subarray(0, bytes.length - (bytes.length % 3))
    const first = Math.ceil((before * 8) / 6)
    return [whole.toString('base64').slice(first), whole.toString('base64url').slice(first)]
  })
}

/** Reads all files of a folder and of those in it. */
export function filesIn(folder: string): readonly Said[] {
  const files = globSync('**/*', { cwd: folder, withFileTypes: true }).filter((file) => file.isFile())
  return files.map(({ parentPath, name }) => ({
    where: `the file ${name}`,
    text: readFileSync(join(parentPath, name), 'latin1'),
  }))
}

/** Reads all records of all topics with a prefix: their keys, values and headers. */
export async function recordsOf(prefix: string): Promise<readonly Said[]> {
  const all = await withAdmin(otherProgram(), (admin) => admin.listTopics())
  const said: Said[] = []
  for (const topic of all.filter((name) => name.startsWith(prefix)))
    for (const { key, value, headers } of await readAll(topic))
      said.push({
        where: `the topic ${topic.slice(prefix.length)}`,
        text: [key, value?.toString('latin1'), JSON.stringify(headers)].join('\n'),
      })
  return said
}
