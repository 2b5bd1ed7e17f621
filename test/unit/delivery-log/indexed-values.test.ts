import { expect, test } from 'vitest'
import { createValuesOf, indexedLimits } from '../../../src/delivery-log/indexed-values.ts'
import { createUserHash, createValueHash, hexOfHash } from '../../../src/delivery-log/user-hash.ts'

const key = 'a key of more than sixteen characters'

/** Returns the values of a message that are indexed, in plain text. */
function indexed(paths: readonly string[], message: object): string[] {
  const found: string[] = []
  createValuesOf(paths, (value) => {
    found.push(value.toString())
    return 'abcdef'
  })(Buffer.from(JSON.stringify(message)))
  return found
}

test('texts and numbers of the chosen fields are indexed, each once', () => {
  const message = {
    event: 'E',
    properties: { orderId: 4711, order: { ref: 'A-1' }, total: 30 },
    messageId: '4711',
  }
  expect(indexed(['properties.orderId'], message)).toEqual(['4711'])
  expect(indexed(['properties.order.ref', 'messageId', 'properties.orderId'], message)).toEqual([
    'A-1',
    '4711',
  ])
  expect(indexed(['properties["odd.name"]'], { properties: { 'odd.name': 'x' } })).toEqual(['x'])
})

test('a list stands for each of its items', () => {
  const products = [{ sku: 'A-1' }, { sku: 'A-2' }, {}]
  expect(indexed(['properties.products.sku'], { properties: { products } })).toEqual(['A-1', 'A-2'])
})

test('what is absent, empty, an object, a truth value or too long is not indexed', () => {
  const long = 'é'.repeat(indexedLimits.valueBytes / 2)
  const properties = { a: '', b: true, c: { d: 1 }, e: null, f: `${long}x`, g: long }
  const paths = ['a', 'b', 'c', 'e', 'f', 'g', 'h', 'constructor.name'].map((name) => `properties.${name}`)
  expect(indexed(paths, { properties })).toEqual([long])
})

test('a message has no more values than the limit', () => {
  const products = Array.from({ length: 100 }, (_, sku) => ({ sku }))
  expect(indexed(['properties.products.sku'], { properties: { products } })).toHaveLength(
    indexedLimits.values,
  )
})

test('a body is read once, and a body without the names is not read at all', () => {
  let hashed = 0
  const valuesOf = createValuesOf(['properties.orderId'], () => {
    hashed++
    return 'abcdef'
  })
  const body = Buffer.from('{"properties":{"orderId":"1"}}')
  expect([valuesOf(body), valuesOf(body), hashed]).toEqual(['abcdef', 'abcdef', 1])
  expect(valuesOf(Buffer.from('this is no JSON'))).toBe('')
})

test('the hash of a value needs the key, and is not the hash of a user of the same name', () => {
  const hash = hexOfHash(createValueHash(key), '4711')
  expect(hash).toMatch(/^[0-9a-f]{12}$/)
  expect(hexOfHash(createValueHash(key), '4711')).toBe(hash)
  expect(hexOfHash(createValueHash(`${key}!`), '4711')).not.toBe(hash)
  expect(hexOfHash(createUserHash(key), '4711')).not.toBe(hash)
})
