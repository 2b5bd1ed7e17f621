import { everything, readScope, scopeData, scopeText, type TokenScope } from '../admin/scope.ts'
import {
  type AdminRight,
  type KeptToken,
  namePattern,
  readStoredToken,
  rights,
  seesContentByDefault,
} from '../admin/tokens.ts'
import { keyOf } from '../catalog-log/names.ts'
import { parseTimestamp } from '../message/timestamp.ts'
import { refuseInFile } from '../roles/catalog/in-file.ts'
import { aligned } from '../roles/operations/aligned.ts'
import { type OpenedDesk, refusalText } from '../roles/operations/catalog-desk.ts'
import * as tokenDesk from '../roles/operations/token-desk.ts'
import { StartError, WrongUseError } from '../roles/start/start-error.ts'
import { atCatalogDesk, type CatalogRun } from './command/catalog-desk.ts'
import { whoIsThis } from './command/operator.ts'

/** Lists the tokens of the topic, in the order of their names. */
export function listTokens(run: CatalogRun, { asJson }: { asJson: boolean }): Promise<string[]> {
  refuseInFile(run.config, { deed: 'use-tokens' })
  return atCatalogDesk(run, 'catalog', async (desk) => {
    const tokens = await tokensOf(desk)
    if (asJson) return tokens.map((token) => JSON.stringify(dataOf(token)))
    if (tokens.length === 0) return ['There are no tokens in the topic: `sluice tokens create` makes one.']
    const rows = tokens.map((token) => [
      token.name,
      token.right,
      token.seesContent ? 'yes' : 'no',
      scopeText(token.scope),
      endText(token),
      token.madeBy,
    ])
    return aligned([['name', 'right', 'content', 'scope', 'ends', 'made by'], ...rows])
  })
}

export type TokenWish = {
  readonly name: string
  readonly right: string
  /** `undefined`: as usual with the right. */
  readonly seesContent: boolean | undefined
  /** True: the token is for the whole installation. Otherwise `label` or `destinations` is given. */
  readonly isForAll: boolean
  readonly label: string | undefined
  readonly destinations: readonly string[] | undefined
  readonly expires: string
  readonly by: string | undefined
  readonly asJson: boolean
}

/** Makes a token. `line`: the token. `said`: what it may do, for the person who asked. */
export function createToken(
  run: CatalogRun,
  wish: TokenWish,
): Promise<{ line: string; said: readonly string[] }> {
  const { name, by = whoIsThis(), asJson } = wish
  const right = rights.find((known): known is AdminRight => known === wish.right)
  if (right === undefined) throw new WrongUseError(`--right is one of ${rights.join(', ')}.`)
  if (!new RegExp(namePattern).test(name))
    throw new WrongUseError('--name has up to 100 letters, digits, and . _ @ - after the first.')
  const seesContent = wish.seesContent ?? seesContentByDefault(right)
  const order = {
    name,
    right,
    seesContent,
    scope: scopeOf(wish),
    endsAtMs: endOf(wish.expires),
    family: name,
    by,
  }
  refuseInFile(run.config, { deed: 'use-tokens' })
  return atCatalogDesk(run, 'catalog', async (desk) => {
    const { objects } = await desk.look()
    const unknown = wish.destinations?.find((id) => !objects.has(keyOf({ kind: 'destination', id })))
    if (unknown !== undefined)
      throw new WrongUseError(`There is no destination ${JSON.stringify(unknown)}: make it first.`)
    const { token, kept, answer } = await tokenDesk.makeToken(desk, order)
    if (!answer.ok)
      throw answer.kind === 'outdated'
        ? new WrongUseError(
            `There is a token ${JSON.stringify(name)} already: revoke it, or choose another name.`,
          )
        : new StartError(refusalText(answer))
    if (asJson) return { line: JSON.stringify({ token, ...dataOf(kept) }), said: [] }
    const what = `${right}, ${scopeText(kept.scope)}, ${endText(kept)}`
    return { line: token, said: [`The token of ${name} (${what}), which is shown this once:`] }
  })
}

/** Revokes a token of the topic. */
export function removeToken(
  run: CatalogRun,
  { name, by = whoIsThis() }: { name: string; by: string | undefined },
): Promise<string[]> {
  refuseInFile(run.config, { deed: 'use-tokens' })
  return atCatalogDesk(run, 'catalog', async (desk) => {
    const token = (await tokensOf(desk)).find((one) => one.name === name)
    if (token === undefined)
      throw new WrongUseError(`There is no token ${JSON.stringify(name)} in the topic.`)
    const answer = await tokenDesk.removeToken(desk, token, by)
    if (!answer.ok) throw new StartError(refusalText(answer))
    return [`token/${name}: removed`]
  })
}

async function tokensOf(desk: Pick<OpenedDesk, 'look'>): Promise<readonly KeptToken[]> {
  const stored = (await desk.look()).of('token')
  const tokens = stored.flatMap(({ definition }) => readStoredToken(definition) ?? [])
  return tokens.toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

function scopeOf({ isForAll, label, destinations }: TokenWish): TokenScope {
  const isNarrow = label !== undefined || destinations !== undefined
  if (isForAll === isNarrow)
    throw new WrongUseError('Say what the token is for: --all, or --label and --destination.')
  if (isForAll) return everything
  const scope = readScope({ ...(label !== undefined && { label }), ...(destinations && { destinations }) })
  if (scope === undefined) throw new WrongUseError('--label is a label and its value, such as tenant=acme.')
  return scope
}

const unitsMs = { d: 24 * 3_600_000, h: 3_600_000 } as const

/** Returns when a token ends, in epoch milliseconds. `undefined`: never. */
function endOf(text: string): number | undefined {
  if (text === 'never') return undefined
  const [, count, unit] = /^(\d{1,5})([dh])$/.exec(text) ?? []
  const nowMs = Date.now()
  const endsAtMs = unit === 'd' || unit === 'h' ? nowMs + Number(count) * unitsMs[unit] : parseTimestamp(text)
  if (endsAtMs === undefined)
    throw new WrongUseError('--expires is 90d, 12h, a time such as 2027-01-31T00:00:00Z, or never.')
  if (endsAtMs <= nowMs) throw new WrongUseError('--expires is over already.')
  return endsAtMs
}

function endText({ endsAtMs }: KeptToken): string {
  if (endsAtMs === undefined) return 'never ends'
  const at = new Date(endsAtMs).toISOString()
  return endsAtMs <= Date.now() ? `ended at ${at}` : `ends at ${at}`
}

/** A token as `--json` shows it, with the names of the admin API. */
function dataOf({ name, right, seesContent, scope, endsAtMs, madeBy, madeAtMs }: KeptToken): object {
  return {
    name,
    right,
    content: seesContent,
    scope: scopeData(scope),
    expiresAt: endsAtMs === undefined ? null : new Date(endsAtMs).toISOString(),
    createdBy: madeBy,
    createdAt: new Date(madeAtMs).toISOString(),
  }
}
