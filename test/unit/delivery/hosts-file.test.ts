import { expect, test } from 'vitest'
import { parseHosts } from '../../../src/delivery/hosts-file.ts'

test('a hosts file gives each name its addresses, in order and once', () => {
  const text = [
    '127.0.0.1\tlocalhost',
    '::1 localhost ip6-localhost',
    '',
    '# 10.0.0.1 commented.test',
    '  10.0.0.2   Crm.Test crm   # the first',
    '10.0.0.2 crm.test',
    '10.0.0.3 crm.test\r',
    '10.0.0 nothing.test',
    '10.0.0.4',
    'only.test',
  ].join('\n')
  expect([...parseHosts(text)]).toEqual([
    ['localhost', ['127.0.0.1', '::1']],
    ['ip6-localhost', ['::1']],
    ['crm.test', ['10.0.0.2', '10.0.0.3']],
    ['crm', ['10.0.0.2']],
  ])
})
