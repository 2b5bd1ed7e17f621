import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { HostsFile, parseHosts } from '../../../../src/delivery/connect/hosts-file.ts'
import { namesServer } from '../../../../src/delivery/connect/resolv-conf.ts'

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

test('names stay while the hosts file is empty or cut off before its first address, and the file is read again', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-hosts-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'hosts')
  let nowMs = 0
  const hosts = new HostsFile(path, () => nowMs)
  const addressesLater = () => {
    nowMs += 10_000
    return hosts.addressesOf('crm.test')
  }
  writeFileSync(path, '10.0.0.1 crm.test\n')
  expect(addressesLater()).toEqual(['10.0.0.1'])
  writeFileSync(path, '')
  expect(addressesLater()).toEqual(['10.0.0.1'])
  writeFileSync(path, '# hosts of the cluster\n10.0')
  expect(addressesLater()).toEqual(['10.0.0.1'])
  writeFileSync(path, '10.0.0.2 crm.test\n')
  expect(addressesLater()).toEqual(['10.0.0.2'])
  writeFileSync(path, '10.0.0.2 erp.test\n')
  expect(addressesLater()).toBeUndefined()
  writeFileSync(path, '10.0.0.3 crm.test\n')
  expect(addressesLater()).toEqual(['10.0.0.3'])
  rmSync(path)
  expect(addressesLater()).toBeUndefined()
})

test.each([
  ['names a server', 'search test\nnameserver 10.0.0.53\n', true],
  ['is empty', '', false],
  ['was cut off before the server', 'search test\nnameser', false],
  ['has the server in a comment', '# nameserver 10.0.0.53\n', false],
])('a resolv.conf that %s is recognized', (_, text, expected) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-resolv-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  expect(namesServer(join(folder, 'none'))).toBe(false)
  writeFileSync(join(folder, 'resolv.conf'), text)
  expect(namesServer(join(folder, 'resolv.conf'))).toBe(expected)
})
