import { execFile, execFileSync } from 'node:child_process'
import { accessSync, constants, realpathSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import kafkajs from 'kafkajs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type CountingReceiver, startCountingReceiver } from '../support/counting-receiver.ts'
import { otherProgram, randomPrefix, readAll, testKafka } from '../support/kafka.ts'
import { until } from '../support/until.ts'
import { applyTopics, runSluice, startSluice, writeCatalog } from '../support/worker-process.ts'
import { newIds, setScene } from './scene.ts'

const root = resolve(import.meta.dirname, '../..')

describe.concurrent('help', () => {
  test('names every command, with examples', async () => {
    const { stdout } = await runSluice(['--help'], {})
    for (const command of ['up', 'worker', 'gateway', 'topics', 'send', 'config']) {
      expect(stdout).toMatch(new RegExp(`^  ${command} `, 'm'))
    }
    expect(stdout).toContain('Examples:')
    expect(stdout).toContain('docs/configuration.md')
  })

  test.each(['up', 'worker', 'gateway', 'topics apply', 'send'])(
    'of %s says what it does, and where the settings are',
    async (command) => {
      const { stdout } = await runSluice([...command.split(' '), '--help'], {})
      expect(stdout).toContain(`Usage: sluice ${command}`)
      expect(stdout).toContain('docs/configuration.md')
    },
  )

  test('follows a wrong command, with exit code 2', async () => {
    const { stderr } = await runSluice(['deliver'], {}, { expectedCode: 2 })
    expect(stderr).toContain("unknown command 'deliver'")
  })

  test('names commands as they are called in this folder, if a person at a terminal reads it', async () => {
    const program = join(root, 'src/main.ts')
    const command = [process.execPath, program, 'runbook']
    const shown = execFileSync('script', ['-qec', command.join(' '), '/dev/null'], {
      cwd: root,
      encoding: 'utf8',
    })
    expect(shown).toContain('`npx sluice runbook NAME` prints one of them')
    const [node = '', ...args] = command
    expect(execFileSync(node, args, { cwd: root, encoding: 'utf8' })).toContain('\n`sluice runbook NAME`')
  })
})

describe.concurrent('the configuration', () => {
  test('is printed with the source of each value, and without secrets', async () => {
    const { stdout } = await runSluice(['config', '--delivery-timeout', '3s'], {
      SLUICE_KAFKA_BROKERS: 'one.example:9092,two.example:9092',
      SLUICE_KAFKA_SASL_MECHANISM: 'scram-sha-512',
      SLUICE_KAFKA_SASL_USERNAME: 'sluice',
      SLUICE_KAFKA_SASL_PASSWORD: 'correct horse',
    })
    const lines = stdout.split('\n').map((line) => line.split(/ {2,}/))
    expect(lines).toContainEqual([
      'kafka.brokers',
      'one.example:9092,two.example:9092',
      'env SLUICE_KAFKA_BROKERS',
    ])
    expect(lines).toContainEqual(['delivery.timeout', '3s', 'flag --delivery-timeout'])
    expect(lines).toContainEqual(['retry.ladder', '1m,10m,1h,1h,1h', 'default'])
    expect(lines).toContainEqual(['kafka.saslPassword', '(set)', 'env SLUICE_KAFKA_SASL_PASSWORD'])
    expect(stdout).not.toContain('horse')
  })

  test('that has faults is refused with all of them at once', async () => {
    const { stderr, stdout } = await runSluice(
      ['worker', '--http-port', '-1'],
      {
        SLUICE_KAFKA_BROKERS: 'nowhere',
        SLUICE_DELIVERY_TIMEOUT: 'fast',
        SLUICE_RETRY_LADDER: '1m,soon',
        SLUICE_KAFKA_GROUPID: 'typo',
      },
      { expectedCode: 1 },
    )
    expect(stdout).toBe('')
    expect(stderr).toContain('The configuration has 5 faults:')
    for (const fault of [
      /kafka\.brokers .*"nowhere"; expected host:port/,
      /delivery\.timeout .*"fast"; expected a duration from/,
      /retry\.ladder .*"1m,soon"; expected/,
      /http\.port .*flag --http-port gives "-1"/,
      /SLUICE_KAFKA_GROUPID: .*did you mean SLUICE_KAFKA_GROUP_ID\?/,
    ]) {
      expect(stderr).toMatch(fault)
    }
    expect(stderr).not.toMatch(/^\s+at /m)
  })

  test('without brokers is refused with what to set', async () => {
    const catalog = writeCatalog({ sources: [], destinations: [] })
    const { stderr } = await runSluice(['worker'], { SLUICE_CATALOG_FILE: catalog.path }, { expectedCode: 1 })
    catalog.remove()
    expect(stderr).toContain('SLUICE_KAFKA_BROKERS')
    expect(stderr).toContain('sluice up')
  })

  test('without a catalog is refused with an example of one', async () => {
    const { stderr } = await runSluice(
      ['worker'],
      { SLUICE_KAFKA_BROKERS: testKafka().join(','), SLUICE_CATALOG_FILE: '/nowhere/catalog.yaml' },
      { expectedCode: 1 },
    )
    expect(stderr).toContain('/nowhere/catalog.yaml')
    expect(stderr).toContain('destinations:')
  })
})

describe('topics', () => {
  let variables: Record<string, string> = {}
  let events = ''

  beforeEach(() => {
    const prefix = randomPrefix()
    events = `${prefix}events`
    variables = {
      SLUICE_KAFKA_BROKERS: testKafka().join(','),
      SLUICE_KAFKA_TOPIC_PREFIX: prefix,
      SLUICE_TOPICS_PARTITIONS: '3',
      SLUICE_RETRY_LADDER: '1m,1h',
      SLUICE_RETRY_THEN: '1m',
    }
  })

  /** Replaces all settings of the events topic. */
  async function alterEvents(settings: Record<string, string>): Promise<void> {
    const admin = otherProgram().admin()
    await admin.connect()
    const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }))
    await admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: events, configEntries }],
    })
    await admin.disconnect()
    await until('the broker tells the new settings', async () => {
      const told = await settingsOfEvents()
      return Object.entries(settings).every(([name, value]) => told[name] === value)
    })
  }

  async function settingsOfEvents(): Promise<Record<string, string>> {
    const admin = otherProgram().admin()
    await admin.connect()
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: events }],
    })
    await admin.disconnect()
    const entries = resources[0]?.configEntries ?? []
    return Object.fromEntries(entries.map(({ configName, configValue }) => [configName, configValue]))
  }

  async function refusalOfWorker(more: Record<string, string> = {}): Promise<string> {
    const catalog = writeCatalog({ sources: [], destinations: [] })
    const run = runSluice(
      ['worker'],
      { ...variables, SLUICE_CATALOG_FILE: catalog.path, ...more },
      { expectedCode: 1 },
    )
    const { stderr } = await run.finally(() => catalog.remove())
    expect(stderr).toContain('`sluice topics apply` creates what is missing')
    return stderr
  }

  test('apply creates them, and a second time changes nothing', async () => {
    const { stdout } = await runSluice(['topics', 'apply'], variables)
    expect(stdout.trim().split('\n')).toEqual(
      [
        'events',
        'audience-changes',
        'deletions',
        'memberships',
        'retry.1m',
        'retry.1h',
        'replays',
        'waiting',
        'waiting-marks',
        'dead-letters',
        'backfills',
        'attempts',
        'replay-jobs',
        'notices',
        'lending',
        'health',
      ].map((name) => `created    ${variables['SLUICE_KAFKA_TOPIC_PREFIX']}${name}`),
    )
    expect((await runSluice(['topics', 'check'], variables)).stdout).toBe(
      'All topics are as Sluice needs them.\n',
    )
    expect((await runSluice(['topics', 'apply'], variables)).stdout).toBe(
      'All topics are as Sluice needs them.\n',
    )
  })

  test('list names them and needs no Kafka', async () => {
    const { stdout } = await runSluice(['topics', 'list'], { ...variables, SLUICE_KAFKA_BROKERS: '' })
    expect(stdout).toContain(`${events} `)
    expect(stdout).toContain(`${variables['SLUICE_KAFKA_TOPIC_PREFIX']}memberships `)
    expect(stdout).toContain('deliveries to try again after 1h')
  })

  test('check tells what is missing, with exit code 1', async () => {
    const { stderr } = await runSluice(['topics', 'check'], variables, { expectedCode: 1 })
    expect(stderr).toContain(`${events} does not exist`)
  })

  test('apply corrects a changed setting, and leaves those that somebody else made', async () => {
    await applyTopics(variables)
    await alterEvents({ 'retention.ms': '1000', 'retention.bytes': '1000000000', 'segment.ms': '600000' })
    const { stderr } = await runSluice(['topics', 'check'], variables, { expectedCode: 1 })
    expect(stderr).toContain(`${events} has retention.ms=1000 instead of at least 604800000`)
    expect(stderr).toContain(`${events} has retention.bytes=1000000000 instead of -1`)
    expect(stderr).toContain(`${events} has message.timestamp.type=CreateTime instead of LogAppendTime`)
    expect((await runSluice(['topics', 'apply'], variables)).stdout).toBe(`corrected  ${events}\n`)
    expect(await settingsOfEvents()).toMatchObject({
      'retention.ms': '604800000',
      'retention.bytes': '-1',
      'message.timestamp.type': 'LogAppendTime',
      'segment.ms': '600000',
    })
    await runSluice(['topics', 'check'], variables)
  })

  test('check on a single broker tells only what can be corrected there', async () => {
    await applyTopics(variables)
    await alterEvents({ 'retention.ms': '1000', 'message.timestamp.type': 'LogAppendTime' })
    const { stderr } = await runSluice(
      ['topics', 'check'],
      { ...variables, SLUICE_TOPICS_DEVELOPMENT: 'false' },
      { expectedCode: 1 },
    )
    // The last line names the page that says more.
    const faults = stderr.split('\n').filter((line) => /^ {2}(?!\/)/.test(line))
    expect(faults).toEqual([`  ${events} has retention.ms=1000 instead of at least 604800000`])
  })

  test('a longer retention than asked for is as it must be', async () => {
    await applyTopics(variables)
    await alterEvents({
      'retention.ms': '-1',
      'message.timestamp.type': 'LogAppendTime',
      'max.message.bytes': '2000000',
    })
    expect((await runSluice(['topics', 'check'], variables)).stdout).toBe(
      'All topics are as Sluice needs them.\n',
    )
  })

  test('that do not exist keep a worker from starting', async () => {
    expect(await refusalOfWorker()).toContain(`${events} does not exist`)
  })

  test('with another number of partitions keep a worker from starting', async () => {
    await applyTopics(variables)
    const text = await refusalOfWorker({ SLUICE_TOPICS_PARTITIONS: '4' })
    expect(text).toContain(`${events} has 3 partitions instead of 4`)
    expect(text).toContain('SLUICE_TOPICS_PARTITIONS')
  })

  test('with the producer’s timestamps keep a worker from starting', async () => {
    await applyTopics(variables)
    await alterEvents({ 'message.timestamp.type': 'CreateTime' })
    expect(await refusalOfWorker()).toContain(
      `${events} has message.timestamp.type=CreateTime instead of LogAppendTime`,
    )
  })

  test('on too few copies keep a worker from starting', async () => {
    await applyTopics(variables)
    const text = await refusalOfWorker({ SLUICE_TOPICS_DEVELOPMENT: 'false' })
    expect(text).toContain(`${events} has 1 replicas instead of 3`)
  })
})

