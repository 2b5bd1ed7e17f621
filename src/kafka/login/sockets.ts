import { createPrivateKey } from 'node:crypto'
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls'
import type { ISocketFactory } from 'kafkajs'
import type { KafkaSettings } from './kafka-settings.ts'
import { LoginError, type ReportedTroubles } from '../../http/login-error.ts'
import { authorityReader, checkCertificates, passwordReader, RereadFile } from '../../http/reread-file.ts'
import { tlsAdvice } from './tls-advice.ts'
import { answerReads } from '../wire/answer-reads.ts'
import { accepted } from '../wire/connections.ts'

const keepAliveMs = 60_000

export type TlsSettings = Pick<
  KafkaSettings,
  'ssl' | 'caFile' | 'certFile' | 'keyFile' | 'keyPassword' | 'keyPasswordFile' | 'serverName'
>

/**
 * Creates the function that opens connections to the brokers. This function reads the files of `settings` for
 * each connection, so a renewed certificate is used from the next connection on. `createSocketFactory` throws
 * a LoginError at once if one of the files can't be used.
 */
export function createSocketFactory(settings: TlsSettings, troubles: ReportedTroubles): ISocketFactory {
  if (!settings.ssl)
    return ({ host, port, onConnect }) =>
      watched(connectPlain({ host, port, onread: answerReads() }, onConnect))
  const context = new TlsContext(settings, (message) => troubles.take(message))
  context.current()
  return ({ host, port, onConnect }) => {
    const { serverName = isIP(host) === 0 ? host : undefined } = settings
    const socket = connectTls(
      {
        host,
        port,
        secureContext: context.current(),
        ...(serverName !== undefined && { servername: serverName }),
      },
      onConnect,
    )
    let isAgreed = false
    socket.once('secureConnect', () => (isAgreed = true))
    socket.on('error', ({ code = '' }: Error & { code?: string }) => {
      const advice = code === 'ECONNRESET' && !isAgreed ? closedEarly : tlsAdvice(code)
      if (advice !== undefined) troubles.take(`${host}:${port}: ${advice} (${code})`)
    })
    return watched(socket)
  }
}

const closedEarly =
  'it closed the connection before TLS was agreed on: if it always does, what listens there speaks no TLS, or asks for a client certificate (kafka.brokers, kafka.ssl, kafka.certFile)'

function watched(socket: Socket): Socket {
  socket.once('connect', () => accepted.add(socket))
  return socket.setKeepAlive(true, keepAliveMs)
}

/**
 * The TLS context that connections share. The context is made again when one of the files that it uses has
 * changed.
 */
class TlsContext {
  readonly #ca: () => readonly string[] | undefined
  readonly #cert: RereadFile | undefined
  readonly #key: RereadFile | undefined
  readonly #password: () => string | undefined
  readonly #onKept: (message: string) => void
  #made: { readonly of: string; readonly context: SecureContext } | undefined

  constructor(settings: TlsSettings, onKept: (message: string) => void) {
    const { caFile, certFile, keyFile, keyPassword, keyPasswordFile } = settings
    this.#onKept = onKept
    this.#password = passwordReader(keyPassword, keyPasswordFile, keyPasswordSetting, onKept)
    const checkKey = (pem: string): void => void createPrivateKey({ key: pem, passphrase: this.#password() })
    this.#ca = authorityReader(caFile, onKept, 'kafka.caFile (SLUICE_KAFKA_CA_FILE)')
    this.#cert = fileOf(certFile, 'kafka.certFile (SLUICE_KAFKA_CERT_FILE)', onKept, checkCertificates)
    this.#key = fileOf(keyFile, 'kafka.keyFile (SLUICE_KAFKA_KEY_FILE)', onKept, checkKey)
  }

  current(): SecureContext {
    const [ca, cert, key] = [this.#ca(), this.#cert?.read(), this.#key?.read()]
    const passphrase = this.#password()
    const of = JSON.stringify([ca, cert, key, passphrase])
    if (this.#made?.of === of) return this.#made.context
    try {
      this.#made = { of, context: createSecureContext({ ca: ca && [...ca], cert, key, passphrase }) }
      return this.#made.context
    } catch (cause) {
      // This happens while the file of the certificate is renewed already, but the file of the key isn't
      // renewed yet.
      const problem = `kafka.certFile (SLUICE_KAFKA_CERT_FILE) and kafka.keyFile (SLUICE_KAFKA_KEY_FILE) do not belong together (${cause instanceof Error ? cause.message : String(cause)})`
      if (this.#made === undefined) throw new LoginError(problem, { cause })
      this.#onKept(`${problem}: the files read before stay in force`)
      return this.#made.context
    }
  }
}

const keyPasswordSetting = 'kafka.keyPasswordFile (SLUICE_KAFKA_KEY_PASSWORD_FILE)'

function fileOf(
  path: string | undefined,
  setting: string,
  onKept: (message: string) => void,
  check: (text: string) => void,
): RereadFile | undefined {
  return path === undefined ? undefined : new RereadFile({ path, setting, onKept, check })
}
