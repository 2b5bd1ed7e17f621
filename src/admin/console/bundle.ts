import { existsSync, readFileSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'

/** The name of the list of all files of the bundle, which the build writes last. */
const manifestFile = 'manifest.json'

/** A file of the console, in each encoding that the build has made of it. */
export type BundleFile = {
  readonly type: string
  readonly plain: Buffer
  readonly gzip: Buffer | undefined
  readonly brotli: Buffer | undefined
  /** True if its name has a hash of its content, so that it never changes. */
  readonly isImmutable: boolean
}

/** The files of the console by their names, and its page, whose paths begin with the prefix. */
export type Bundle = { readonly files: ReadonlyMap<string, BundleFile>; readonly page: Buffer }

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
}

/** Returns the content type of a file, by the end of its name. */
export function typeOfFile(name: string): string {
  return types[extname(name)] ?? types[name] ?? 'application/octet-stream'
}

/** The bundle of the console in a folder. It is read again when it was built anew. */
export class BundleFolder {
  readonly #folder: string
  readonly #prefix: string
  #builtMs = 0
  #bundle: Bundle | undefined

  constructor(folder: string, prefix: string) {
    this.#folder = folder
    this.#prefix = prefix
  }

  /** Returns the bundle. `undefined`: nobody has built it. */
  current(): Bundle | undefined {
    const builtMs =
      statSync(join(this.#folder, manifestFile), { throwIfNoEntry: false })?.mtimeMs ?? this.#builtMs
    if (builtMs !== this.#builtMs) {
      this.#bundle = this.#read()
      this.#builtMs = builtMs
    }
    return this.#bundle
  }

  #read(): Bundle {
    const listed: unknown = JSON.parse(readFileSync(join(this.#folder, manifestFile), 'utf8'))
    const names = Object.keys(Object(listed)).filter((name) => !name.split('/').includes('..'))
    const files = names.map((name) => [name, this.#file(name)] as const)
    const page = readFileSync(join(this.#folder, 'index.html'), 'utf8')
    // The page is served at paths of any depth, so what it loads can't be named relative to it.
    const base = `${this.#prefix}/console/`
    return { files: new Map(files), page: Buffer.from(page.replaceAll(/(?<=(?:src|href)=")\.\//g, base)) }
  }

  #file(name: string): BundleFile {
    const path = join(this.#folder, name)
    return {
      type: typeOfFile(name),
      plain: readFileSync(path),
      gzip: readIf(`${path}.gz`),
      brotli: readIf(`${path}.br`),
      isImmutable: /[.-][\w-]{8,}\.\w+$/.test(name),
    }
  }
}

function readIf(file: string): Buffer | undefined {
  return existsSync(file) ? readFileSync(file) : undefined
}
