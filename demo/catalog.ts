import { readFile, rename, writeFile } from 'node:fs/promises'
import { stringify } from 'yaml'
import type { Customers } from './customers.ts'
import { destinations, sourceIds, spaceId, writeKeyOf } from './script.ts'

/**
 * Writes the catalog file. It lists the demo's sources, and each customer as a destination with its URL, its
 * secret and the ids of its sources.
 */
export async function writeCatalog(path: string, customers: Customers): Promise<void> {
  const catalog = {
    sources: [
      ...sourceIds.map((id) => ({ id, writeKeys: [writeKeyOf(id)] })),
      { id: spaceId, kind: 'audiences' },
    ],
    destinations: destinations.map(({ id, sources, isPausedAtFirst }) => {
      const customer = customers.all.get(id)
      return {
        id,
        state: isPausedAtFirst ? 'paused' : 'on',
        sources,
        ...(customer?.secret !== undefined && { sharedSecret: customer.secret }),
        hooks: customer?.hooks,
      }
    }),
  }
  await writeFile(path, stringify(catalog, { aliasDuplicateObjects: false }))
}

/** Edits the catalog file as a person would: sets every paused destination to `on`. */
export async function switchOnPaused(path: string): Promise<void> {
  const text = await readFile(path, 'utf8')
  const part = `${path}.part`
  await writeFile(part, text.replaceAll('state: paused', 'state: on'))
  await rename(part, path)
}