describe('send', () => {
  let receiver: CountingReceiver

  beforeEach(async () => {
    receiver = await startCountingReceiver()
  })

  afterEach(() => receiver.stop())

  test('puts a message, or one a line, where a worker delivers them from', async () => {
    const scene = await setScene({
      catalog: {
        sources: [{ id: 'shop' }],
        destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: receiver.url('/crm') }] }],
      },
    })
    const worker = await startSluice(scene.variables)
    const ids = newIds(3)
    const [first = '', ...others] = ids.map((messageId) =>
      JSON.stringify({ type: 'track', messageId, userId: 'u1', event: 'Sent' }),
    )
    const one = await runSluice(['send', '--source', 'shop', first], scene.variables)
    expect(one.stdout).toBe(`sent ${ids[0]}\n`)
    const more = await runSluice(['send', '--source', 'shop'], scene.variables, {
      input: `${others.join('\n')}\n\n`,
    })
    expect(more.stdout).toBe(`sent ${ids[1]}\nsent ${ids[2]}\n`)
    await until('all have arrived', async () => (await receiver.count('/crm')).delivered === 3)
    expect([...(await receiver.arrivals('/crm')).keys()].toSorted()).toEqual(ids.toSorted())
    await worker.terminate()
    const records = await readAll(`${scene.prefix}events`)
    expect(records.map(({ key, headers }) => [key, headers])).toEqual(
      ids.map(() => ['u1', { 'source-id': 'shop' }]),
    )
    const unnamed = JSON.stringify({ type: 'track', messageId: '', userId: 'u1', event: 'Sent' })
    const named = await runSluice(['send', '--source', 'shop', unnamed], scene.variables)
    expect(named.stdout).toMatch(/^sent [0-9a-f-]{36}\n$/)
    scene.close()
  })

  test.concurrent.each([
    ['no JSON', '{"type":', 'the message is not JSON'],
    ['an unknown type', '{"type":"tracks","userId":"u1"}', 'Set type to one of'],
    ['nobody named', '{"type":"track","event":"Sent"}', 'userId'],
  ])('refuses %s with one clear line', async (_fault, message, expected) => {
    const { stderr, stdout } = await runSluice(
      ['send', '--source', 'shop', message],
      { SLUICE_KAFKA_BROKERS: testKafka().join(',') },
      { expectedCode: 1 },
    )
    expect(stdout).toBe('')
    expect(stderr.trim().split('\n')).toHaveLength(1)
    expect(stderr).toContain(expected)
  })

  test('refuses all lines when one is wrong, and names that one', async () => {
    const scene = await setScene({ catalog: { sources: [], destinations: [] } })
    const { stderr } = await runSluice(['send', '--source', 'shop'], scene.variables, {
      expectedCode: 1,
      input: '{"type":"track","userId":"u1","event":"Sent"}\n{oops}\n',
    })
    expect(stderr).toContain('line 2: the message is not JSON')
    expect(await readAll(`${scene.prefix}events`)).toEqual([])
    scene.close()
  })

  test('says that it reads from the terminal', async () => {
    const scene = await setScene({ catalog: { sources: [{ id: 'shop' }], destinations: [] } })
    const command = [process.execPath, join(root, 'src/main.ts'), 'send', '--source', 'shop'].join(' ')
    // The program `script` runs a command in a terminal. The byte 4 is Ctrl-D.
    const typed = execFileSync('script', ['-qec', command, '/dev/null'], {
      env: { ...process.env, ...scene.variables },
      input: '{"type":"track","userId":"u1","event":"Sent"}\n\u0004',
      encoding: 'utf8',
    })
    expect(typed).toMatch(/Ctrl-D ends the input\.[^]*sent [0-9a-f-]{36}/)
    scene.close()
  })

  test('asks for the source', async () => {
    const { stderr } = await runSluice(['send', '{}'], {}, { expectedCode: 2 })
    expect(stderr).toContain('--source')
  })
})

