import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { getCACertificates } from 'node:tls'
import { LoginError } from './login-error.ts'

export type RereadOptions = {
  readonly path: string
  /** As a person writes it: `kafka.caFile (SLUICE_KAFKA_CA_FILE)`. */
  readonly setting: string
  /** Throws where the text is of no use. */
  readonly check?: (text: string) => void
  /** Told once that the file is of no use now, and that what it held before stays in force. */
  readonly onKept: (message: string) => void
}

/**
 * A file with a certificate or a password, which somebody renews while this process runs. It is small and
 * wanted once a connection, so it is read each time: no watcher misses a change, and a rotation needs no
 * restart.
 */
export class RereadFile {
  readonly #options: RereadOptions
  #good: string | undefined
  #isKept = false

  constructor(options: RereadOptions) {
    this.#options = options
  }

  /**
   * What it holds now; what it held before while it is of no use. Throws a LoginError where it never was of
   * any.
   */
  read(): string {
    const { path, setting, check = refuseEmpty, onKept } = this.#options
    try {
      const text = readFileSync(path, 'utf8')
      check(text)
      this.#good = text
      this.#isKept = false
      return text
    } catch (cause) {
      const problem = `${setting}: ${path} can not be used (${reasonOf(cause)})`
      if (this.#good === undefined) throw new LoginError(problem, { cause })
      if (!this.#isKept) onKept(`${problem}: what it held before stays in force`)
      this.#isKept = true
      return this.#good
    }
  }
}

/**
 * Reads a password that is given as it is, or in a file; throws a LoginError now where the file is of no use.
 */
export function passwordReader(
  given: string | undefined,
  path: string | undefined,
  setting: string,
  onKept: (message: string) => void,
): () => string | undefined {
  if (path === undefined) return () => given
  const file = new RereadFile({ path, setting, onKept })
  file.read()
  return () => withoutLineEnd(file.read())
}

/**
 * Reads the authorities that a server's certificate may be signed by: those that Node trusts, and those of
 * the file. `undefined` without a file; throws a LoginError now where it is of no use.
 */
export function authorityReader(
  path: string | undefined,
  onKept: (message: string) => void,
  setting: string,
): () => readonly string[] | undefined {
  if (path === undefined) return () => undefined
  const file = new RereadFile({ path, setting, onKept, check: checkCertificates })
  file.read()
  return () => [...getCACertificates('default'), file.read()]
}

/** Editors leave one behind a password. */
function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, '')
}

/** TLS passes over what holds no certificate without a word: here it throws. */
export function checkCertificates(pem: string): void {
  const first = new X509Certificate(pem)
  if (Number.isNaN(first.validToDate.getTime())) throw new Error('a certificate without an end')
}

function refuseEmpty(text: string): void {
  if (withoutLineEnd(text) === '') throw new Error('it is empty')
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}
