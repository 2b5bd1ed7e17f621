import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { secretsOf } from '../../../src/secrets/secret-texts.ts'
import { withoutSecrets } from '../../../src/secrets/without-secrets.ts'

const page = readFileSync(new URL('../../../docs/delivery-log.md', import.meta.url), 'utf8').replaceAll(
  /\s+/g,
  ' ',
)
const [, listed = ''] = /Sluice doesn't replace: (.*?\.) Sluice /.exec(page) ?? []
/** What the page says that Sluice doesn't replace in an answer. */
const sentences = listed.split(/(?:^| )- /).slice(1)

const header = (value: string): string[] => secretsOf([value], '/')
const path = (text: string): string[] => secretsOf([], text)
const token = 's3cr3tTOKEN99'

/** For each sentence: secrets, and answers that stay as they are. */
const cases: readonly (readonly [says: string, secrets: readonly string[], answers: readonly string[]])[] = [
  [
    "shorter values, and parts that don't look like tokens, such as the password `swordfish` in the header `X-Login: ann,swordfish`",
    [...header('Bearer ab12c'), ...header('ann,swordfish')],
    ['no ab12c here', 'wrong swordfish', 'no ann'],
  ],
  [
    'a piece of a value or part, such as the last four characters',
    path(`/in/${token}`),
    ['key …EN99', 's3cr3tTOK is'],
  ],
  [
    'a value that the answer encodes in another way (such as base64), encodes twice, spreads over lines, or paraphrases',
    path(`/in/${token}`),
    [
      Buffer.from(token).toString('base64'),
      Array.from(Buffer.from(token), (byte) => `%25${byte.toString(16)}`).join(''),
      `${token.slice(0, 6)}\n${token.slice(6)}`,
      'the token that begins with s3c',
    ],
  ],
  ['other content of the message', header(token), ['{"email":"ann@example.com","total":12.5}']],
]

test('the page names everything that stays in an answer, and no more', () => {
  expect(sentences).toHaveLength(cases.length)
  for (const [index, [says]] of cases.entries()) expect(sentences[index]).toContain(says)
})

test.each(cases)('an answer keeps %s', (_, secrets, answers) => {
  for (const answer of answers) expect(withoutSecrets(Buffer.from(answer), secrets).toString()).toBe(answer)
})

test('the page has the limits that hold', () => {
  for (const [secret, answer] of [
    ['abc12', 'abc12'],
    ['abc123', '[redacted]'],
    ['a,abcd1234', '[redacted]'],
    ['a,abcd123', 'abcd123'],
  ] as const) {
    expect(withoutSecrets(Buffer.from(secret.split(',').at(-1) ?? ''), header(secret)).toString()).toBe(
      answer,
    )
  }
  expect(page).toContain('Sluice replaces a value that has six or more characters.')
  expect(page).toContain('Such a part has eight or more characters.')
})

test('the password of Basic authentication is recognized, as the page says', () => {
  const secrets = header(`Basic ${btoa('ann:swordfish')}`)
  expect(page).toContain('(but in Basic authentication, it recognizes the password)')
  expect(withoutSecrets(Buffer.from('wrong swordfish'), secrets).toString()).toBe('wrong [redacted]')
})
