import { isRecord, isString, recordOf } from '../catalog/plain-data.ts'
import { hookOf } from './classic.ts'
import type { Definition, Secrets } from './entries.ts'
import { translated } from './filters.ts'
import { LeftOut, type Note } from './note.ts'
import { type Item, textOf } from './workspace.ts'

/**
 * What a mapping of Webhooks (Actions) is in the catalog: the only hook of a destination, and how it is used.
 */
export type Action = {
  readonly hook: Definition
  /** The mapping without the fields that filters allow and block. */
  readonly mapping: Definition
  readonly batch: Definition | undefined
  readonly notes: readonly Note[]
}

/**
 * Reads a mapping of Webhooks (Actions) or Extensible Webhook, which the Public API calls a subscription.
 * Throws `LeftOut` if a part of it has no form in the catalog.
 */
export function actionOf(subscription: Item, secrets: Secrets, about: string): Action {
  if (textOf(subscription, 'modelId') !== '')
    throw new LeftOut(
      'it sends the rows of a Reverse ETL model',
      'send them as messages by a program of yours (docs/coming-from-a-cron-job.md)',
    )
  const settings = recordOf(subscription['settings'])
  const { url, path } = addressOf(settings['url'])
  const { fixed, made, format } = headersOf(settings['headers'])
  const method = methodOf(settings['method'])
  const trigger = textOf(subscription, 'trigger').trim()
  const { data } = settings
  const mapping = {
    ...(trigger !== '' && { condition: translated(trigger, 'its trigger') }),
    ...(method !== 'POST' && { method }),
    ...(path !== undefined && { path }),
    ...(Object.keys(made).length > 0 && { headers: made }),
    ...(data !== undefined && data !== null && !isWholeMessage(data) && { body: data }),
    ...(format !== undefined && { format }),
  }
  const batch = batchOf(settings)
  const isAlone = ['method', 'path', 'headers', 'format'].some((key) => key in mapping)
  const notes: readonly Note[] =
    batch === undefined || !isAlone
      ? []
      : [
          {
            kind: 'differs',
            about,
            problem:
              'it has batches, and each message whose request is made by a method, path or header is sent alone',
            way: 'nothing has to be done if that is fine (docs/batches.md)',
          },
        ]
  return { hook: hookOf(url, fixed, secrets), mapping, batch: isAlone ? undefined : batch, notes }
}

const hostWay = 'write a destination for each host, each with a condition (docs/webhooks-actions.md)'

/** Splits a URL into what is fixed, and what is filled in from the message. */
function addressOf(value: unknown): { readonly url: string; readonly path?: string } {
  const text = fixedText(value)
  if (text !== undefined && text.trim() !== '') return { url: text.trim() }
  const template = isRecord(value) ? value['@template'] : undefined
  if (!isString(template)) throw new LeftOut('its URL comes from the message as a whole', hostWay)
  const dynamic = template.search(/\{\{|\?/)
  const cut = template.slice(0, dynamic).lastIndexOf('/')
  if (!/^https?:\/\/[^/{]+\//i.test(template) || cut < 0)
    throw new LeftOut('the host of its URL comes from the message', hostWay)
  return { url: template.slice(0, cut), path: template.slice(cut) }
}

/** Returns a text that is the same for all messages. */
function fixedText(value: unknown): string | undefined {
  if (isString(value)) return value
  if (!isRecord(value)) return undefined
  if (isString(value['@literal'])) return value['@literal']
  const template = value['@template']
  return isString(template) && !template.includes('{{') ? template : undefined
}

function methodOf(value: unknown): string {
  const method = value === undefined || value === null ? 'POST' : fixedText(value)?.toUpperCase()
  if (method === 'POST' || method === 'PUT' || method === 'PATCH') return method
  throw new LeftOut(
    `its method is ${JSON.stringify(value)}`,
    'use POST, PUT or PATCH, or put a service of yours between (docs/webhooks-actions.md)',
  )
}

const formType = 'application/x-www-form-urlencoded'

type Headers = {
  readonly fixed: readonly (readonly [string, string])[]
  /** Those that are made of the message, each by a directive. */
  readonly made: Definition
  readonly format: 'form' | undefined
}

function headersOf(value: unknown): Headers {
  const headers = recordOf(value)
  if (Object.keys(headers).some((name) => name.startsWith('@')))
    throw new LeftOut('its headers come from the message as a whole', 'name each header (docs/mappings.md)')
  const fixed: (readonly [string, string])[] = []
  const made: [string, unknown][] = []
  let format: 'form' | undefined
  for (const [name, given] of Object.entries(headers)) {
    const text = fixedText(given)
    if (name.toLowerCase() === 'content-type') format = formatOf(text)
    else if (text === undefined) made.push([name, given])
    else fixed.push([name, text])
  }
  return { fixed, made: Object.fromEntries(made), format }
}

function formatOf(contentType: string | undefined): 'form' | undefined {
  const type = contentType?.split(';')[0]?.trim().toLowerCase()
  if (type === formType) return 'form'
  if (type === 'application/json') return undefined
  throw new LeftOut(
    `its header Content-Type is ${JSON.stringify(contentType ?? 'made of the message')}`,
    'send JSON or a form (docs/mappings.md), or put a service of yours between',
  )
}

/** The default of _Data_ is the whole message. */
function isWholeMessage(data: unknown): boolean {
  const path = isRecord(data) && Object.keys(data).length === 1 ? data['@path'] : undefined
  return path === '$.' || path === '$'
}

function batchOf(settings: Item): Definition | undefined {
  if (settings['enable_batching'] !== true) return undefined
  const size = Number(settings['batch_size'])
  return Number.isInteger(size) && size > 0 ? { maxMessages: Math.min(size, 1_000) } : {}
}

/** Returns the header or the login with which Extensible Webhook logs in. */
export function extensibleLogin(settings: Item, secrets: Secrets): Definition {
  const dynamic = recordOf(settings['dynamicAuthSettings'])
  const bearer = textOf(recordOf(dynamic['bearer']), 'bearerToken')
  if (bearer !== '') return { headers: { Authorization: secrets.put('AUTHORIZATION', `Bearer ${bearer}`) } }
  const kind = textOf(recordOf(dynamic['oauth']), 'type')
  if (kind === '' || kind === 'noAuth') return {}
  throw new LeftOut(
    'it logs in by OAuth, of which the Public API does not give the client',
    'write the destination with login: { kind: oauth2 } (docs/logins.md)',
  )
}
