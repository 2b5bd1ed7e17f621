import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Partitioners } from 'kafkajs'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type RunningKafka, startKafka } from '../../../src/development/kafka.ts'
import { otherProgram } from '../../support/kafka.ts'
import { environmentOf } from '../../support/sluice-process.ts'
import { runSluice } from '../../support/worker-process.ts'
import { type Scene, setScene } from '../scene.ts'

/** A Kafka broker that only this file uses, because the file stops it. */
let kafka: RunningKafka
let brokerPid = 0
let scene: Scene

beforeAll(async () => {
  kafka = await startKafka({ brokers: [], ways: ['java'] })
  brokerPid = kafka.nodes?.[0]?.pid ?? 0
  scene = await setScene({
    brokers: kafka.brokers,
    // A replay leaves out events that go to no destination. Nothing is sent to this one.
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: 'https://crm.example.com/' }] }],
    },
  })
  const producer = otherProgram(kafka.brokers).producer({
    createPartitioner: Partitioners.DefaultPartitioner,
  })
  await producer.connect()
  const headers = { reason: 'unknown_source', 'source-id': 'shop', origin: `${scene.prefix}events/0/0` }
  const value = '{"type":"track","userId":"u1","event":"Sent"}'
  await producer.send({ topic: `${scene.prefix}dead-letters`, messages: [{ key: 'u1', value, headers }] })
  await producer.disconnect()
})

afterAll(async () => {
  scene.close()
  await kafka.stop()
})

/** Runs a command. Suspends the broker once standard error contains `sign`, until the command has ended. */
async function silencedAt(sign: string, ...args: readonly string[]) {
  const child = spawn(process.execPath, [inject('program'), ...args], { env: environmentOf(scene.variables) })
  child.stdin.end()
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000)
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
    if (stderr.includes(sign)) process.kill(brokerPid, 'SIGSTOP')
  })
  const [code] = await once(child, 'close')
  clearTimeout(timer)
  process.kill(brokerPid, 'SIGCONT')
  return { code, stdout, stderr }
}

test('a replay that is watched while Kafka goes silent ends with one line, and goes on without the command', async () => {
  const { code, stdout, stderr } = await silencedAt('stops it', 'replay', 'dead-letters', '--all', '--json')
  const [begun = '', problem, ...more] = stderr.trimEnd().split('\n')
  expect(begun).toMatch(/^replay \S+: `sluice replay stop/)
  expect(problem).toMatch(/^sluice: Kafka at 127\.0\.0\.1:\d+ can not be used \(Kafka did not answer about /)
  expect({ code, stdout, more }).toEqual({ code: 1, stdout: '', more: [] })
  const listed = await runSluice(['replay', 'list', '--json'], scene.variables)
  const jobs = listed.stdout.trimEnd().split('\n')
  expect(jobs.map((job): unknown => JSON.parse(job).id)).toEqual([
    begun.slice('replay '.length, begun.indexOf(':')),
  ])
})
