import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'

const processes = 3
const linesOfEach = 4_000

/** A program that logs numbered lines of several lengths. Each line has the number of its process. */
const logging = `
  import { createLogger } from ${JSON.stringify(new URL('../../../src/telemetry/logger.ts', import.meta.url).href)}
  const { log, flush } = createLogger({ level: 'info', isShared: true })
  for (let line = 0; line < ${linesOfEach}; line++) log.info({ of: process.argv[1], line, rest: 'x'.repeat(line % 700) })
  flush()
`

test('lines of processes that share a pipe are not mixed, also while it is full', async () => {
  // All processes share one pipe, as in a container. Its reader takes little at a time.
  const each = Array.from(
    { length: processes },
    (_, number) => `"$NODE" --input-type=module -e "$LOGGING" ${number} &`,
  )
  const shell = spawn('sh', ['-c', `{ ${each.join(' ')} wait; } | dd bs=256 status=none`], {
    env: { ...process.env, NODE: process.execPath, LOGGING: logging },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = (await text(shell.stdout)).trimEnd().split('\n')
  const read = lines.map((line): unknown => JSON.parse(line))
  for (let number = 0; number < processes; number++) {
    const own = lines.flatMap((line, at) => (line.includes(`"of":"${number}"`) ? [read[at]] : []))
    const written = Array.from({ length: linesOfEach }, (_, line) => expect.objectContaining({ line }))
    expect(own).toEqual(written)
  }
})

/** Texts of strangers, some of which a terminal would obey. */
const odd = ['DEL\u007f', 'ESC\u001b[2J', 'C1\u009b2J', 'rtl\u202e1174', 'plain', 'é 日本']
const loggingOdd = `
  import { createLogger } from ${JSON.stringify(new URL('../../../src/telemetry/logger.ts', import.meta.url).href)}
  const { log, flush } = createLogger({ level: 'info' })
  for (const text of ${JSON.stringify(odd)}) log.info({ text })
  flush()
`

test('no line has a character that a terminal obeys, and each stays the same JSON', async () => {
  const program = spawn(process.execPath, ['--input-type=module', '-e', loggingOdd], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const output = await text(program.stdout)
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  expect(output).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/)
  const lines = output.trimEnd().split('\n')
  expect(lines.map((line): unknown => JSON.parse(line))).toEqual(
    odd.map((given) => expect.objectContaining({ text: given })),
  )
})

/** Lines of any length, in ASCII or not, so that blocks end at every place of a line. */
const loggingMany = `
  import { createLogger } from ${JSON.stringify(new URL('../../../src/telemetry/logger.ts', import.meta.url).href)}
  const { log, flush } = createLogger({ level: 'info', isShared: true })
  for (let line = 0; line < 3_000; line++) log.info({ line, rest: ['x', 'é', '日', '\\u007f'][line % 4].repeat(line * 7 % 1_500) })
  log.info({ line: 3_000, rest: '日'.repeat(50_000) })
  flush()
`

test('each line is whole, wherever in it a block ends', async () => {
  const program = spawn(process.execPath, ['--input-type=module', '-e', loggingMany], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = (await text(program.stdout)).trimEnd().split('\n')
  const rests = Array.from({ length: 3_000 }, (_, line) =>
    (['x', 'é', '日', '\u007f'][line % 4] ?? '').repeat((line * 7) % 1_500),
  )
  expect(lines.map((line): unknown => JSON.parse(line))).toEqual(
    [...rests, '日'.repeat(50_000)].map((rest, line) => expect.objectContaining({ line, rest })),
  )
})
