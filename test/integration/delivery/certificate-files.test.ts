import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { type Server } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuthority, type Identity } from '../../support/certificates.ts'
import { type Shown, startMutualServer } from '../../support/mutual-server.ts'
import { portOf } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { runToEnd } from '../../support/worker-process.ts'
import { type Deployment, deploy } from './deployment.ts'

/** Files with a client certificate that are replaced while a worker runs, also by what can't be used. */

const authority = createAuthority('An authority of files')
const stranger = authority.issue({ names: ['a stranger'] })
let server: Server
let folder: string
let sluice: Deployment
/** The messages that came, with the name in the certificate that was shown. */
const came: Shown[] = []

beforeAll(async () => {
  server = await startMutualServer(authority, came)
  folder = mkdtempSync(join(tmpdir(), 'sluice-certificates-'))
  write(identityOf('first'))
  const tls = { certificate: '${CATALOG_CERTIFICATE}', key: '${CATALOG_KEY}', ca: authority.cert }
  sluice = await deploy({
    destinations: [
      { id: 'mutual', sources: ['shop'], hooks: [{ url: `https://127.0.0.1:${portOf(server)}/`, tls }] },
    ],
    variables: {
      SLUICE_CATALOG_VARIABLES_FOLDER: folder,
      SLUICE_RETRY_LADDER: '1s',
      SLUICE_RETRY_THEN: '1s',
      SLUICE_BREAKER_MAX_OPEN_FOR: '2s',
    },
  })
})

afterAll(async () => {
  await sluice?.stop()
  server?.closeAllConnections()
  server?.close()
  rmSync(folder, { recursive: true })
})

function identityOf(subject: string): Identity {
  return authority.issue({ names: [subject] })
}

/** Replaces a file in one step: a worker that read a part of it would tell another fault. */
function replaceFile(name: string, content: string): void {
  writeFileSync(join(folder, '.next'), content)
  renameSync(join(folder, '.next'), join(folder, name))
}

/** Writes one file, or both. */
function write({ cert, key }: Partial<Identity>): void {
  if (cert !== undefined) replaceFile('CATALOG_CERTIFICATE', cert)
  if (key !== undefined) replaceFile('CATALOG_KEY', key)
}

let sent = 0

/** Sends messages, and returns their ids. */
async function send(count: number): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, () => `message-${sent++}`)
  await sluice.send(
    'shop',
    ids.map((messageId) => ({
      key: messageId,
      value: { type: 'track', userId: messageId, event: 'Ping', messageId },
    })),
  )
  return ids
}

/** Waits for messages, each of which has to come once, and returns the names in the certificates. */
async function untilCame(ids: readonly string[]): Promise<ReadonlySet<string>> {
  const these = () => came.filter(({ id }) => ids.includes(id))
  await until('all came', () => these().length >= ids.length, { timeoutMs: 60_000 })
  expect(these().map(({ id }) => id)).toHaveLength(ids.length)
  expect(new Set(these().map(({ id }) => id))).toEqual(new Set(ids))
  return new Set(these().map(({ subject }) => subject))
}

async function subjectsOf(count: number): Promise<ReadonlySet<string>> {
  return untilCame(await send(count))
}

async function untilRefused(isRefused: boolean): Promise<void> {
  const wanted = isRefused ? 1 : 0
  await until(
    `refused: ${isRefused}`,
    async () => (await sluice.worker.metric('sluice_catalog_refused')) === wanted,
  )
}

async function untilShown(subject: string): Promise<void> {
  await until(`${subject} is shown`, async () => (await subjectsOf(1)).has(subject))
}

/** Returns the faults of the last catalog that was refused, as the log tells them. */
function toldFaults(): string {
  return JSON.stringify(sluice.worker.log.findLast(({ faults }) => faults !== undefined))
}

/** Returns how often the log says that the catalog has faults. */
function refusals(): number {
  return sluice.worker.log.filter(({ faults }) => faults !== undefined).length
}

