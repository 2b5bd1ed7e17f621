import { expect, test } from 'vitest'
import { meets, readCondition } from '../../../../src/roles/content/body-condition.ts'

const message = {
  userId: 'u1',
  properties: {
    orderId: 4711,
    paid: true,
    note: 'a=b',
    products: [{ sku: 'A-1' }, { sku: 'B-2' }],
    'order.id': 'x',
    nothing: null,
  },
}

test.each([
  ['userId=u1', true],
  ['userId=u2', false],
  ['properties.orderId=4711', true],
  ['properties.orderId=471', false],
  ['properties.paid=true', true],
  ['properties.note=a=b', true],
  ['properties.products.sku=B-2', true],
  ['properties.products.sku=C-3', false],
  ['properties["order.id"]=x', true],
  ['properties.nothing=null', false],
  ['properties.products=A-1', false],
  ['properties.missing.more=1', false],
  ['toString=x', false],
])('%s is met: %s', (text, isMet) => {
  expect(meets(message, readCondition(text))).toBe(isMet)
})

test.each(['', '=x', 'properties', 'properties["a=x', 'properties[0]=x'])(
  'what is no condition is refused, with an example: %j',
  (text) => {
    expect(() => readCondition(text)).toThrow('such as properties.orderId=4711')
  },
)
