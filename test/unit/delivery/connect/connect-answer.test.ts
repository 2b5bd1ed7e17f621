import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ConnectAnswer, judgeConnect } from '../../../../src/delivery/connect/connect-answer.ts'

const target = (code: string): ConnectAnswer => ({ kind: 'target', code })
const fault = (reason: string, isDown = false): ConnectAnswer => ({ kind: 'fault', reason, isDown })
const status = (value: string): Record<string, string> => ({ 'proxy-status': value })
const squid = (value: string): Record<string, string> => ({ 'x-squid-error': value })

describe('an answer to CONNECT', () => {
  test.each<[number, Record<string, string>, ConnectAnswer]>([
    [200, {}, { kind: 'tunnel' }],
    [204, {}, { kind: 'tunnel' }],
    [200, status('p; error=connection_refused'), { kind: 'tunnel' }],
    [302, {}, fault('CONNECT_302')],
    [400, {}, fault('CONNECT_400')],
    [403, {}, target('CONNECT_403')],
    [404, {}, fault('CONNECT_404')],
    [405, {}, fault('CONNECT_405')],
    [407, {}, fault('CONNECT_407', true)],
    [429, {}, fault('CONNECT_429')],
    [500, {}, fault('CONNECT_500')],
    [502, {}, target('CONNECT_502')],
    [503, {}, fault('CONNECT_503')],
    [504, {}, target('CONNECT_504')],
    [511, {}, fault('CONNECT_511')],
    [503, status('p.example; error=dns_error; rcode="NXDOMAIN"'), target('dns_error')],
    [503, status('p.example;error=connection_timeout'), target('connection_timeout')],
    [502, status('p.example; error=proxy_internal_error'), fault('proxy_internal_error')],
    [502, status('p.example; error=connection_limit_reached'), fault('connection_limit_reached')],
    [502, status('p.example; received-status=502'), target('CONNECT_502')],
    [502, status('p.example; error=destination_ip_prohibited'), { kind: 'prohibited' }],
    [403, status('p.example; error=http_request_denied'), target('http_request_denied')],
    [503, squid('ERR_CONNECT_FAIL 111'), target('ERR_CONNECT_FAIL')],
    [503, squid('ERR_DNS_FAIL 0'), target('ERR_DNS_FAIL')],
    [503, squid('ERR_CANNOT_FORWARD 0'), fault('ERR_CANNOT_FORWARD')],
    [503, squid('ERR_SOCKET_FAILURE 24'), fault('ERR_SOCKET_FAILURE')],
    [403, squid('ERR_ACCESS_DENIED 0'), target('ERR_ACCESS_DENIED')],
    [407, squid('ERR_CACHE_ACCESS_DENIED 0'), fault('CONNECT_407', true)],
    [407, { 'x-smokescreen-error': 'denied by rule' }, target('CONNECT_407')],
    [502, { 'x-smokescreen-error': 'dial tcp: i/o timeout' }, target('CONNECT_502')],
  ])('%i %j', (code, headers, judged) => {
    expect(judgeConnect(code, headers)).toEqual(judged)
  })

  test('never makes more of a header than one plain word', () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 599 }), fc.string(), fc.string(), (code, one, other) => {
        const judged = judgeConnect(code, { 'proxy-status': `p; error=${one}`, 'x-squid-error': [other] })
        const word = judged.kind === 'target' ? judged.code : judged.kind === 'fault' ? judged.reason : 'none'
        expect(word).toMatch(/^\w{1,60}$/)
      }),
      { numRuns: 1_000 },
    )
  })
})
