import { join, resolve } from 'node:path'
import { dependencyFaults, readLicences } from './dependencies.ts'
import { readLock, readManifest } from './project-files.ts'

/**
 * `npm run check:dependencies`: prints every fault of the lock file, and fails if there is one. An argument
 * is the folder of another project.
 */
const folder = resolve(process.argv[2] ?? join(import.meta.dirname, '..'))

const { packages } = readLock(folder)
const { allowScripts = {} } = readManifest(folder)
const count = Object.keys(packages).length - 1
// `readLicences` lists packages of this project only.
const isOurs = process.argv[2] === undefined
const faults = dependencyFaults({ packages, allowScripts, ...(isOurs && { readLicences }) })

for (const fault of faults) console.log(fault)
// Without a package, the check would pass without having checked anything.
if (count < 1) console.log('the lock file names no package')
if (faults.length > 0 || count < 1) process.exitCode = 1
