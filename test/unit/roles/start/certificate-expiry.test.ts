import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../../../src/config/read.ts'
import { showCertificateExpiry } from '../../../../src/roles/start/certificate-expiry.ts'
import { createWorkerMetrics } from '../../../../src/telemetry/worker-metrics.ts'
import { dayMs, selfSigned } from '../../../support/certificates.ts'

function fileOf(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'certificate-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'client.pem')
  writeFileSync(file, text)
  return file
}

async function shown(certFile: string | undefined) {
  const read = readConfig({ env: {} })
  if (!read.ok) throw new Error(read.message)
  const metrics = createWorkerMetrics({ perDestination: false })
  const { config } = read
  showCertificateExpiry(metrics, { ...config, kafka: { ...config.kafka, certFile } })
  return (await metrics.certificateExpiry.get()).values
}

test('the end of the client certificate is told', async () => {
  const untilMs = 3 * dayMs
  const file = fileOf(selfSigned({ names: ['worker'], untilMs }).cert)
  const [series] = await shown(file)
  expect(series?.labels).toEqual({ setting: 'kafka.certFile' })
  const endsInMs = (series?.value ?? 0) * 1_000 - Date.now()
  expect(Math.abs(endsInMs - untilMs)).toBeLessThan(60_000)
})

test('nothing is told where there is none, or none that can be read', async () => {
  expect(await shown(undefined)).toEqual([])
  expect(await shown(fileOf('no certificate'))).toEqual([])
})
