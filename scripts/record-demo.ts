import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import xterm from '@xterm/headless'
import { type Colour, drawTerminal, type Frame, type Run } from './plots/terminal.ts'

/**
 * Records `npm run demo` as docs/demo.svg: `node scripts/record-demo.ts`. Runs the demo in a separate
 * terminal (`script`, of util-linux), reads the screen every two seconds, and draws the screens that differ
 * from the previous one. Draws nothing if the demo fails.
 */
const root = resolve(import.meta.dirname, '..')
const picture = join(root, 'docs/demo.svg')
const everyMs = 2_000
const columns = 130
/** Rows of the terminal, enough for the table and the checks below it. */
const screenRows = 44

const terminal = new xterm.Terminal({ cols: columns, rows: screenRows, allowProposedApi: true })
const colours: ReadonlyMap<number, Colour> = new Map([
  [1, 'red'],
  [2, 'green'],
  [3, 'yellow'],
])
const frames: Frame[] = []
const startMs = performance.now()
const sampling = setInterval(takeFrame, everyMs)
const code = await playDemo()
clearInterval(sampling)
takeFrame()
if (code === 0) writeFileSync(picture, draw())
else console.error(`The demo ended with ${code}: nothing is drawn.`)
process.exitCode = code

async function playDemo(): Promise<number> {
  const command = `stty cols ${columns} rows ${screenRows}; exec ${process.execPath} demo/main.ts`
  const demo = spawn('script', ['--quiet', '--return', '--flush', '--command', command, '/dev/null'], {
    cwd: root,
    env: { ...process.env, TERM: 'xterm-256color', FORCE_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  demo.stdout.on('data', (bytes: Buffer) => {
    terminal.write(bytes)
    process.stdout.write(bytes)
  })
  await once(demo, 'close')
  return demo.exitCode ?? 1
}

/** Adds the present screen to the frames, unless it equals the last frame. */
function takeFrame(): void {
  const { active } = terminal.buffer
  const lines = Array.from({ length: screenRows }, (_, row) => readLine(active.baseY + row))
  const frame = { atMs: performance.now() - startMs, lines }
  if (JSON.stringify(frames.at(-1)?.lines) !== JSON.stringify(lines)) frames.push(frame)
}

/**
 * Reads a line as pieces of one style each. A new piece also begins after a gap of two spaces, so that
 * columns stay aligned in any font.
 */
function readLine(row: number): Run[] {
  const line = terminal.buffer.active.getLine(row)
  const runs: Run[] = []
  for (let column = 0; column < columns; column++) {
    const cell = line?.getCell(column)
    if (cell === undefined) break
    const style = {
      colour: colours.get(cell.getFgColor()) ?? 'plain',
      isBold: cell.isBold() !== 0,
      isDim: cell.isDim() !== 0,
    }
    const text = cell.getChars() || ' '
    const last = runs.at(-1)
    const goesOn =
      last !== undefined && isOneStyle(last, style) && !(last.text.endsWith('  ') && text !== ' ')
    if (goesOn) runs[runs.length - 1] = { ...last, text: last.text + text }
    else runs.push({ column, text, ...style })
  }
  return runs.map(trimmed).filter(({ text }) => text !== '')
}

function trimmed({ column, text, ...style }: Run): Run {
  const indent = text.length - text.trimStart().length
  return { column: column + indent, text: text.trim(), ...style }
}

function isOneStyle(a: Omit<Run, 'column' | 'text'>, b: Omit<Run, 'column' | 'text'>): boolean {
  return a.colour === b.colour && a.isBold === b.isBold && a.isDim === b.isDim
}

/** Draws all frames. The rows below the last line of the last frame are left out. */
function draw(): string {
  const last = frames.at(-1)
  const rows = 1 + (last?.lines.findLastIndex((runs) => runs.length > 0) ?? 0)
  return drawTerminal({
    title: 'npm run demo, recorded',
    columns,
    rows,
    frames: frames.map(({ atMs, lines }) => ({ atMs, lines: lines.slice(0, rows) })),
    speed: 3,
    holdMs: 10_000,
  })
}
