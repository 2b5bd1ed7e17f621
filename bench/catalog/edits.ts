import type { Edit } from '../../src/catalog-log/judge.ts'
import type { OpenedDesk } from '../../src/roles/operations/catalog-desk.ts'
import { BenchmarkFailure } from '../support/failure.ts'

/** Returns the edit that makes or changes a destination of the source `shop`, with two secrets. */
export function editOf(id: string, change: number): Edit {
  const hooks = [{ url: `https://${id}.example.com/hook`, headers: { Authorization: `Bearer ${change}` } }]
  const given = { id, sources: ['shop'], sharedSecret: `secret-${change}`, hooks }
  return { name: { kind: 'destination', id }, op: 'put', given }
}

/** Makes a change that has to be accepted. Returns its revision. */
export async function made(desk: OpenedDesk, edits: readonly Edit[]): Promise<number> {
  const answer = await desk.change({ edits, by: 'bench' })
  if (!answer.ok) throw new BenchmarkFailure(`a change was refused: ${answer.kind}`)
  return answer.revision
}
