import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config/read.ts'
import type { KafkaRole } from '../../src/topics/kafka-roles.ts'
import { type Right, rightsOf } from '../../src/topics/rights.ts'
import { openKafka } from '../../src/roles/start/ask-kafka.ts'
import { topicLayout } from '../../src/roles/start/settings.ts'
import { type AdminTokens, makeTokens } from '../support/admin.ts'
import { type AuthorizedKafka, startAuthorizedKafka } from '../support/authorized-kafka.ts'
import { readAll } from '../support/kafka.ts'
import { writePause } from '../support/pauses.ts'
import { answer, inTurn, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import {
  runSluice,
  runToEnd,
  type SluiceProcess,
  startSluice,
  writeCatalog,
} from '../support/worker-process.ts'

/**
 * Roles that run as processes. Each role logs in as a different user, which has exactly the rights of
 * docs/acls.md.
 */
const roles = [
  'worker',
  'gateway',
  'topics apply',
  'topics check',
  'send',
  'audience sync',
  'audience sync --allow-leaving',
  'audience change',
  'audience backfill',
  'replay',
  'destinations',
  'log serve',
  'admin',
] as const satisfies readonly KafkaRole[]
type Role = (typeof roles)[number]

/** The token of the index, which is in the settings of all these roles. */
const indexToken = 'a token of sixteen or more'

/** Roles of a growth. They run last and with other settings, because they change the topics. */
const growing = [
  'topics grow',
  'topics grow --abandon',
  'topics grow --clean',
] as const satisfies readonly KafkaRole[]
type Growing = (typeof growing)[number]

const nameOf = (role: Role | Growing): string => role.replaceAll(/[^a-z]+/g, '-')

let kafka: AuthorizedKafka
let receiver: Receiver
let catalog: ReturnType<typeof writeCatalog>
let folder = ''
let tokens: AdminTokens

const common = {
  SLUICE_TOPICS_PARTITIONS: '2',
  SLUICE_TOPICS_DEVELOPMENT: 'true',
  SLUICE_RETRY_LADDER: '1s',
  SLUICE_RETRY_THEN: '1s',
}
/** Settings of the layout after the growth. */
const grown = { SLUICE_TOPICS_PARTITIONS: '4', SLUICE_TOPICS_GENERATION: '2' }

beforeAll(async () => {
  kafka = await startAuthorizedKafka([...roles, ...growing].map(nameOf))
  receiver = await startReceiver({
    '/crm': inTurn(answer(503), answer(200)),
    '/gone': answer(404),
    '/vips': answer(200),
  })
  const hooks = (path: string) => [{ url: `${receiver.origin}${path}` }]
  catalog = writeCatalog({
    sources: [
      { id: 'shop', writeKeys: ['KEY'] },
      { id: 'personas', kind: 'audiences' },
    ],
    destinations: [
      { id: 'crm', sources: ['shop'], hooks: hooks('/crm') },
      { id: 'gone', sources: ['shop'], hooks: hooks('/gone') },
      { id: 'vips', sources: ['personas'], hooks: hooks('/vips') },
    ],
  })
  folder = mkdtempSync(join(tmpdir(), 'sluice-rights-'))
  tokens = await makeTokens()
  writeFileSync(join(folder, 'vips.csv'), 'userId\nu1\nu2\nu3\n')
  for (const role of roles) await kafka.allow(nameOf(role), rights(role))
})

afterAll(async () => {
  await receiver?.stop()
  await kafka?.stop()
  catalog?.remove()
  tokens?.remove()
  rmSync(folder, { recursive: true, force: true })
})

function rights(role: KafkaRole, more: Record<string, string> = {}): Right[] {
  const read = readConfig({ env: { ...common, ...more } })
  if (!read.ok) throw new Error(read.message)
  const { config } = read
  return rightsOf(role, { layout: topicLayout(config), groupId: config.kafka.groupId, withSettings: true })
}

function variables(role: Role): Record<string, string> {
  return {
    ...common,
    ...kafka.login(nameOf(role)),
    SLUICE_CATALOG_FILE: catalog.path,
    SLUICE_ADMIN_TOKENS_FILE: tokens.file,
    SLUICE_INDEX_FOLDER: join(folder, 'index'),
    SLUICE_INDEX_TOKEN: indexToken,
  }
}

const track = '{"type":"track","userId":"u1","event":"Bought"}'
const vips = ['--space', 'personas', '--audience', 'aud_1', '--name', 'VIPs']

/** Returns the arguments with which a role starts. The caller ends the roles that don't end by themselves. */
function command(role: Role): string[] {
  switch (role) {
    case 'send':
      return ['send', '--source', 'shop', track]
    case 'audience sync':
      return ['audience', 'sync', join(folder, 'vips.csv'), ...vips]
    case 'audience sync --allow-leaving':
      return ['audience', 'sync', join(folder, 'vips.csv'), ...vips, '--allow-leaving']
    case 'audience change':
      return ['audience', 'change', ...vips, '--user', 'u4', '--member', 'true']
    case 'audience backfill':
      return ['audience', 'backfill', '--space', 'personas', '--destination', 'vips']
    case 'replay':
      return ['replay', 'dead-letters', '--destination', 'gone']
    case 'destinations':
      return ['destinations', 'paused']
    case 'worker':
    case 'gateway':
    case 'topics apply':
    case 'topics check':
    case 'log serve':
    case 'admin':
      return role.split(' ')
  }
}

const run = (role: Role) => runSluice(command(role), variables(role))

test('each role does its work with exactly the rights of docs/acls.md', async () => {
  await run('topics apply')
  await run('topics check')
  const processes: SluiceProcess[] = []
  try {
    const worker = await startSluice(variables('worker'))
    processes.push(worker)
    const gateway = await startSluice(variables('gateway'), { role: 'gateway' })
    processes.push(gateway)

    await run('send')
    await until('it is delivered at the second try', () => receiver.requestsTo('/crm').length >= 2)
    const brokers = [kafka.direct]
    const buried = await readAll('sluice.dead-letters', { brokers, count: 1 })
    expect(buried[0]?.headers['reason']).toBe('failed_for_good')
    const response = await fetch(`http://127.0.0.1:${gateway.gatewayPort}/v1/track`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from('KEY:').toString('base64')}`,
        'content-type': 'application/json',
      },
      body: track,
    })
    expect(response.status).toBe(200)
    await until('that of the gateway is delivered', () => receiver.requestsTo('/crm').length >= 3)

    // Without the right to read the known members, a sync can't be compared with them.
    const { stderr } = await runSluice(command('audience sync'), variables('audience sync --allow-leaving'), {
      expectedCode: 1,
    })
    expect(stderr).toContain('READ on Topic sluice.memberships')
    await run('audience sync --allow-leaving')
    await run('audience sync')
    await run('audience change')
    await until('all four are told', () => receiver.requestsTo('/vips').length >= 4)
    await run('audience backfill')
    await until('all four are told again', () => receiver.requestsTo('/vips').length >= 8)

    const index = await startSluice(variables('log serve'), { role: 'log serve' })
    processes.push(index)
    const indexed = () => index.metric('sluice_log_indexed_total')
    await until('the index has what was delivered', async () => (await indexed()) > 10)
    const goneBefore = receiver.requestsTo('/gone').length
    expect((await run('replay')).stdout).toContain('done')
    expect(receiver.requestsTo('/gone').length).toBeGreaterThan(goneBefore)

    const notices = { prefix: 'sluice.', brokers: [kafka.direct] }
    await writePause('crm', notices)
    expect((await run('destinations')).stdout).toContain('crm  paused at')
    await runSluice(['destinations', 'resume', 'crm', '--detach'], variables('destinations'))
    await writePause('vips', notices)

    const url = { SLUICE_INDEX_URL: `http://127.0.0.1:${index.queryPort}` }
    const admin = await startSluice({ ...variables('admin'), ...url }, { role: 'admin' })
    processes.push(admin)
    const selection = { of: 'events', destination: 'crm' }
    const made = await ask(admin, '/v1/replays', { selection, all: true })
    expect(made.status).toBe(201)
    const sent = Object(await made.json()).counted.records
    const crmBefore = receiver.requestsTo('/crm').length
    await until('it is replayed', () => receiver.requestsTo('/crm').length >= crmBefore + sent)
    expect((await ask(admin, '/v1/destinations/vips/resume')).status).toBe(200)
    const found = await ask(admin, '/v1/log/search', {
      replay: made.headers.get('location')?.split('/').at(-1),
    })
    expect(found.status).toBe(200)

    for (const one of processes) expect(await one.terminate()).toMatchObject({ code: 0 })
    const complaints = processes.flatMap(({ log }) =>
      log.filter(({ msg }) => /authoriz|may not/i.test(msg)).map(({ msg }) => msg),
    )
    expect(complaints).toEqual([])
  } finally {
    for (const one of processes) await one.kill()
  }
})

function ask({ adminPort }: SluiceProcess, path: string, body?: object): Promise<Response> {
  const json = body && {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
  return fetch(`http://127.0.0.1:${adminPort}${path}`, {
    ...json,
    method: 'POST',
    headers: { ...json?.headers, authorization: `Bearer ${tokens.operate}` },
  })
}

describe.each(roles)('%s', (role) => {
  test('ends with an error for any right less, which it names, with its resource and whose it is', async () => {
    for (const right of rights(role).filter(({ isOptional }) => isOptional !== true)) {
      const { operation, resource, name } = right
      await kafka.withdraw(nameOf(role), right)
      await until(`${operation} on ${name} is withdrawn`, async () => !(await mayStart(role)))
      const ended = await runToEnd(command(role), variables(role))
      expect(ended.code).toBe(1)
      expect(ended.stderr).toContain(`User:${nameOf(role)} may not do all that \`sluice ${role}\` needs`)
      expect(ended.stderr).toContain(`  ${operation} on ${resource} ${name}\n`)
      await kafka.allow(nameOf(role), [right])
      await until('it is allowed again', () => mayStart(role))
    }
  })
})

/**
 * Returns true if the brokers say that the role has all its rights. After a change of rights, this takes a
 * moment.
 */
async function mayStart(role: Role | Growing): Promise<boolean> {
  return (await complaintOf(role)) === ''
}

/** Returns the error with which the start of a role is refused, or an empty string if it isn't refused. */
async function complaintOf(role: Role | Growing): Promise<string> {
  const read = readConfig({ env: { ...common, ...own(role), ...kafka.login(nameOf(role)) } })
  if (!read.ok) throw new Error(read.message)
  return openKafka(read.config, { warn() {}, debug() {} }, role).then(
    () => '',
    (error: unknown) => String(error),
  )
}

/**
 * Returns the settings that only this role needs. From the settings after the growth, `topics grow --clean`
 * knows which topics to remove.
 */
function own(role: Role | Growing): Record<string, string> {
  return role === 'topics grow --clean' ? grown : {}
}

function grow(role: Growing) {
  const args = role === 'topics grow' ? [...role.split(' '), '4'] : role.split(' ')
  return runToEnd(args, { ...common, ...kafka.login(nameOf(role)), ...own(role) })
}

describe('a growth', () => {
  beforeAll(async () => {
    await run('topics apply')
    for (const role of growing) await kafka.allow(nameOf(role), rights(role, own(role)))
    for (const role of growing) await until(`${role} may start`, () => mayStart(role))
  })

  test.each(growing)('%s is refused for any right less, which it names', async (role) => {
    // Brokers report nothing about topics that don't exist.
    const known = rights(role, own(role)).filter(({ name }) => !name.startsWith('sluice.g2.'))
    expect(known.length).toBeGreaterThan(0)
    for (const right of known) {
      const { operation, resource, name } = right
      await kafka.withdraw(nameOf(role), right)
      await until(`${operation} on ${name} is missed`, async () =>
        (await complaintOf(role)).includes(`  ${operation} on ${resource} ${name}`),
      )
      await kafka.allow(nameOf(role), [right])
      await until('it is allowed again', () => mayStart(role))
    }
  })

  test('names a right that is missing once its topics are there, goes on with it, and needs no more than docs/acls.md', async () => {
    expect(await grow('topics grow --abandon')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('There is no growth to abandon'),
    })
    const lacking: Right = { resource: 'Topic', name: 'sluice.g2.memberships', operation: 'READ' }
    await kafka.withdraw(nameOf('topics grow'), lacking)
    expect(await grow('topics grow')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`  READ on Topic sluice.g2.memberships\n`),
    })
    await kafka.allow(nameOf('topics grow'), [lacking])
    await until('it may start again', () => mayStart('topics grow'))
    expect(await grow('topics grow')).toMatchObject({
      code: 0,
      stderr: expect.not.stringContaining('uthoriz'),
      stdout: expect.stringContaining('grown      from 2 to 4 partitions'),
    })
    expect(await grow('topics grow --clean')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('removed    sluice.memberships'),
    })
  })
})
