import { expect, test } from 'vitest'
import { peersPlot, peersResult, performanceMarkdown } from '../../../scripts/peers.ts'
import { svgFault } from '../../../scripts/svg.ts'

const bare = { deliveries_per_s: 37_000, cpu_us: 26.2, warm_cpu_us: 23.9 }
const result = {
  peers: {
    dispatch: bare,
    floor: bare,
    signing: bare,
    'franz-go': { ...bare, healthy_kept: 0, p99_ms_without: 5.2, p99_ms_with: null },
    'parallel-consumer': { ...bare, healthy_kept: 0, p99_ms_without: 7.6, p99_ms_with: null },
    worker: { ...bare, healthy_kept: 0.9996, p99_ms_without: 12.2, p99_ms_with: 12.1 },
  },
}
const page = [
  'before',
  '<!-- peers: written by `npm run generate` from docs/peers.json -->',
  'old',
  '<!-- end of peers -->',
  'after\n',
].join('\n')

test('the page has the figures of all programs, and only the table changes', () => {
  const read = peersResult(JSON.stringify(result))
  const made = performanceMarkdown(page, read)
  expect(made.replaceAll(/ +/g, ' ')).toContain(
    '| **sluice worker** | **37,000** | **26.2** | **23.9** | **100.0 %** | **12.2 ms** | **12.1 ms** |',
  )
  expect(made.replaceAll(/ +/g, ' ')).toContain(
    '| franz-go and net/http | 37,000 | 26.2 | 23.9 | 0.0 % | 5.2 ms | none |',
  )
  expect(made).not.toContain('old')
  expect(made).toMatch(/^before\n[^]*after\n$/)
  expect(performanceMarkdown(made, read)).toBe(made)
})

test('the plot is well-formed', () => {
  expect(svgFault(peersPlot(peersResult(JSON.stringify(result))))).toBeUndefined()
})

test('a file without one of the programs is refused', () => {
  expect(() => peersResult('{"peers":{}}')).toThrow('docs/peers.json has no figures of dispatch')
})

test('a page without the marks is refused', () => {
  expect(() => performanceMarkdown('before', peersResult(JSON.stringify(result)))).toThrow(
    'docs/performance.md has lost the marks around its peers',
  )
})