/** Returns the path of every `node` on the PATH that is too old, each only once. */
function olderNodes(): string[] {
  const found = new Set<string>()
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const file = join(folder, 'node')
    try {
      accessSync(file, constants.X_OK)
      const version = execFileSync(file, ['-p', 'process.versions.node'], { encoding: 'utf8' })
      if (Number(version.split('.')[0]) < 24) found.add(realpathSync(file))
    } catch {
      // This folder has no `node`, or one that does not run.
    }
  }
  return [...found]
}

const entry = join(root, 'bin/sluice.js')
/**
 * Source text that starts the program under this Node, which claims to be version 22. It makes the test
 * possible on machines without an older Node.
 */
const pretended = `
Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.12.0' } })
Object.defineProperty(process, 'version', { value: 'v22.12.0' })
await import(${JSON.stringify(entry)})`

test('a replay that can not read the authorities of the schema registry says so, and ends', async () => {
  const scene = await setScene({ catalog: { sources: [{ id: 'shop' }], destinations: [] } })
  const { stderr } = await runSluice(
    ['replay', 'dead-letters', '--dry-run'],
    {
      ...scene.variables,
      SLUICE_REGISTRY_URL: 'https://127.0.0.1:1',
      SLUICE_REGISTRY_CA_FILE: '/no/such.pem',
    },
    { expectedCode: 1 },
  )
  expect(stderr).toContain('SLUICE_REGISTRY_CA_FILE')
  scene.close()
})

describe('an older Node', () => {
  test.each([
    { name: 'a pretended one', file: process.execPath, args: ['--input-type=module', '-e', pretended] },
    ...olderNodes().map((file) => ({ name: file, file, args: [entry, 'worker'] })),
  ])('is told in one line that it is too old: $name', async ({ file, args }) => {
    const ended = await new Promise<{ code: unknown; stdout: string; stderr: string }>((done) => {
      execFile(file, args, (error, stdout, stderr) => done({ code: error?.code, stdout, stderr }))
    })
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.stderr).toMatch(/^sluice needs Node\.js 24 or newer; this is v\d+\.\d+\.\d+\..*\n$/)
  })

  test('is not what runs the tests: bin/sluice.js goes on to the program', () => {
    const help = execFileSync(process.execPath, [entry, '--help'], { encoding: 'utf8' })
    expect(help).toContain('Usage: sluice')
  })
})