function half(pem: string): string {
  return pem.slice(0, pem.length / 2)
}

describe('a file that can not be used', () => {
  test.each<[string, (next: Identity) => Partial<Identity>, RegExp]>([
    ['a certificate that is cut in half', ({ cert }) => ({ cert: half(cert) }), /not a whole certificate/],
    ['a key that is cut in half', ({ key }) => ({ key: half(key) }), /not a private key/],
    ['a certificate of another key', ({ cert }) => ({ cert }), /not the key of the certificate/],
    ['a key of another certificate', ({ key }) => ({ key }), /not the key of the certificate/],
    ['an empty certificate', ({ key }) => ({ cert: '', key }), /missing or empty/],
    [
      'a file of something else',
      ({ key }) => ({ cert: '<html>not found</html>', key }),
      /not a whole certificate/,
    ],
    ['a certificate in place of the key', ({ cert }) => ({ cert, key: cert }), /not a private key/],
  ])('changes nothing, and is told (%s)', async (name, broken, told) => {
    const [before = ''] = await subjectsOf(1)
    const next = identityOf(`after ${name}`)
    write(broken(next))
    await untilRefused(true)
    expect(await subjectsOf(20)).toEqual(new Set([before]))
    await until('it is told', () => told.test(toldFaults()))
    const secret = next.key.split('\n')[1]?.slice(0, 20)
    expect(JSON.stringify(sluice.worker.log)).not.toContain(secret)
    write(next)
    await untilRefused(false)
    await untilShown(`after ${name}`)
  })

  test('may be followed by another one, and by one that can be used', async () => {
    const [before = ''] = await subjectsOf(1)
    write({ cert: 'nothing' })
    await untilRefused(true)
    write({ key: stranger.key })
    write({ cert: half(stranger.cert) })
    expect(await subjectsOf(20)).toEqual(new Set([before]))
    write(identityOf('the last'))
    await untilRefused(false)
    await untilShown('the last')
  })
})

test('a certificate that comes some time before its key is used once both are there', async () => {
  const next = identityOf('in two steps')
  const before = refusals()
  write({ cert: next.cert })
  await untilRefused(true)
  expect(await subjectsOf(20)).toEqual(new Set(['the last']))
  await until('it is told', () => refusals() > before)
  write({ key: next.key })
  await untilRefused(false)
  await untilShown('in two steps')
  expect(refusals()).toBe(before + 1)
})

test('a certificate that its server does not accept costs no message, and is told', async () => {
  write(createAuthority('An authority that the server does not know').issue({ names: ['nobody'] }))
  await until('a test of the destination tells it', async () => {
    const { stdout } = await runToEnd(['destinations', 'test', 'mutual', '--json'], sluice.settings)
    const [tried] = JSON.parse(stdout).hooks
    return tried.verdict === 'retry' && String(tried.advice).includes('the client certificate')
  })
  // The command has read the files itself. The worker may still use the certificate before.
  const ids: string[] = []
  await until('the status tells it', async () => {
    ids.push(...(await send(1)))
    const { stdout } = await runToEnd(['destinations', 'status', 'mutual'], sluice.settings)
    return /connection (?:ECONNABORTED|ECONNRESET|EPIPE|UND_ERR_SOCKET)/.test(stdout)
  })
  const before = came.length
  const attempts = await sluice.worker.metric('sluice_attempts_total', { outcome: 'connection' })
  ids.push(...(await send(20)))
  await until(
    'they were tried',
    async () => (await sluice.worker.metric('sluice_attempts_total', { outcome: 'connection' })) > attempts,
  )
  expect(came.slice(before)).toEqual([])
  write(identityOf('accepted again'))
  await untilCame(ids)
  await untilShown('accepted again')
})

test('no message became a dead letter', async () => {
  expect(await sluice.read('dead-letters')).toEqual([])
})
