import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const main = resolve(import.meta.dirname, '../../../src/main.ts')

type Ended = { code: unknown; stdout: string; stderr: string }

function run(commandLine: string): Promise<Ended> {
  return new Promise((done) => {
    execFile(process.execPath, [main, ...commandLine.split(' ')], (error, stdout, stderr) =>
      done({ code: error?.code ?? 0, stdout, stderr }),
    )
  })
}

describe.concurrent('a misspelled command line', () => {
  test.each([
    ['destinatons list', "unknown command 'destinatons'", '(Did you mean destinations?)'],
    ['destinatons list --help', "unknown command 'destinatons'", '(Did you mean destinations?)'],
    ['help lgo', "unknown command 'lgo'", '(Did you mean log?)'],
    ['log fnd', "unknown command 'fnd'", '(Did you mean find?)'],
    ['help log fnd', "unknown command 'fnd'", '(Did you mean find?)'],
    ['log help fnd', "unknown command 'fnd'", '(Did you mean find?)'],
    ['version', "unknown command 'version'", '(Did you mean --version?)'],
    ['worker --delivery-timout 3s', "option '--delivery-timout'", '(Did you mean --delivery-timeout?)'],
    ['log search --snce=1h', "option '--snce=1h'", '(Did you mean --since?)'],
    ['-v', "option '-v'", '(Did you mean -V?)'],
    ['--kafka-brokers a:1 worker', "option '--kafka-brokers'", 'follows the command.)'],
    ['worker --kafka-sasl-password x', '--kafka-sasl-password', 'set SLUICE_KAFKA_SASL_PASSWORD.)'],
  ])('%s is told, with what may have been meant', async (line, fault, advice) => {
    const { code, stdout, stderr } = await run(line)
    expect([code, stdout]).toEqual([2, ''])
    const [first, second, third] = stderr.trimEnd().split('\n')
    expect(first).toContain(fault)
    expect(second).toContain(advice)
    expect(third).toBe('(--help shows what there is)')
  })

  test.each(['help foo', 'worker --xyz 3'])(
    '%s, which is like nothing, is told without a guess',
    async (line) => {
      const { code, stderr } = await run(line)
      expect([code, stderr.trimEnd().split('\n').length]).toEqual([2, 2])
    },
  )
})

describe.concurrent('help', () => {
  test.each([
    ['help', 'sluice [options] [command]'],
    ['help log', 'sluice log [options] [command]'],
    ['help log find', 'sluice log find [options] <message>'],
    ['log help find', 'sluice log find [options] <message>'],
  ])('is shown by: sluice %s', async (line, usage) => {
    const { code, stdout } = await run(line)
    expect([code, stdout.split('\n')[0]]).toEqual([0, `Usage: ${usage}`])
  })
})

describe.concurrent('sluice config', () => {
  test('shows the keys, the variables and the sections that are named', async () => {
    const { stdout } = await run(
      'config kafka.brokers SLUICE_RETRY_LIMIT delivery --json --kafka-brokers a:1',
    )
    const rows: unknown[] = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const source = 'flag --kafka-brokers'
    expect(rows[0]).toEqual({ key: 'kafka.brokers', variable: 'SLUICE_KAFKA_BROKERS', value: 'a:1', source })
    expect(rows[1]).toMatchObject({ key: 'retry.limit', value: '4h' })
    expect(rows.length).toBeGreaterThan(10)
    expect((await run('config retry.ladder')).stdout).toBe('retry.ladder  1m,10m,1h,1h,1h  default\n')
    expect((await run('config kafka.brokers --json')).stdout).toContain('"value":""')
  })

  test('says of an unknown name what may have been meant', async () => {
    const { code, stderr } = await run('config kafka.broker')
    expect([code, stderr]).toEqual([2, 'sluice: kafka.broker is no setting; did you mean kafka.brokers?\n'])
  })
})
