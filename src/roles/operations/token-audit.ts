import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { contentText, type Token } from '../../admin/tokens.ts'
import { OneAtATime } from '../../async/one-at-a-time.ts'
import type { Part } from '../start/parts.ts'
import type { ReplayDesk } from './replay-desk.ts'

const lookEveryMs = 2_000
/** The most changes that an entry of the audit trail names. */
const mostNamed = 50
const markDigits = 8
/** Limit on the tokens that are compared. More would not fit into a record. */
const mostTokens = 5_000

/**
 * Writes each change of the tokens into the audit trail, also a change that was made while no process of the
 * admin API ran: `replay-jobs` has the names, rights and marks that were seen last. While Kafka doesn't
 * answer, this tries again.
 */
export function auditTokens(
  desk: Pick<ReplayDesk, 'tokens' | 'tellTokens'>,
  tokens: () => readonly Token[],
  log: Pick<Logger, 'warn'>,
): Part {
  let told = ''
  let isFailing = false
  const looks = new OneAtATime(async () => {
    const present = tokens().slice(0, mostTokens).map(nameOf)
    const text = JSON.stringify(present)
    if (text === told) return
    const changes = changesOf(await desk.tokens(), present)
    if (changes !== undefined) await desk.tellTokens(present, changes)
    told = text
    isFailing = false
  })
  const look = (): void =>
    void looks.run().catch((error: unknown) => {
      if (!isFailing)
        log.warn({ err: error }, 'the tokens can not be compared with the audit trail: trying again')
      isFailing = true
    })
  look()
  const timer = setInterval(look, lookEveryMs)
  return { stop: () => clearInterval(timer) }
}

/**
 * Names a token: its name, its right, whether it sees content if this is unusual, and the beginning of a hash
 * of its hash. The last part shows that a token was replaced by another of the same name.
 */
function nameOf({ name, right, seesContent, digest }: Token): string {
  const content = contentText({ right, seesContent })
  return `${name} ${right}${content === '' ? '' : ` ${content}`} ${createHash('sha256').update(digest).digest('hex').slice(0, markDigits)}`
}

/** Describes what is new (`+`) and what is gone (`-`). Returns `undefined` if nothing is. */
export function changesOf(before: readonly string[] | undefined, now: readonly string[]): string | undefined {
  const gone = (before ?? []).filter((token) => !now.includes(token)).map((token) => `-${token}`)
  const added = now.filter((token) => before?.includes(token) !== true).map((token) => `+${token}`)
  const changes = [...gone, ...added]
  if (changes.length === 0) return undefined
  const rest = changes.length - mostNamed
  const named = changes.slice(0, mostNamed).join(', ')
  return `${before === undefined ? 'first seen: ' : ''}${named}${rest > 0 ? `, and ${rest} more` : ''}`
}
