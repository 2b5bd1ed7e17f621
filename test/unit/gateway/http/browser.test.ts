import { expect, test } from 'vitest'
import { originHeaders } from '../../../../src/gateway/http/browser.ts'

test.each([
  'https://shop.example',
  'http://localhost:3000',
  'http://[::1]:8080',
  'capacitor://localhost',
  'null',
])('a page of %s may send with credentials', (origin) => {
  expect(originHeaders(origin)).toEqual({
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    vary: 'origin',
  })
})

test.each([
  undefined,
  '',
  '*',
  'https://a, https://b',
  'https://a\r\nx: y',
  'https://a"b',
  `https://${'a'.repeat(2_000)}`,
])('what is no origin, such as %j, is not repeated', (origin) => {
  expect(originHeaders(origin)).toEqual({ 'access-control-allow-origin': '*' })
})
