import { spawn } from 'node:child_process'
import { pythonProgram } from './installed.ts'

const checks = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_schema_conformance',
]

/**
 * Sends valid and invalid requests, according to the OpenAPI document that `origin` serves. Throws an error
 * with the faults that were found.
 */
export async function examineApi(
  origin: string,
  { folder, forS, args }: { folder: string; forS: number; args: readonly string[] },
): Promise<void> {
  const child = spawn(
    pythonProgram('schemathesis'),
    [
      '--no-color',
      'run',
      `${origin}/openapi.json`,
      '--phases=examples,coverage,fuzzing',
      `--checks=${checks.join(',')}`,
      `--max-time=${forS}`,
      '--suppress-health-check=all',
      '--continue-on-failure',
      ...args,
    ],
    { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const code = await new Promise((resolve) => child.once('close', resolve))
  if (code !== 0) throw new Error(`schemathesis ended with ${String(code)}:\n${said}`)
}
