import { expect, test } from 'vitest'
import { syntaxFaults } from '../../../scripts/block-syntax.ts'

const page = (language: string, text: string) => ({
  file: 'a.md',
  text: `# A\n\n\`\`\`${language}\n${text}\n\`\`\`\n`,
})

test.each([
  ['sh', 'sluice log find "order-4711'],
  ['', 'npx sluice up && (\n  echo'],
  ['js', 'const a = {'],
  ['json', '{ "a": 1, }'],
  ['yaml', 'a: [1, 2'],
  ['python', 'def f(:\n  pass'],
])('a block that is no %s is a fault, at its line', async (language, text) => {
  expect(await syntaxFaults(page(language, text))).toEqual([expect.stringMatching(/^a\.md:4 has a block/)])
})

test.each([
  ['sh', "curl http://127.0.0.1:8080/v1/track -u key: -d '{}' # a comment"],
  ['sh', 'kafka-topics.sh --bootstrap-server <broker>'],
  ['', '$ sluice destinations test crm\ncrm: it said ('],
  ['', 'POST /webhook HTTP/1.1'],
  ['js', "import { a } from 'b'\nawait a()"],
  ['js', 'call({ … })'],
  ['yaml', 'a: 1 # one'],
  ['python', 'print(1)'],
  ['http', 'anything ('],
])('what is %s, leaves something out, or shows an output, is none', async (language, text) => {
  expect(await syntaxFaults(page(language, text))).toEqual([])
})
