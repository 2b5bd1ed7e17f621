import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  headerNameBreach,
  headersBreach,
  headerValueBreach,
  hookBreach,
  hookIdOf,
  parseHookUrl,
} from '../../../src/catalog/hook-rules.ts'

describe('parseHookUrl', () => {
  it.each([
    ['https://example.com/hook?a=b', 'https://example.com', '/hook?a=b'],
    [
      "https://example.com/Users('x')?$filter=id+eq+'x'",
      'https://example.com',
      "/Users('x')?$filter=id+eq+'x'",
    ],
    ["https://example.com/a%27b?a=%27'", 'https://example.com', "/a%27b?a=%27'"],
    ['https://example.com/?a=é<b>"c"', 'https://example.com', '/?a=%C3%A9%3Cb%3E%22c%22'],
    ['https://example.com?', 'https://example.com', '/'],
    ['HTTP://EXAMPLE.com', 'http://example.com', '/'],
    ['https://example.com:443/a', 'https://example.com', '/a'],
    ['https://example.com:65535/', 'https://example.com:65535', '/'],
    ['http://[2001:db8::1]:8080/x', 'http://[2001:db8::1]:8080', '/x'],
    ['https://bücher.example/ü?ü', 'https://xn--bcher-kva.example', '/%C3%BC?%C3%BC'],
    ['https://example.com?q', 'https://example.com', '/?q'],
    ['https://example.com/a%20b/@x', 'https://example.com', '/a%20b/@x'],
    ['https://my_service.team-a.svc:8080/', 'https://my_service.team-a.svc:8080', '/'],
    [`https://${'a'.repeat(63)}.example/`, `https://${'a'.repeat(63)}.example`, '/'],
    ['https://example.com/%0d%0aX-A:%20b', 'https://example.com', '/%0d%0aX-A:%20b'],
    ['https://example.com/a/../b', 'https://example.com', '/b'],
  ])('reads %s', (text, origin, path) => {
    expect(parseHookUrl(text)).toEqual({ ok: true, url: origin + path, origin, path })
  })

  it.each([
    ['', 'is not a full http or https URL'],
    ['example.com/hook', 'is not a full http or https URL'],
    ['ftp://example.com/', 'is not a full http or https URL'],
    ['javascript:alert(1)', 'is not a full http or https URL'],
    ['https:example.com', 'is not a full http or https URL'],
    ['https:///example.com', 'is not a full http or https URL'],
    ['https://user:pass@example.com/', 'has a user name or password'],
    ['https://@example.com/', 'has a user name or password'],
    ['https://example.com/#top', 'has a fragment (#), which is never sent'],
    ['https://example.com/#', 'has a fragment (#), which is never sent'],
    ['https://example.com:0/', 'has a port out of range'],
    ['https://example.com:65536/', 'has a port out of range'],
    ['https://example.com/a b', 'has white space or a control character'],
    [' https://example.com/', 'has white space or a control character'],
    ['https://example.com/\n', 'has white space or a control character'],
    ['https://example.com/\u0000', 'has white space or a control character'],
    ['https://example.com/\u00a0', 'has white space or a control character'],
    ['https://example.com\\hook', 'has a backslash'],
    ['https://example.com/\ud800', 'is not well-formed Unicode'],
    ['https://exa mple.com:x/', 'has white space or a control character'],
    ['https://example.com:x/', 'is not a valid URL'],
    ['https://[::1/', 'is not a valid URL'],
    ['https://%/', 'is not a valid URL'],
    ['https://example.com:25/', 'has the port 25, which is kept for another protocol'],
    ['http://example.com:0022/', 'has the port 22, which is kept for another protocol'],
    ['http://[2001:db8::1]:6667/', 'has the port 6667, which is kept for another protocol'],
    ['https://example.com./', 'has a host name that ends with a dot'],
    ['https://example..com/', 'has a host name that DNS does not have'],
    ['https://.example.com/', 'has a host name that DNS does not have'],
    ['https://exa$mple.com/', 'has a host name that DNS does not have'],
    ["https://o'example.com/", 'has a host name that DNS does not have'],
    [`https://${'a'.repeat(64)}.example/`, 'has a host name that is too long for DNS'],
    [`https://${'a.'.repeat(126)}aa/`, 'has a host name that is too long for DNS'],
    [`https://${'ü'.repeat(60)}.example/`, 'has a host name that is too long for DNS'],
    [`https://example.com/${'a'.repeat(2048)}`, 'is longer than 2048 characters'],
    [`https://example.com/${'ü'.repeat(1000)}`, 'is too long once it is percent-encoded'],
  ])('refuses %j', (text, problem) => {
    const parsed = parseHookUrl(text)
    expect(parsed.ok ? [] : parsed.breaches.map((breach) => breach.problem)).toEqual([problem])
  })

  it('names everything that is wrong with a URL', () => {
    const parsed = parseHookUrl('https://me:secret@example.com:0/a b#c')
    expect(parsed.ok ? [] : parsed.breaches).toHaveLength(4)
    expect(JSON.stringify(parsed)).not.toContain('secret')
  })

  it('takes only what a request line can carry, and takes its own normal form again', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.webUrl({ withQueryParameters: true }), fc.string({ unit: 'binary' })),
        (text) => {
          for (const given of [text, `https://example.com/${text}`, `https://${text}`]) {
            const parsed = parseHookUrl(given)
            if (!parsed.ok) continue
            expect(parsed.path).toMatch(/^\/[\x21-\x7e]*$/)
            expect(parsed.origin).toMatch(/^https?:\/\/[\x21-\x7e]+$/)
            expect(parseHookUrl(parsed.url)).toEqual(parsed)
          }
        },
      ),
      { numRuns: 2_000 },
    )
  })
})

