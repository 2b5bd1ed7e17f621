import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

const codecs = new URL('../../../../src/kafka/wire/codecs.ts', import.meta.url).href

test('a process that can not load snappy ends when a batch needs it, and the batch does not count as damaged', () => {
  const program = `
    import { registerHooks } from 'node:module'
    registerHooks({
      resolve(specifier, context, next) {
        if (specifier === 'snappy') throw new Error('no native library')
        return next(specifier, context)
      },
    })
    const { decompress } = await import('${codecs}')
    setTimeout(() => console.log('still there'), 5_000)
    decompress(2, Buffer.from([1, 0, 97])).then(
      () => console.log('resolved'),
      () => console.log('rejected'),
    )`
  const args = ['--input-type=module', '--eval', program]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    timeout: 60_000,
  })
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  expect(stderr).toContain("the package snappy can't be loaded on this platform: install it again")
})
