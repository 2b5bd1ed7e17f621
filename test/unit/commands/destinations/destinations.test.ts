import { expect, test } from 'vitest'
import { resumeAll } from '../../../../src/commands/destinations/destinations.ts'

const pause = { sinceMs: 1, atMs: 2, urls: 'u', lastOutcome: 'timeout', readTo: 0 }

test('--all resumes the others, though somebody else resumes one of them meanwhile', async () => {
  const paused = new Set(['crm', 'erp', 'shipping'])
  const resumed = await resumeAll(
    {
      paused: async () => ({
        ok: true,
        value: [...paused].map((destinationId) => ({ destinationId, pause })),
      }),
      async resume(destinationId, by) {
        paused.delete('erp')
        if (!paused.delete(destinationId)) return { ok: false, kind: 'conflict', problem: 'it is not paused' }
        return { ok: true, value: { destinationId, pause, atMs: 3, by } }
      },
    },
    'ann',
  )
  expect(resumed.map(({ destinationId }) => destinationId)).toEqual(['crm', 'shipping'])
  expect([...paused]).toEqual([])
})
