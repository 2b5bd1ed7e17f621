import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { installPackage } from './installed-package.ts'

/** Sets up the project `package`. Its tests run the build as npm installs it below a `node_modules`. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { folder, prepareKafka, remove } = await installPackage()
  await prepareKafka()
  project.provide('program', join(folder, 'node_modules/sluice/dist/main.js'))
  return remove
}
