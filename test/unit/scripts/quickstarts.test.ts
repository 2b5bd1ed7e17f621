import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../../..')
const page = readFileSync(join(root, 'docs/quickstarts.md'), 'utf8')
/** The pages of receivers that show more than a quickstart, by the topic in the name of the example. */
const others: Readonly<Record<string, string>> = {
  batch: readFileSync(join(root, 'docs/batches.md'), 'utf8'),
  ed25519: readFileSync(join(root, 'docs/verifying-signatures.md'), 'utf8'),
}
const examples = globSync('examples/**/*.{mjs,py,go,java,php,rb}', { cwd: root })

test('the page of quickstarts shows each receiver as it is, and links to each sender', () => {
  expect(examples).toHaveLength(14)
  for (const file of examples) {
    const [, topic = ''] = /receive-(\w+)/.exec(file) ?? []
    if (topic !== '') expect(others[topic]).toContain(`(../${file})`)
    else if (/\b(S|s)end\b/.test(file)) expect(page).toContain(`(../${file})`)
    else expect(page).toContain(`\n${readFileSync(join(root, file), 'utf8').trim()}\n\`\`\`\n`)
  }
})
