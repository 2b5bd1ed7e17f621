import undici from 'undici'
import connect from 'undici/lib/api/api-connect.js'
import buildConnector from 'undici/lib/core/connect.js'
import Client from 'undici/lib/dispatcher/client.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import { expect, test } from 'vitest'

test('the parts of undici that are loaded by their paths are those that its index exports', () => {
  expect(Client).toBe(undici.Client)
  expect(Pool).toBe(undici.Pool)
  expect({ connect }).toEqual({ connect: Reflect.get(undici.Dispatcher.prototype, 'connect') })
  expect(buildConnector).toBe(undici.buildConnector)
})
