import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { here, pythonProgram } from './installed.ts'
import { type ClientProgram, run } from './programs.ts'
import { startTap } from './tap.ts'

const program: ClientProgram = {
  name: 'analytics-python with a NaN',
  command: () => [pythonProgram('python'), join(here, 'python', 'not-a-number.py')],
  kinds: ['track'],
  gzip: true,
  keepsProto: true,
}

test("Segment's client for Python, with a NaN in a batch, loses that message and not its neighbours", async () => {
  const gateway = await startGateway()
  const tap = await startTap(gateway.process.gatewayPort)
  const orders = { endpoint: tap.url, writeKey: 'KEY', mode: 'once', tracks: 0, large: 0 } as const
  const { failures, made } = await run(program, orders, 60_000).outcome
  const answers = tap
    .exchanges()
    .map(({ answer }) => ({ status: answer.status, body: JSON.parse(answer.body) }))
  const left = await gateway.process.metric('sluice_gateway_left_out_total')
  const ids = (await gateway.read('events')).map(({ value }) => value['messageId'])
  await tap.stop()
  await gateway.stop()

  process.stdout.write(`analytics-python: of ${made} messages, 4 no JSON, ${ids.length} are in Kafka\n`)
  expect([made, failures]).toEqual([8, []])
  expect(answers.map(({ status }) => status)).toEqual([200, 200])
  for (const { body } of answers) expect(body).toMatchObject({ success: true, rejectedCount: 2 })
  expect(new Set(ids)).toEqual(
    new Set(['after, gzip False', 'after, gzip True', 'before, gzip False', 'before, gzip True']),
  )
  expect(ids).toHaveLength(4)
  expect(left).toBe(4)
})
