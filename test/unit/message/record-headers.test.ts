import { expect, test } from 'vitest'
import { parseOrigin } from '../../../src/message/record-headers.ts'

test('an origin is where a record was at first; nothing else is one', () => {
  expect(parseOrigin('audience-changes/3/17')).toEqual({
    topic: 'audience-changes',
    partition: 3,
    offset: 17,
  })
  for (const text of ['', '/3/17', 'a/3', 'a/3/x', 'a/-1/2', 'a/3/99999999999999999'])
    expect(parseOrigin(text)).toBeUndefined()
})
