import { expect, test } from 'vitest'
import { asCalled } from '../../../../src/commands/command/as-called.ts'

const called = (line: string): string => asCalled(line, 'npx sluice')

test.each([
  [
    'crm  failing  503 for 2 min  sluice destinations status crm',
    'crm  failing  503 for 2 min  npx sluice destinations status crm',
  ],
  [
    'sluice destinations test crm && sluice destinations resume crm',
    'npx sluice destinations test crm && npx sluice destinations resume crm',
  ],
  [
    'crm: it is a dead letter. To send it again: sluice replay dead-letters',
    'crm: it is a dead letter. To send it again: npx sluice replay dead-letters',
  ],
  [
    'sluice: it does not exist: make it with `sluice topics apply`.',
    'sluice: it does not exist: make it with `npx sluice topics apply`.',
  ],
  [
    'resume that first (sluice destinations resume crm)',
    'resume that first (npx sluice destinations resume crm)',
  ],
])('a command that a line tells people to run is called as in this folder: %s', (line, expected) => {
  expect(called(line)).toBe(expected)
})

test.each([
  'npx sluice destinations status crm',
  'npx @acme/sluice destinations status crm',
  'the log of sluice admin says why',
  '  properties  {"text":"sluice status","more":"as in sluice status"}',
  'sluice: Kafka does not answer.',
  'data in .sluice/kafka',
])('nothing else of a line changes: %s', (line) => {
  expect(called(line)).toBe(line)
})
