import { expect, onTestFinished, test } from 'vitest'
import { createToken, readTokens, type Token } from '../../../../src/admin/tokens.ts'
import { auditTokens, changesOf } from '../../../../src/roles/operations/token-audit.ts'
import { until } from '../../../support/until.ts'

function tokenOf(name: string): Token {
  const read = readTokens(createToken(name, 'operate').line)
  const [token] = read.ok ? read.tokens : []
  if (token === undefined) throw new Error('no token')
  return token
}

test.each([
  ['the first tokens', undefined, ['ann read 1'], 'first seen: +ann read 1'],
  ['no change', ['ann read 1'], ['ann read 1'], undefined],
  ['a token that was replaced', ['ann read 1'], ['ann read 2'], '-ann read 1, +ann read 2'],
])('of %s the audit trail says what has changed', (_what, before, now, text) => {
  expect(changesOf(before, now)).toBe(text)
})

test('a change that was made while no process ran is told at the next start, and a failure is tried again', async () => {
  const told: string[] = []
  let failures = 1
  let seen: readonly string[] | undefined = ['gone read 11111111']
  const desk = {
    async tokens() {
      if (failures-- > 0) throw new Error('Kafka does not answer')
      return seen
    },
    async tellTokens(present: readonly string[], changes: string) {
      seen = present
      told.push(changes)
    },
  }
  const ann = tokenOf('ann')
  const warned: string[] = []
  const log = { warn: (_what: unknown, text: string) => void warned.push(text) }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this form of the method is called
  const part = auditTokens(desk, () => [ann], log as Parameters<typeof auditTokens>[2])
  onTestFinished(() => void part.stop())
  await until('it is told', () => told.length > 0)
  expect(told).toEqual([expect.stringMatching(/^-gone read 11111111, \+ann operate [0-9a-f]{8}$/)])
  expect(told.join()).not.toContain(ann.digest.toString('hex').slice(0, 8))
  expect(warned).toEqual(['the tokens can not be compared with the audit trail: trying again'])
})
