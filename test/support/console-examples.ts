import { createServer, type ServerResponse } from 'node:http'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { adminOpenApi } from '../../src/admin/openapi.ts'
import { anywhere } from './anywhere.ts'

/** A text of a stranger that would run code if a page took it for HTML. */
export const hostile = '<img src=x onerror=alert(1)>'

/** Fields whose texts strangers write. The answers of the server begin them with `hostile`. */
const written = new Set(
  'why name detail answer createdBy by body message value problem loginProblem condition clientId'.split(' '),
)

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
].join('; ')

export type ConsoleExamples = { readonly origin: string; readonly stop: () => Promise<void> }

export type ExampleOptions = {
  readonly rights: readonly string[]
  /** `filled`: what the examples have. `empty`: all lists are empty. `failing`: each call is refused. */
  readonly state?: 'filled' | 'empty' | 'failing'
  /** Where the catalog is: in the topic, if nothing is said. */
  readonly catalog?: 'file' | 'topic'
}

/**
 * Serves a bundle of the console below a prefix, and answers each call with the example of the API's document,
 * in which strangers have written `hostile` wherever they may write. So each page has something to show.
 */
export async function serveExamples(bundle: string, options: ExampleOptions): Promise<ConsoleExamples> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://localhost')
    const path = pathname.replace(/^\/ops/, '')
    if (path.startsWith('/console/')) return sendFile(bundle, path.slice('/console/'.length), response)
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      if (options.state === 'failing' && path !== '/v1/session') return refuse(response)
      if (path === '/v1/live') return goOn(response)
      send(response, answerTo(request.method ?? '', path, { body, ...options }))
    })
  })
  server.listen(anywhere)
  await new Promise((listening) => server.once('listening', listening))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}/ops`,
    stop: () =>
      new Promise((stopped) => {
        server.close(() => stopped())
        server.closeAllConnections()
      }),
  }
}

function sendFile(bundle: string, name: string, response: ServerResponse): void {
  const manifest: Record<string, { type: string }> = JSON.parse(
    readFileSync(join(bundle, 'manifest.json'), 'utf8'),
  )
  const file = Object.hasOwn(manifest, name) ? name : 'index.html'
  response.writeHead(200, {
    'content-type': manifest[file]?.type ?? '',
    'content-security-policy': policy,
  })
  response.end(readFileSync(join(bundle, file)))
}

type Asked = ExampleOptions & { readonly body: string }

function answerTo(method: string, path: string, { body, rights, state, catalog }: Asked): unknown {
  if (path === '/v1/session')
    return {
      name: hostile,
      rights,
      scope: rights.includes('admin') ? 'all' : { label: 'tenant=acme' },
      ends: null,
      content: rights.includes('admin'),
      label: null,
      catalog: catalog ?? 'topic',
      isLink: !rights.includes('admin'),
      theme: null,
      isSession: true,
    }
  if (path === '/v1/log/stats' && body.includes('step'))
    return state === 'empty' ? { ...steps, groups: [] } : steps
  const { paths }: { paths?: Record<string, Record<string, Operation>> } = adminOpenApi()
  const found = Object.entries(paths ?? {}).find(([pattern]) =>
    new RegExp(`^${pattern.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path),
  )
  const operation = found?.[1][method.toLowerCase()]
  const success = Object.entries(operation?.responses ?? {}).find(([status]) => status.startsWith('2'))
  const example = success?.[1].content?.['application/json']?.example
  const isEmpty = state === 'empty' && (method === 'GET' || asks.test(path))
  return soiled(isEmpty ? emptied(example) : example, '')
}

/** Calls with a body that only ask. */
const asks = /\/(search|stats|summary|preview)$/

/** Returns an example without the entries of its lists. The URLs of a destination stay. */
function emptied(example: unknown): unknown {
  if (typeof example !== 'object' || example === null) return example
  return Object.fromEntries(
    Object.entries(example).map(([key, value]: [string, unknown]) => [
      key,
      Array.isArray(value) && key !== 'hooks' ? [] : value,
    ]),
  )
}

type Operation = {
  responses?: Record<string, { content?: Record<string, { example?: unknown }> }>
}

const steps = {
  from: '2026-07-23T14:00:00Z',
  to: '2026-07-23T15:00:00Z',
  times: ['2026-07-23T14:00:00Z', '2026-07-23T14:30:00Z'],
  groups: [{ key: hostile, succeeded: [5, 0], failed: [1, 2], dead: [0, 0] }],
  others: 0,
}

/** Returns a value in which strangers have written what they may. */
function soiled(value: unknown, key: string): unknown {
  if (typeof value === 'string') return written.has(key) ? `${hostile}${value}` : value
  if (Array.isArray(value)) return value.map((one: unknown) => soiled(one, key))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, soiled(inner, name)]))
}

/** Begins a live view in which nothing happens. */
function goOn(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('event: ready\ndata: {"isComplete":true}\n\n')
}

function refuse(response: ServerResponse): void {
  response.writeHead(503, { 'content-type': 'application/problem+json' })
  const detail = `Kafka does not answer: ${hostile}`
  response.end(JSON.stringify({ type: '/problems/unavailable', title: 'Unavailable', status: 503, detail }))
}

function send(response: ServerResponse, body: unknown): void {
  response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json', etag: '"4711"' })
  response.end(JSON.stringify(body))
}
