import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type ModuleSpy = {
  /** The environment variables of the processes to watch. */
  variables: Record<string, string>
  /** Returns the URLs of the modules that the processes have loaded so far. */
  loaded(): string[]
  remove(): void
}

/**
 * Source text that records each module of OpenTelemetry, and of Sluice's tracing, which a process loads. It
 * ignores the API of OpenTelemetry, which prom-client always loads.
 */
const source = `
import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
registerHooks({
  load(url, context, next) {
    if (/src\\/tracing\\/|@opentelemetry\\/(?!api\\/)/.test(url)) appendFileSync(process.env.LOADED_FILE, url + '\\n')
    return next(url, context)
  },
})`

/** Creates a spy that tells which modules of OpenTelemetry, and of Sluice's tracing, processes load. */
export function createModuleSpy(): ModuleSpy {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-loaded-'))
  const [spy, loaded] = [join(folder, 'spy.mjs'), join(folder, 'loaded')]
  writeFileSync(spy, source)
  writeFileSync(loaded, '')
  return {
    variables: { NODE_OPTIONS: `--import ${spy}`, LOADED_FILE: loaded },
    loaded: () =>
      readFileSync(loaded, 'utf8')
        .split('\n')
        .filter((url) => url !== ''),
    remove: () => rmSync(folder, { recursive: true }),
  }
}