describe('hookIdOf', () => {
  it('is the beginning of the SHA-1 of the URL', () => {
    expect(hookIdOf('https://example.com/hook')).toBe('3c465794')
  })
})

describe('headerNameBreach', () => {
  it.each(['X-Team', 'authorization', 'x_y', "!#$%&'*+.^_`|~9", 'webhooks', 'Cookie'])('takes %s', (name) => {
    expect(headerNameBreach(name)).toBeUndefined()
  })

  it.each(['', 'X Team', 'X:Y', 'X-Te\nam', 'X-Team ', 'Ü', '(x)', '\u0000', '"x"', 'a,b', '{}'])(
    'refuses %j',
    (name) => {
      expect(headerNameBreach(name)?.problem).toMatch(/header name$/)
    },
  )

  it.each([
    'Host',
    'Content-Length',
    'transfer-encoding',
    'Connection',
    'keep-alive',
    'Upgrade',
    'Expect',
    'TE',
    'Trailer',
    'Proxy-Authorization',
    'proxy-connection',
    'Content-Type',
    'User-Agent',
    'X-Signature',
    'X-Sluice-Replay',
    'X-Sluice-Attempt',
    'X-Sluice-Message-Id',
    'X-Sluice-Test',
    'webhook-id',
    'Webhook-Signature',
    'Content-Encoding',
    'Transfer_Encoding',
    'x_signature',
    'WEBHOOK_ID',
  ])('refuses %s, which is not free to set', (name) => {
    expect(headerNameBreach(name)?.problem).toBe('is a header that is not free to set')
  })
})

describe('headerValueBreach', () => {
  it.each(['', 'crm', 'a b\tc', 'é ÿ', '"{}$'])('takes %j', (value) => {
    expect(headerValueBreach(value)).toBeUndefined()
  })

  it.each([
    ['a\nb', 'has a line break'],
    ['a\rb', 'has a line break'],
    ['a\u0000b', 'has a control character'],
    ['a\u007fb', 'has a control character'],
    ['a\u0085b', 'has a control character'],
    ['€', 'has a character outside of Latin-1'],
    ['😀', 'has a character outside of Latin-1'],
    [' a', 'begins or ends with white space'],
    ['a\t', 'begins or ends with white space'],
  ])('refuses %j', (value, problem) => {
    expect(headerValueBreach(value)?.problem).toBe(problem)
  })
})

function headers(count: number, length: number): [string, string][] {
  return Array.from({ length: count }, (_, index) => [`X-${index + 10}`, 'v'.repeat(length)])
}

describe('headersBreach', () => {
  it('takes 50 headers and 8 KiB, and no more', () => {
    expect(headersBreach(headers(50, 1))).toBeUndefined()
    expect(headersBreach(headers(51, 1))?.problem).toBe('has more than 50 headers')
    expect(headersBreach(headers(1, 8192 - 8))).toBeUndefined()
    expect(headersBreach(headers(1, 8192 - 7))?.problem).toBe('has 8193 bytes of headers')
  })
})

describe('hookBreach', () => {
  it('finds the first fault of a hook that is about to be sent', () => {
    const url = { origin: 'https://example.com', path: '/a?b' }
    expect(hookBreach({ ...url, headers: [['X-A', 'b']] })).toBeUndefined()
    expect(hookBreach({ ...url, path: '/ ', headers: [] })?.problem).toContain('white space')
    expect(hookBreach({ ...url, headers: [['X-A', 'b\n']] })?.problem).toContain('line break')
    expect(hookBreach({ ...url, headers: [['Host', 'b']] })?.problem).toContain('not free')
    expect(hookBreach({ ...url, headers: [['X-A', 'v'.repeat(9000)]] })?.problem).toContain(
      'bytes of headers',
    )
  })

  it.each([
    ['https://example.com', ''],
    ['https://example.com', '/a/../b'],
    ['https://example.com', '/ü'],
    ['https://EXAMPLE.com', '/'],
    ['https://example.com:443', '/'],
    ['https://example.com/a', '/b'],
    ['https://exam', 'ple.com/'],
  ])('refuses what is not a normal form: %s %s', (origin, path) => {
    expect(hookBreach({ origin, path, headers: [] })?.problem).toBe('is not the normal form of its URL')
  })
})
