import { readFile } from 'node:fs/promises'
import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { configFlags } from '../../../src/config/flags.ts'
import { configMarkdown } from '../../../src/config/markdown.ts'
import { readConfig } from '../../../src/config/read.ts'
import { configKeys } from '../../../src/config/schema.ts'
import { defaultLimits } from '../../../src/message/limits.ts'

describe('the configuration table', () => {
  it('derives variable, flag and option from the key', () => {
    expect(configKeys.find(({ name }) => name === 'delivery.maxInFlight')).toMatchObject({
      variable: 'SLUICE_DELIVERY_MAX_IN_FLIGHT',
      flag: '--delivery-max-in-flight',
      option: 'deliveryMaxInFlight',
      property: 'maxInFlight',
    })
  })

  it.each(configKeys.filter(({ key }) => key.defaultValue !== undefined))(
    'accepts the default of $name',
    ({ key }) => {
      expect(key.parse(key.format(key.defaultValue))).toEqual({ value: key.defaultValue })
    },
  )

  it.each(configKeys)('describes $name in a sentence', ({ key }) => {
    expect(key.description).toMatch(/^[A-Z].*\.$/)
  })

  it('gives secrets no flag', () => {
    expect(configFlags().some(({ flags }) => /(password|secret)(?!-file|-ending)/.test(flags))).toBe(false)
    expect(configFlags()).toHaveLength(configKeys.filter(({ key }) => !key.isSecret).length)
  })

  it('has flags that commander takes, under the names that readConfig looks for', () => {
    const command = new Command()
    for (const { flags, description } of configFlags()) command.option(flags, description)
    const given = [
      '--kafka-brokers',
      'a:1,b:2',
      '--kafka-ssl',
      '--log-attempts',
      'false',
      '--retry-then',
      '5s',
    ]
    command.parse(given, { from: 'user' })
    expect(command.options.map((option) => option.attributeName())).toEqual(
      configFlags().map(({ option }) => option),
    )
    expect(readConfig({ env: {}, flags: command.opts() })).toMatchObject({
      ok: true,
      config: {
        kafka: { brokers: ['a:1', 'b:2'], ssl: true },
        log: { attempts: false },
        retry: { thenMs: 5_000 },
      },
    })
  })

  it('is what docs/configuration.md shows', async () => {
    const docs = new URL('../../../docs/configuration.md', import.meta.url)
    expect(await readFile(docs, 'utf8')).toBe(configMarkdown())
  })
})

it('has the limits that messages have without a configuration', () => {
  const read = readConfig({ env: {}, flags: {} })
  expect(read.ok && read.config.message).toEqual(defaultLimits)
})
