import { execFile, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'

/**
 * Checks the Go client with gofmt, go vet and go test -race. The arguments are a command that runs at the
 * same time. The script fails if a check or this command fails. If Go isn't installed, the script prints a
 * warning, and only the command counts. The variable TEST_GO_RESULTS names a file for the result:
 * `{"passed":N,"failed":N,"failures":["what failed"]}`.
 */

type Outcome = { passed: number; failed: number; failures: string[] }

const folder = resolve(import.meta.dirname, '../clients/go')

async function checkGoClient(): Promise<Outcome> {
  const version = await run('go', ['version'])
  if (version.code !== 0) {
    say(noGo)
    return { passed: 0, failed: 0, failures: [] }
  }
  const unformatted = await run('gofmt', ['-l', '.'])
  // With `-race`, vet uses the build that the tests need anyway.
  const vetted = await run('go', ['vet', '-race', './...'])
  const tested = await runTests()
  const faults = [
    ...(unformatted.code === 0 && unformatted.text === '' ? [] : [`gofmt -l names:\n${unformatted.text}`]),
    ...(vetted.code === 0 ? [] : [`go vet:\n${vetted.text}`]),
  ]
  for (const fault of faults) say(fault)
  const outcome = {
    passed: tested.passed,
    failed: tested.failed + faults.length,
    failures: [...tested.failures, ...faults],
  }
  say(`Go client: ${outcome.passed} passed, ${outcome.failed} failed (gofmt, go vet, go test -race)`)
  return outcome
}

/**
 * Runs the tests and counts them, without subtests. A package that can't be built counts as a failed test.
 */
async function runTests(): Promise<Outcome> {
  const child = spawn('go', ['test', '-race', '-json', './...'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const outcome: Outcome = { passed: 0, failed: 0, failures: [] }
  const said = new Map<string, string>()
  const ended = new Promise<number>((done) => child.once('close', (code) => done(code ?? 1)))
  for await (const line of createInterface({ input: child.stdout })) {
    const { Action: action, Test: test = '', Output: output = '' } = readEvent(line)
    said.set(test, (said.get(test) ?? '') + output)
    if (test.includes('/') || (action !== 'pass' && action !== 'fail')) continue
    if (action === 'fail') {
      const isOf = (of: string): boolean => test === '' || of === test || of.startsWith(`${test}/`)
      const text = [...said].flatMap(([of, lines]) => (isOf(of) ? [lines] : [])).join('')
      say(text)
      // If a package can't be built, none of its tests has failed.
      if (test !== '' || outcome.failures.length === 0) outcome.failures.push(text)
    }
    if (test === '') continue
    outcome[action === 'pass' ? 'passed' : 'failed']++
  }
  const code = await ended
  return { ...outcome, failed: Math.max(outcome.failed, code === 0 ? 0 : 1) }
}

type TestEvent = { Action?: string; Test?: string; Output?: string }

function readEvent(line: string): TestEvent {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `go test -json` writes
    return JSON.parse(line) as TestEvent
  } catch {
    return { Action: 'output', Output: `${line}\n` }
  }
}

function run(command: string, args: readonly string[]): Promise<{ code: number; text: string }> {
  return new Promise((done) => {
    execFile(command, args, { cwd: folder }, (error, stdout, stderr) =>
      done({ code: error === null ? 0 : 1, text: (stdout + stderr).trim() }),
    )
  })
}

/** Runs a command, and resolves to its exit code. Resolves to 0 if there is no command. */
function runBeside([command, ...args]: readonly string[]): Promise<number> {
  if (command === undefined) return Promise.resolve(0)
  return new Promise((done) => {
    const child = spawn(command, args, { stdio: 'inherit' })
    child.once('error', (error) => {
      say(error.message)
      done(1)
    })
    child.once('exit', (code) => done(code ?? 1))
  })
}

function say(text: string): void {
  process.stderr.write(`${text}\n`)
}

const noGo = `
****************************************************************************
  THE GO CLIENT WAS NOT TESTED: there is no Go on the PATH.
  Install Go 1.22 or later, with a C compiler for the race detector (gcc).
****************************************************************************
`

const [outcome, code] = await Promise.all([checkGoClient(), runBeside(process.argv.slice(2))])
const file = process.env['TEST_GO_RESULTS']
if (file !== undefined) writeFileSync(file, JSON.stringify(outcome))
process.exitCode = code === 0 && outcome.failed === 0 ? 0 : 1
