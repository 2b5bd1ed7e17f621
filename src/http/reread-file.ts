import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { getCACertificates } from 'node:tls'
import { LoginError } from './login-error.ts'

export type RereadOptions = {
  readonly path: string
  /** The name of the setting in error messages, for example `kafka.caFile (SLUICE_KAFKA_CA_FILE)`. */
  readonly setting: string
  /** Checks the text of the file. Throws if the text can't be used. */
  readonly check?: (text: string) => void
  /** Called once when the file can't be used any more. The previous content of the file then stays in use. */
  readonly onKept: (message: string) => void
}

/**
 * A file with a certificate or a password. Somebody may renew the file while this process runs. The file is
 * read again for each new connection, which is cheap because the file is small. So no change of the file is
 * missed, and a new certificate or password needs no restart.
 */
export class RereadFile {
  readonly #options: RereadOptions
  #good: string | undefined
  #isKept = false

  constructor(options: RereadOptions) {
    this.#options = options
  }

  /**
   * Returns the present content. While the file can't be used, returns its last usable content. Throws a
   * LoginError if the file has never been usable.
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
      if (!this.#isKept) onKept(`${problem}: the content read before stays in force`)
      this.#isKept = true
      return this.#good
    }
  }
}

/**
 * Returns a function that reads a password. The settings give the password directly or in a file. Throws a
 * LoginError at once if the file can't be used.
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
 * Returns a function that reads the authorities that may sign a server's certificate: the authorities that
 * Node trusts, and the authorities of the file. The function returns `undefined` if no file is set. Throws a
 * LoginError at once if the file can't be used.
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

/** Removes the line end that editors leave after a password. */
function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, '')
}

/**
 * Throws if the text contains no certificate, or was cut off inside of one. TLS would accept such a text
 * without an error, and trust only the certificates before the cut.
 */
export function checkCertificates(pem: string): void {
  const first = new X509Certificate(pem)
  if (Number.isNaN(first.validToDate.getTime())) throw new Error('a certificate without an end')
  const [begun, ended] = [/^-----BEGIN /gm, /^-----END .*-----\s*$/gm].map((line) => pem.match(line)?.length)
  if (begun !== ended) throw new Error('it was cut off inside of a certificate')
}

function refuseEmpty(text: string): void {
  if (withoutLineEnd(text) === '') throw new Error('it is empty')
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}
