import { describe, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/address/policy.ts'
import { formatFault } from '../../../src/catalog/fault.ts'
import { hostBreach } from '../../../src/catalog/host-rules.ts'
import { parseCatalog } from '../../../src/catalog/parse.ts'
import { readCatalogText } from '../../../src/catalog/file/reader.ts'

const strict = createAddressPolicy([])
const setting = 'delivery.allowAddresses (SLUICE_DELIVERY_ALLOW_ADDRESSES)'

test.each(['http://127.0.0.1:8080', 'https://[fd00::1]', 'http://localhost', 'http://a.localhost:1'])(
  '%s is refused, and what may be set is named',
  (origin) => {
    expect(hostBreach(origin, strict)?.advice).toContain(setting)
  },
)

test.each(['https://example.com', 'http://8.8.8.8', 'https://[2606:4700::1]:8443'])('%s is not', (origin) => {
  expect(hostBreach(origin, strict)).toBeUndefined()
})

function fault(place: string, index: number): string {
  return `catalog.yaml:${place}: crm: destinations[0].hooks[${index}].url: has an address that is not public; write a public host, or allow the address with ${setting}`
}

describe('a catalog', () => {
  const text = [
    'sources: [{ id: shop }]',
    'destinations:',
    '  - id: crm',
    '    sources: [shop]',
    '    hooks:',
    '      - url: https://example.com/hook',
    '      - url: http://10.1.2.3/a?token=s3cret',
    '      - url: http://[::ffff:192.168.0.1]/',
    '',
  ].join('\n')

  const faultsOf = (allowAddresses?: readonly string[]): readonly string[] => {
    const parsed = parseCatalog(text, { file: 'catalog.yaml', allowAddresses })
    return parsed.ok ? [] : parsed.faults.map(formatFault)
  }

  test('names each hook with an address that is not allowed, in its place, and quotes no URL', () => {
    expect(faultsOf([])).toEqual([fault('7:14', 1), fault('8:14', 2)])
    expect(faultsOf(['10.0.0.0/8'])).toEqual([fault('8:14', 2)])
    expect(faultsOf(['10.0.0.0/8', '192.168.0.0/16'])).toEqual([])
  })

  test('is not looked through for addresses by who does not deliver', () => {
    expect(faultsOf(undefined)).toEqual([])
  })

  test('is judged alike in a thread, where a large one is read', async () => {
    const large = `${text}# ${'x'.repeat(70_000)}\n`
    for (const allowAddresses of [[], ['10.0.0.0/8'], undefined]) {
      const options = { file: 'catalog.yaml', variables: {}, allowAddresses }
      expect(await readCatalogText(large, options)).toEqual(parseCatalog(large, options))
    }
  })
})
