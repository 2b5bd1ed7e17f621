import { randomBytes } from 'node:crypto'
import { parseCatalog } from '../../catalog/parse.ts'
import type { Config } from '../../config/schema.ts'
import { createEndpoints } from '../../delivery/endpoint.ts'
import { ownRequest } from '../../delivery/own-request.ts'
import type { Outcome } from '../../delivery/outcomes/outcome.ts'
import { createPlainOutbound } from '../../roles/start/outbound.ts'
import { pipelineSettings } from '../../roles/start/settings.ts'
import type { Shaped } from '../../shape/shaper.ts'
import { WrongUseError } from '../../roles/start/start-error.ts'

/** A request as a worker has made it: the bytes of its body, and what its headers name. */
export type SentMessage = {
  readonly messageId: string
  readonly attempts: number
  readonly body: Buffer
  /** What a mapping has made of the message. */
  readonly shaped?: Shaped | undefined
}

export type Forwarded = { readonly outcome: Outcome; readonly durationMs: number }

export type Forwarder = {
  /** The secret with which the requests are signed. */
  readonly secret: string
  send(message: SentMessage): Promise<Forwarded>
  close(): Promise<void>
}

export type ForwardOptions = {
  readonly url: string
  /** `undefined`: a new secret is made. */
  readonly secret: string | undefined
  readonly standardWebhooks: boolean
}

const everyAddress = ['0.0.0.0/0', '::/0']

/**
 * Creates a forwarder. It posts messages to a URL with the headers and the signature of a worker, over the
 * same code. Any address is allowed, because the user of this machine has named it.
 */
export function createForwarder(
  config: Config,
  { url, secret = newSecret(), standardWebhooks }: ForwardOptions,
): Forwarder {
  const destination = destinationOf(url, secret, standardWebhooks)
  const { breaker } = pipelineSettings(config)
  const endpoint = createEndpoints({ breaker, shareOfGroup: () => 1, isNamed: true }).of(destination)
  const [hook] = endpoint.hooks
  if (hook === undefined || hook.refusal !== undefined)
    throw new WrongUseError(`--forward: ${hook?.refusal ?? 'no URL'}`)
  const { target } = hook
  const delivery = { ...config.delivery, allowAddresses: everyAddress, proxy: undefined }
  const outbound = createPlainOutbound({ ...config, delivery })
  return {
    secret,
    send(message) {
      const startedMs = performance.now()
      const { shaped } = message
      const body = shaped?.body ?? message.body
      const headers = [...endpoint.headersOf({ ...message, body }, Date.now())]
      return new Promise((resolve) => {
        const exchange = {
          own: shaped && ownRequest(target, shaped),
          answered: (outcome: Outcome) => resolve({ outcome, durationMs: performance.now() - startedMs }),
          released: () => undefined,
        }
        outbound.sender.post(target, body, headers, exchange)
      })
    },
    close: () => outbound.close(),
  }
}

/** Returns a secret that both kinds of signatures take. */
function newSecret(): string {
  return `whsec_${randomBytes(24).toString('base64')}`
}

function destinationOf(url: string, sharedSecret: string, standardWebhooks: boolean) {
  const given = {
    sources: [{ id: 'listen' }],
    destinations: [
      {
        id: 'listen',
        sources: ['listen'],
        sharedSecret,
        ...(standardWebhooks && { signing: { standardWebhooks } }),
        hooks: [{ url }],
      },
    ],
  }
  const parsed = parseCatalog(JSON.stringify(given), { file: '--forward' })
  const destination = parsed.ok ? parsed.catalog.destinations.get('listen') : undefined
  if (destination !== undefined) return destination
  const [fault] = parsed.ok ? [] : parsed.faults
  const isSecret = fault?.path.includes('sharedSecret') === true
  throw new WrongUseError(
    `${isSecret ? '--secret' : '--forward'} ${fault?.problem ?? 'can not be used'}: ${fault?.advice ?? 'give a URL such as http://127.0.0.1:3000/webhook'}.`,
  )
}
