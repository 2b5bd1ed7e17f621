import type { ObjectKind } from '../../catalog-log/names.ts'
import type { Config } from '../../config/schema.ts'
import { WrongUseError } from '../start/start-error.ts'

/** What somebody wants to do with the catalog. `id`: of the source or destination. */
export type CatalogDeed =
  | {
      readonly deed: 'look' | 'make' | 'replace' | 'remove'
      readonly kind: ObjectKind
      readonly id: string
    }
  | { readonly deed: 'pause' | 'resume'; /** Absent: many are meant. */ readonly id?: string | undefined }
  | { readonly deed: 'rotate' | 'end-old' | 'rotate-keys' | 'end-old-key'; readonly id: string }
  | { readonly deed: 'add-key' | 'end-key'; readonly id: string }
  /** `fields`: what is changed. They have no secrets. `null`: the field is removed. */
  | { readonly deed: 'change'; readonly id: string; readonly fields: Readonly<Record<string, unknown>> }
  | { readonly deed: 'list-sources' | 'label' | 'history' | 'undo' | 'apply' | 'export' | 'use-tokens' }

/** Throws if the catalog is in a file, and says what to write into it. */
export function refuseInFile(config: Config, deed?: CatalogDeed): void {
  if (config.catalog.source === 'file') throw new WrongUseError(inFile(config, deed))
}

/** Says what to write into the file, if the catalog is in one. */
export function inFile({ catalog: { file } }: Config, deed?: CatalogDeed): string {
  const way = deed === undefined ? '' : ` ${wayOf(deed, file)}`
  return `The catalog is in ${file} (catalog.source=file), which is edited there.${way} Commands and the admin API change it if you set catalog.source=topic, and take the file over with \`sluice catalog import\` (docs/catalog-topic.md).`
}

function wayOf(deed: CatalogDeed, file: string): string {
  switch (deed.deed) {
    case 'look':
      return deed.kind === 'source'
        ? `Look there for ${ofEntry(deed)}.`
        : `Look there for ${ofEntry(deed)}; \`sluice destinations status ${deed.id}\` says how it is.`
    case 'make':
      return `Write an entry with \`id: ${deed.id}\` below \`${deed.kind}s:\`, with its other fields (docs/catalog.md). ${takesEffect(file)}`
    case 'replace':
      return `Edit ${ofEntry(deed)} (docs/catalog.md). ${takesEffect(file)}`
    case 'remove':
      return deed.kind === 'source'
        ? `Remove ${ofEntry(deed)}, and its id from \`sources\` of the destinations. ${takesEffect(file)}`
        : `Remove ${ofEntry(deed)}. What waits for it becomes dead letters (destination_removed).`
    case 'pause':
      return `Write \`state: paused\` into ${ofDestinations(deed.id)}: messages wait. ${takesEffect(file)}`
    case 'resume':
      return `Write \`state: on\` into ${ofDestinations(deed.id)}, in the place of \`state: paused\`. ${takesEffect(file)}`
    case 'change':
      return `${fieldsText(deed)} ${takesEffect(file)}`
    case 'label':
      return `Write \`labels\` into the entries of the destinations. ${takesEffect(file)}`
    case 'rotate':
      return `Write the new secret as \`nextSharedSecret\` beside \`sharedSecret\` into ${ofDestinations(deed.id)} (docs/verifying-signatures.md).`
    case 'end-old':
      return `Move \`nextSharedSecret\` to \`sharedSecret\` in ${ofDestinations(deed.id)} (docs/verifying-signatures.md).`
    case 'rotate-keys':
      return `Add a key to \`signing.ed25519\` of ${ofDestinations(deed.id)} (docs/verifying-signatures.md).`
    case 'end-old-key':
      return `Remove the old key from \`signing.ed25519\` of ${ofDestinations(deed.id)} (docs/verifying-signatures.md).`
    case 'add-key':
      return `Add a key to \`writeKeys\` of the source ${deed.id}. ${takesEffect(file)}`
    case 'end-key':
      return `Remove the key from \`writeKeys\` of the source ${deed.id}. ${takesEffect(file)}`
    case 'list-sources':
      return 'Its sources are there, and in `GET /v1/sources` of the admin API.'
    case 'history':
      return 'What was changed, when and by whom, is in the version control of that file.'
    case 'undo':
      return `Take the change back there. ${takesEffect(file)}`
    case 'apply':
      return `Put your files there: catalog.file may be a folder, with a file for each destination. ${takesEffect(file)}`
    case 'export':
      return 'The file itself is the export.'
    case 'use-tokens':
      return 'So there are only the tokens of admin.tokensFile: `sluice admin token create` makes a line for it (docs/admin-api.md).'
  }
}

function ofEntry({ kind, id }: { readonly kind: ObjectKind; readonly id: string }): string {
  return `the entry of the ${kind} ${id}`
}

function ofDestinations(id: string | undefined): string {
  return id === undefined ? 'the entries of the destinations' : `the entry of the destination ${id}`
}

function takesEffect(file: string): string {
  return `\`sluice catalog check ${file}\` finds faults first, and an edit takes effect within seconds.`
}

/** JSON is YAML too. */
function fieldsText({ id, fields }: Extract<CatalogDeed, { deed: 'change' }>): string {
  const entries = Object.entries(fields)
  const written = entries.flatMap(([field, value]) =>
    value === null ? [] : [`\`${field}: ${JSON.stringify(value)}\``],
  )
  const removed = entries.flatMap(([field, value]) => (value === null ? [`\`${field}\``] : []))
  const steps = [
    ...(written.length > 0 ? [`write ${written.join(' and ')} into it`] : []),
    ...(removed.length > 0 ? [`remove ${removed.join(' and ')} from it`] : []),
  ]
  return `In ${ofDestinations(id)}, ${steps.join(', and ')}.`
}
