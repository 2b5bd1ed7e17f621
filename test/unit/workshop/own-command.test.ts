import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ownCommand } from '../../../src/workshop/own-command.ts'

let scratch: string

beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'sluice-own-'))
})

afterEach(() => rmSync(scratch, { recursive: true }))

/** Makes a package of Sluice, and returns its folder. */
function packageAt(...path: readonly string[]): string {
  const folder = join(scratch, ...path)
  mkdirSync(join(folder, 'bin'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"name":"@acme/sluice"}')
  writeFileSync(join(folder, 'bin/sluice.js'), '')
  return folder
}

function folderAt(...path: readonly string[]): string {
  const folder = join(scratch, ...path)
  mkdirSync(folder, { recursive: true })
  return folder
}

/** Links the command, as npm does when it installs the package. */
function link(folder: string, program: string): void {
  const bin = folderAt(folder, 'node_modules/.bin')
  symlinkSync(join(program, 'bin/sluice.js'), join(bin, 'sluice'))
}

test('in a checkout and below it, npx finds the program', () => {
  const program = packageAt('checkout')
  writeFileSync(join(folderAt('checkout/src'), 'main.ts'), '')
  expect(ownCommand(program, program)).toBe('npx sluice')
  expect(ownCommand(folderAt('checkout/docs'), program)).toBe('npx sluice')
})

test('in a folder with the package installed and below it, npx finds the program', () => {
  const program = packageAt('app/node_modules/@acme/sluice')
  link('app', program)
  expect(ownCommand(folderAt('app'), program)).toBe('npx sluice')
  expect(ownCommand(folderAt('app/below'), program)).toBe('npx sluice')
})

test('elsewhere, npx would run somebody else: the command is on the PATH', () => {
  const program = packageAt('lib/node_modules/@acme/sluice')
  expect(ownCommand(folderAt('elsewhere'), program)).toBe('sluice')
  link('other', packageAt('other/node_modules/sluice'))
  expect(ownCommand(folderAt('other'), program)).toBe('sluice')
})

test('in the image, whose folder of the package is no checkout, the command is on the PATH', () => {
  const program = packageAt('sluice')
  expect(ownCommand(program, program)).toBe('sluice')
})

test('fetched by npx, the program is called by the whole name of its package', () => {
  const program = packageAt('cache/_npx/0123abcd/node_modules/@acme/sluice')
  expect(ownCommand(folderAt('elsewhere'), program)).toBe('npx @acme/sluice')
})
