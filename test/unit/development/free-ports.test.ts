import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { freePorts, portNote } from '../../../src/development/free-ports.ts'

test('ports are as many as asked for, and all different', async () => {
  expect(new Set(await freePorts(6)).size).toBe(6)
})

test('a preferred port that is free comes first', async () => {
  const [preferred] = await freePorts(1)
  expect((await freePorts(2, preferred))[0]).toBe(preferred)
})

test('a preferred port that is taken is left to its owner', async () => {
  const [preferred] = await freePorts(1)
  const server = createServer().listen(preferred, '127.0.0.1')
  await once(server, 'listening')
  const ports = await freePorts(2, preferred)
  server.close()
  expect(ports).toHaveLength(2)
  expect(ports).not.toContain(preferred)
})

test('a note is made only of a preferred port that was not had', () => {
  expect(portNote(9092, ['127.0.0.1:20001'])).toBe('; port 9092 was taken')
  expect(portNote(9092, ['127.0.0.1:9092'])).toBe('')
  expect(portNote(undefined, ['127.0.0.1:20001'])).toBe('')
})
